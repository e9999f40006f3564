//! One direction of a connection: its requests, where their bytes lie, and the regions.

use super::keys::{Keys, NO_KEY};
use super::pool::Received;
use crate::endpoint::Region;
use crate::plan::{Connection, Fault, Kind, Local, Op, Place, Plan, Service, Side};
use crate::qp::{Options, QKEY, QpId};
use crate::world::World;
use engine::limits::UD_GRH_BYTES;
use engine::wr::{AddressHandle, Remote};
use engine::{Access, Cqe, FlushLevel, Nanos, Placement, RecvWr, SendFlags, SendOp, SendWr, Sge, WrData};
use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};
use std::collections::BTreeMap;
use std::sync::Arc;
use wire::{LKey, RKey};

/// Bytes of a region, in pieces.
pub(super) type Pieces = Vec<(u64, u32)>;

/// A region of a flow, by what it is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Area {
    /// Near: what is sent. Never changes.
    Out,
    /// Near: results.
    Back,
    /// Near: what is sent until an event takes it away.
    DoomedSource,
    /// Near: a fast region of ours, by its registration.
    Registered(u32),
    /// Far: receives.
    Inbox,
    /// Far: WRITEs and READs.
    Target,
    /// What would be left of the target after a loss of power.
    Kept,
    /// Far: atomics and ATOMIC WRITEs.
    Cells,
    /// Far: WRITEs and READs until an event takes it away.
    DoomedTarget,
    /// Far: a fast region of the peer's by its registration, or what a memory window is bound to by its bind.
    Window(u32),
    /// Far: the counter of the peer's endpoint.
    Shared,
}

/// Where a request's bytes lie.
#[derive(Clone, Debug)]
pub(super) struct Spot {
    pub local: (Area, Pieces),
    pub remote: (Area, u64),
    pub receive: Pieces,
}

/// Cells of a flow's atomics.
const CELLS: u64 = 4;

pub(super) struct Flow {
    pub connection: usize,
    pub side: Side,
    pub near: QpId,
    pub far: QpId,
    pub service: Service,
    pub ops: Vec<Op>,
    pub spots: Vec<Spot>,
    pub regions: BTreeMap<Area, Region>,
    pub keys: Arc<Keys>,
    /// What the regions hold, as the model has it.
    pub shadow: BTreeMap<Area, Vec<u8>>,
    pub ah: Option<Arc<AddressHandle>>,
    /// The first request since the QPs were connected.
    pub start: usize,
    pub posted: usize,
    /// Requests whose receives are posted, or need none.
    pub awaited: usize,
    pub next_receive_at: Nanos,
    /// The first request whose receive has not completed in an earlier round.
    pub first_receive: usize,
    /// Requests posted to a QP in ERROR.
    pub late_posts: usize,
    pub send_cqes: Vec<Cqe>,
    pub recv_cqes: Vec<Cqe>,
    /// Where the peer's receives are shared: the plan's pools that they come from, and what has come.
    pub pools: Vec<usize>,
    pub received: Vec<Received>,
    /// Events that tell that no receive of an SRQ will complete any more.
    pub last_wqe: u64,
}

/// Bytes without pattern, from the seed and a name.
pub(super) fn noise(seed: u64, name: u64, len: usize) -> Vec<u8> {
    let mut bytes = vec![0; len];
    ChaCha8Rng::seed_from_u64(seed ^ name.wrapping_mul(0x9E37_79B9_7F4A_7C15)).fill(&mut bytes[..]);
    bytes
}

/// A small number that follows from the seed and a request.
pub(super) fn chance(seed: u64, op: &Op, what: u64, end: u64) -> u64 {
    chance_of(seed, op.id.into(), what, end)
}

/// The same for anything that has a number.
pub(super) fn chance_of(seed: u64, number: u64, what: u64, end: u64) -> u64 {
    let mixed = (seed ^ number << 8 ^ what).wrapping_mul(0xD6E8_FEB8_6659_FD93);
    (mixed ^ mixed >> 32) % end.max(1)
}

impl Flow {
    /// The ops of one side of a connection, laid out, with their regions registered.
    pub fn new(
        world: &mut World,
        plan: &Plan,
        number: usize,
        side: Side,
        qps: [QpId; 2],
        keys: &Arc<Keys>,
        shared: &[Region],
    ) -> Flow {
        let (seed, connection) = (plan.seed, &plan.connections[number]);
        let mine = |op: &&Op| op.connection as usize == number && op.from == side;
        let ops: Vec<Op> = plan.ops.iter().filter(mine).copied().collect();
        let near = qps[side as usize];
        let far = qps[side.other() as usize];
        let (spots, sizes) = lay_out(seed, connection, &ops, keys, connection.meets_shared(side));
        let mut regions = BTreeMap::new();
        let (at, there) = (world.endpoint_of(near), world.endpoint_of(far));
        let write = Access::LOCAL_WRITE;
        for (&area, &size) in &sizes {
            let (endpoint, access) = match area {
                Area::Out | Area::DoomedSource => (at, Access::empty()),
                Area::Back => (at, write),
                Area::Inbox => (there, write),
                Area::Target | Area::DoomedTarget => {
                    (there, write | Access::REMOTE_WRITE | Access::REMOTE_READ | Placement::all().rights())
                }
                Area::Cells => {
                    (there, write | Access::REMOTE_WRITE | Access::REMOTE_ATOMIC | Access::FLUSH_PERSISTENT)
                }
                // Registered with the target.
                Area::Kept => continue,
                Area::Registered(id) | Area::Window(id) => {
                    regions.extend(keys.get(&id).map(|grant| (area, grant.region.clone())));
                    continue;
                }
                Area::Shared => {
                    regions.insert(area, shared[there.0].clone());
                    continue;
                }
            };
            let name = (number as u64) << 16 | (side as u64) << 8 | name_of(area);
            let content =
                if area == Area::Cells { vec![0; size as usize] } else { noise(seed, name, size as usize) };
            if area == Area::Target && sizes.contains_key(&Area::Kept) {
                let region = world.register_durable(endpoint, content, access);
                regions.insert(Area::Kept, region.clone());
                regions.insert(area, region);
                continue;
            }
            regions.insert(area, world.register(endpoint, content, access));
        }
        let shadow = regions
            .iter()
            .filter(|&(&area, _)| area != Area::Shared)
            .map(|(&area, region)| (area, content(world, area, region)))
            .collect();
        let ah = (connection.service == Service::Ud)
            .then(|| world.address_handle(at, there, &options(connection)));
        Flow {
            connection: number,
            side,
            near,
            far,
            service: connection.service,
            ops,
            spots,
            regions,
            keys: keys.clone(),
            shadow,
            ah,
            start: 0,
            posted: 0,
            awaited: 0,
            next_receive_at: 0,
            first_receive: 0,
            late_posts: 0,
            send_cqes: Vec::new(),
            recv_cqes: Vec::new(),
            pools: Vec::new(),
            received: Vec::new(),
            last_wqe: 0,
        }
    }

    /// The receive of a request.
    pub fn recv_wr(&self, at: usize) -> RecvWr {
        let op = &self.ops[at];
        let sges = self.spots[at].receive.iter().map(|&(offset, len)| {
            let sge = self.regions[&Area::Inbox].sge(offset, len);
            let lkey = if op.fault == Some(Fault::BadReceive) { LKey::new(NO_KEY.value()) } else { sge.lkey };
            Sge { lkey, ..sge }
        });
        RecvWr { wr_id: op.id.into(), sges: sges.collect() }
    }

    /// The request itself.
    pub fn send_wr(&self, world: &World, seed: u64, at: usize) -> SendWr {
        let op = &self.ops[at];
        let key_of = |id: Option<u32>| id.and_then(|id| self.keys.get(&id)).map_or(NO_KEY, |of| of.key);
        let remote = self.remote(at);
        let send_op = match (op.kind, &self.ah) {
            (Kind::Send | Kind::SendImm, Some(ah)) => SendOp::UdSend {
                ah: ah.clone(),
                remote_qpn: world.qpn(self.far),
                qkey: QKEY,
                imm: op.kind.has_imm().then(|| imm(op)),
            },
            (Kind::Send, None) => SendOp::Send,
            (Kind::SendImm, None) => SendOp::SendImm(imm(op)),
            (Kind::SendInv, _) => SendOp::SendInv(key_of(op.key_of)),
            (Kind::Write, _) => SendOp::Write(remote),
            (Kind::WriteImm, _) => SendOp::WriteImm(remote, imm(op)),
            (Kind::Read, _) => SendOp::Read(remote),
            (Kind::CompareSwap, _) => {
                let (compare, swap) = operands(seed, op);
                SendOp::CompareSwap { remote, compare, swap }
            }
            (Kind::FetchAdd, _) => SendOp::FetchAdd { remote, add: operands(seed, op).0 },
            (Kind::AtomicWrite, _) => SendOp::AtomicWrite(remote),
            (Kind::Flush, _) => {
                let (placement, level) = flushed(seed, op);
                SendOp::Flush { remote, len: op.len, placement, level }
            }
            (Kind::LocalInv, _) => SendOp::LocalInv(key_of(op.key_of)),
            (Kind::RegMr | Kind::BindMw1 | Kind::BindMw2, _) => match self.keys.get(&op.id) {
                Some(grant) => grant.request(op.fault == Some(Fault::BadBind)),
                None => SendOp::LocalInv(NO_KEY),
            },
        };
        let mut flags = SendFlags::empty();
        flags.set(SendFlags::SIGNALED, op.signaled);
        flags.set(SendFlags::SOLICITED, op.solicited);
        flags.set(SendFlags::FENCE, op.fenced);
        SendWr { wr_id: op.id.into(), op: send_op, data: self.data(world, at), flags }
    }

    fn data(&self, world: &World, at: usize) -> WrData {
        let op = &self.ops[at];
        if op.kind.is_local() || op.kind == Kind::Flush {
            return WrData::Sges(Default::default());
        }
        let (area, pieces) = &self.spots[at].local;
        let Some(region) = self.regions.get(area) else { return WrData::Sges(Default::default()) };
        if op.inline {
            return WrData::Inline(gather(&world.content(region), pieces).into_iter().collect());
        }
        let sges = pieces.iter().map(|&(offset, len)| {
            let sge = match area {
                Area::Registered(id) => {
                    let Remote { addr, rkey } = self.keys[id].remote(offset);
                    Sge { addr, len, lkey: LKey::new(rkey.value()) }
                }
                _ => region.sge(offset, len),
            };
            let lkey = if op.fault == Some(Fault::BadLkey) { LKey::new(NO_KEY.value()) } else { sge.lkey };
            let len = if op.fault == Some(Fault::AtomicLength) { 4 } else { sge.len };
            Sge { lkey, len, ..sge }
        });
        WrData::Sges(sges.collect())
    }

    /// Where the request goes, as right or wrong as the plan says.
    fn remote(&self, at: usize) -> Remote {
        let op = &self.ops[at];
        let (area, offset) = self.spots[at].remote;
        let Some(region) = self.regions.get(&area) else {
            return Remote { addr: 0, rkey: NO_KEY };
        };
        let right = match area {
            Area::Window(id) => self.keys[&id].remote(offset),
            _ => region.remote(offset),
        };
        match (op.fault, area) {
            (Some(Fault::BadRkey), _) => Remote { rkey: NO_KEY, ..right },
            // The key is right for nothing, or for something else.
            (Some(Fault::StaleKey | Fault::NoRight), Area::Window(_)) => right,
            (Some(Fault::Range), Area::Window(id)) => self.keys[&id].past_the_end(op.len),
            (Some(Fault::StaleKey), _) => Remote { rkey: RKey::new(right.rkey.value() ^ 0x5A), ..right },
            // By one byte, or by half of it; atomics stay aligned.
            (Some(Fault::Range), _) => match op.kind.is_of_eight() || op.id.is_multiple_of(2) {
                true => region.remote(region.len.next_multiple_of(8) - u64::from(op.len / 2) / 8 * 8),
                false => region.remote(region.len + 1 - u64::from(op.len)),
            },
            // Inside of that region, or the range would be what is wrong.
            (Some(Fault::NoRight), _) => self.regions[&Area::Inbox].remote(0),
            (Some(Fault::Volatile), _) => self.regions[&Area::Cells].remote(0),
            (Some(Fault::Misaligned), _) => Remote { addr: right.addr + 4, ..right },
            _ => right,
        }
    }
}

/// What an application gives the peer with a request.
pub(super) fn imm(op: &Op) -> [u8; 4] {
    op.id.to_be_bytes()
}

/// Compare and swap values, or what is added.
pub(super) fn operands(seed: u64, op: &Op) -> (u64, u64) {
    match op.place {
        Place::Shared => (1, 0),
        _ => (chance(seed, op, 1, 3), chance(seed, op, 2, 3)),
    }
}

/// How far a FLUSH goes, and what it is about.
pub(super) fn flushed(seed: u64, op: &Op) -> (Placement, FlushLevel) {
    let all = [Placement::GLOBAL, Placement::PERSISTENT, Placement::all(), Placement::PERSISTENT];
    let whole = op.fault != Some(Fault::Range) && chance(seed, op, 13, 4) == 0;
    let level = if whole { FlushLevel::Region } else { FlushLevel::Range };
    match (op.fault, op.place) {
        (Some(Fault::NoPlacement), _) => (Placement::empty(), level),
        // Whatever the range.
        (Some(Fault::Volatile), _) => (Placement::PERSISTENT, FlushLevel::Region),
        (_, Place::Doomed) => (Placement::GLOBAL, level),
        _ => (all[chance(seed, op, 14, 4) as usize], level),
    }
}

/// The bytes of a region, or what would be left of them.
pub(super) fn content(world: &World, area: Area, region: &Region) -> Vec<u8> {
    match area {
        Area::Kept => world.memory(region.endpoint).after_power_loss(region.id).unwrap_or_default(),
        _ => world.content(region),
    }
}

/// How the QPs of a connection are made.
pub(super) fn options(connection: &Connection) -> Options {
    Options {
        mtu: connection.path_mtu(),
        v6: connection.v6,
        depth: connection.depth,
        max_rd_atomic: connection.rd_atomic,
        timeout: connection.timeout,
        retry_cnt: connection.retry_cnt,
        rnr_retry: connection.rnr_retry,
        min_rnr_timer: connection.rnr_timer,
    }
}

/// The bytes of the pieces, one after the other.
pub(super) fn gather(content: &[u8], pieces: &Pieces) -> Vec<u8> {
    pieces
        .iter()
        .flat_map(|&(at, len)| content.get(at as usize..at as usize + len as usize).unwrap_or_default())
        .copied()
        .collect()
}

fn name_of(area: Area) -> u64 {
    match area {
        Area::Out => 1,
        Area::Back => 2,
        Area::DoomedSource => 3,
        Area::Inbox => 4,
        Area::Target => 5,
        Area::DoomedTarget => 6,
        Area::Cells | Area::Kept | Area::Registered(_) | Area::Window(_) | Area::Shared => 7,
    }
}

/// Gives each request places of its own, with gaps, and tells how long each region has to be.
fn lay_out(
    seed: u64,
    connection: &Connection,
    ops: &[Op],
    keys: &Keys,
    pooled: bool,
) -> (Vec<Spot>, BTreeMap<Area, u64>) {
    let mut ends: BTreeMap<Area, u64> = [(Area::Out, 0), (Area::Inbox, 0), (Area::Target, 0)].into();
    let mut take = |area: Area, len: u32, gap: u64| {
        let end = ends.entry(area).or_default();
        let at = end.next_multiple_of(8);
        *end = at + u64::from(len) + 1 + gap;
        at
    };
    let longest = ops.iter().map(|op| op.len).max().unwrap_or(0);
    let mut spots: Vec<Spot> = Vec::new();
    for op in ops {
        let gap = chance(seed, op, 3, 9);
        let spot_of =
            |id: u32| ops.iter().zip(&spots).find(|(other, _)| other.id == id).map(|(_, spot)| spot.clone());
        let near = match op.local {
            Local::Own if op.kind.returns_data() => Area::Back,
            Local::Own | Local::Forward(_) => Area::Out,
            Local::Doomed => Area::DoomedSource,
            Local::Registered(id) => Area::Registered(id),
        };
        let forwarded = match op.local {
            Local::Forward(id) => spot_of(id).map(|spot| spot.local),
            _ => None,
        };
        let local = forwarded.unwrap_or_else(|| {
            let count = if op.kind.is_of_eight() { 1 } else { 1 + chance(seed, op, 4, 4) };
            let mut left = if op.kind.carries_data() || op.kind.returns_data() { op.len } else { 0 };
            let pieces = (1..=count).map(|nth| {
                let piece =
                    if nth == count { left } else { chance(seed, op, 5 + nth, u64::from(left) + 1) as u32 };
                left -= piece;
                (take(near, piece, gap), piece)
            });
            (near, pieces.collect())
        });
        let remote = match op.place {
            Place::Over(id) => spot_of(id).map(|spot| spot.remote),
            _ => None,
        };
        let remote = remote.unwrap_or_else(|| match op.place {
            _ if op.kind.is_send() || op.kind.is_local() => (Area::Target, 0),
            Place::Window(id) => {
                let begin = keys.get(&id).map_or(0, |grant| grant.begin);
                (Area::Window(id), begin + take(Area::Window(id), op.len, gap))
            }
            Place::Doomed => (Area::DoomedTarget, take(Area::DoomedTarget, op.len, gap)),
            Place::Shared => {
                take(Area::Shared, 0, 0);
                (Area::Shared, 0)
            }
            _ if op.kind.is_of_eight() => {
                take(Area::Cells, 0, 0);
                (Area::Cells, 8 * chance(seed, op, 9, CELLS))
            }
            _ => (Area::Target, take(Area::Target, op.len, gap)),
        });
        if op.fault == Some(Fault::NoRight) {
            // The receives' region grants nothing to a peer; it has to be long enough to be what such a request asks for.
            take(Area::Inbox, op.len, gap);
        }
        if op.kind == Kind::Flush {
            // Not only for FLUSHes of the target: some are about the cells by mistake.
            take(Area::Kept, 0, 0);
            take(Area::Cells, 0, 0);
        }
        let receive = match op.kind.takes_receive() && !pooled {
            false => Vec::new(),
            true => {
                let room = match (op.fault, connection.service) {
                    (Some(Fault::ShortReceive), _) => op.len.saturating_sub(1),
                    (_, Service::Rc | Service::Xrc) => op.len + 1 + chance(seed, op, 10, 20) as u32,
                    (_, Service::Uc) => longest,
                    (_, Service::Ud) => longest + UD_GRH_BYTES,
                };
                let first = chance(seed, op, 11, u64::from(room) + 1) as u32;
                vec![
                    (take(Area::Inbox, first, gap), first),
                    (take(Area::Inbox, room - first, gap), room - first),
                ]
            }
        };
        spots.push(Spot { local, remote, receive });
    }
    for (area, end) in &mut ends {
        *end = match area {
            Area::Cells => 8 * CELLS,
            _ => *end + 16,
        };
    }
    (spots, ends)
}
