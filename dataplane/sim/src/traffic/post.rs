//! Posting what was chosen, and foreseeing what comes of it.

use super::layout::{Pieces, gather, scatter};
use super::plan::{self, CELLS, Op};
use super::{Kind, Mix, Regions, Shadows, Traffic};
use crate::endpoint::Region;
use crate::qp::{Options, QKEY, QpId};
use crate::world::World;
use engine::wr::AddressHandle;
use engine::{Access, QpType, RecvWr, SendFlags, SendOp, SendWr, Sge, WrData};
use std::sync::Arc;

impl Traffic {
    /// Chooses requests from one QP to another, posts the receives that they need, and posts them.
    pub fn post(world: &mut World, from: QpId, to: QpId, options: &Options, mix: &Mix) -> Traffic {
        let traffic = Traffic::prepare(world, from, to, options, mix);
        traffic.post_receives(world);
        traffic.post_sends(world, options);
        traffic
    }

    /// Chooses requests, but posts nothing yet: for tests in which receives come late.
    pub fn prepare(world: &mut World, from: QpId, to: QpId, options: &Options, mix: &Mix) -> Traffic {
        let qp_type = world.qp_type(from);
        let (ops, layouts) = plan::plan(world, qp_type, options.mtu, mix);
        let (near, far) = (world.endpoint_of(from), world.endpoint_of(to));
        let mut region = |endpoint, len, access| {
            let content = world.random_bytes(len);
            world.register(endpoint, content, access)
        };
        let write = Access::LOCAL_WRITE;
        let regions = Regions {
            out: region(near, layouts.out.len(), Access::empty()),
            back: region(near, layouts.back.len(), write),
            inbox: region(far, layouts.inbox.len(), write),
            target: region(far, layouts.target.len(), write | Access::REMOTE_WRITE),
            source: region(far, layouts.source.len(), Access::REMOTE_READ),
            cells: region(far, 8 * CELLS as usize, write | Access::REMOTE_ATOMIC),
        };
        // Small numbers: comparisons then hold about as often as not.
        world.memory(far).set(regions.cells.id, 0, &[0; 8 * CELLS as usize]);
        let shadows = foresee(world, &ops, &regions, qp_type);
        Traffic { from, to, ops, regions, shadows }
    }

    /// Posts the receives.
    pub fn post_receives(&self, world: &mut World) {
        for (wr_id, op) in self.ops.iter().enumerate() {
            let Some(pieces) = &op.receive else { continue };
            let wr = RecvWr { wr_id: wr_id as u64, sges: sges(&self.regions.inbox, pieces).collect() };
            world.post_recv(self.to, wr).expect("a queue deep enough for the mix");
        }
    }

    /// Posts the requests.
    pub fn post_sends(&self, world: &mut World, options: &Options) {
        let ah = (world.qp_type(self.from) == QpType::Ud)
            .then(|| world.address_handle(world.endpoint_of(self.from), world.endpoint_of(self.to), options));
        for (wr_id, op) in self.ops.iter().enumerate() {
            let wr = self.send_wr(world, wr_id as u64, op, ah.as_ref());
            world.post_send(self.from, wr).expect("a queue deep enough for the mix");
        }
    }

    fn send_wr(&self, world: &World, wr_id: u64, op: &Op, ah: Option<&Arc<AddressHandle>>) -> SendWr {
        let Regions { out, back, target, source, cells, .. } = &self.regions;
        let send_op = match (op.kind, ah) {
            (Kind::Send | Kind::SendImm, Some(ah)) => SendOp::UdSend {
                ah: ah.clone(),
                remote_qpn: world.qpn(self.to),
                qkey: QKEY,
                imm: op.kind.has_imm().then_some(op.imm),
            },
            (Kind::Send, None) => SendOp::Send,
            (Kind::SendImm, None) => SendOp::SendImm(op.imm),
            (Kind::Write, _) => SendOp::Write(target.remote(op.remote)),
            (Kind::WriteImm, _) => SendOp::WriteImm(target.remote(op.remote), op.imm),
            (Kind::Read, _) => SendOp::Read(source.remote(op.remote)),
            (Kind::CompareSwap, _) => {
                let (compare, swap) = op.operands;
                SendOp::CompareSwap { remote: cells.remote(op.remote), compare, swap }
            }
            (Kind::FetchAdd, _) => SendOp::FetchAdd { remote: cells.remote(op.remote), add: op.operands.0 },
        };
        let local = if op.kind.returns_data() { back } else { out };
        let data = match op.inline {
            true => WrData::Inline(gather(&world.content(local), &op.local).into_iter().collect()),
            false => WrData::Sges(sges(local, &op.local).collect()),
        };
        let mut flags = SendFlags::empty();
        flags.set(SendFlags::SIGNALED, op.signaled);
        flags.set(SendFlags::SOLICITED, op.solicited);
        flags.set(SendFlags::FENCE, op.fenced);
        SendWr { wr_id, op: send_op, data, flags }
    }
}

fn sges(region: &Region, pieces: &Pieces) -> impl Iterator<Item = Sge> {
    pieces.iter().map(|&(at, len)| region.sge(at, len))
}

/// What the regions hold once every request was executed, in order.
fn foresee(world: &World, ops: &[Op], regions: &Regions, qp_type: QpType) -> Shadows {
    let content = |region| world.content(region);
    let (out, source) = (content(&regions.out), content(&regions.source));
    let target_before = content(&regions.target);
    let mut shadows = Shadows {
        back: content(&regions.back),
        inbox: content(&regions.inbox),
        target: target_before.clone(),
        cells: content(&regions.cells),
        target_before,
    };
    for op in ops {
        match op.kind {
            // The header area in front of a datagram is checked with its completion.
            Kind::Send | Kind::SendImm if qp_type == QpType::Ud => {}
            Kind::Send | Kind::SendImm => {
                let receive = op.receive.as_ref().expect("a SEND takes a receive");
                scatter(&mut shadows.inbox, receive, &gather(&out, &op.local));
            }
            Kind::Write | Kind::WriteImm => {
                scatter(&mut shadows.target, &vec![(op.remote, op.len)], &gather(&out, &op.local));
            }
            Kind::Read => {
                let bytes = &source[op.remote as usize..][..op.len as usize];
                scatter(&mut shadows.back, &op.local, bytes);
            }
            Kind::CompareSwap | Kind::FetchAdd => {
                let cell = &mut shadows.cells[op.remote as usize..][..8];
                let old = u64::from_ne_bytes((&*cell).try_into().expect("eight bytes"));
                let new = match (op.kind, op.operands) {
                    (Kind::FetchAdd, (add, _)) => old.wrapping_add(add),
                    (_, (compare, swap)) => {
                        if old == compare {
                            swap
                        } else {
                            old
                        }
                    }
                };
                cell.copy_from_slice(&new.to_ne_bytes());
                scatter(&mut shadows.back, &op.local, &old.to_ne_bytes());
            }
        }
    }
    shadows
}
