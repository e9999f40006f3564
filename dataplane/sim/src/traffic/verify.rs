//! Checking what came of it.

use super::layout::gather;
use super::plan::Op;
use super::{Kind, Traffic};
use crate::world::World;
use engine::limits::UD_GRH_BYTES;
use engine::{Cqe, QpType, WcOpcode, WcStatus};

impl Traffic {
    /// RC: every request was executed once and in order, every signaled one completed once and in order, every receive
    /// holds its message, and no other byte changed.
    pub fn assert_all_done(&self, world: &World) {
        self.assert_sent(world);
        self.assert_received(&world.recv_cqes(self.to), world);
        let shadows = &self.shadows;
        for (name, region, shadow) in [
            ("results of READs and atomics", &self.regions.back, &shadows.back),
            ("receives", &self.regions.inbox, &shadows.inbox),
            ("WRITEs", &self.regions.target, &shadows.target),
            ("atomics", &self.regions.cells, &shadows.cells),
        ] {
            let content = world.content(region);
            let different = content.iter().zip(shadow).position(|(is, should)| is != should);
            assert_eq!(different, None, "first different byte of {name}");
        }
    }

    /// The send side alone: every signaled request completed with success, once and in order.
    pub fn assert_sent(&self, world: &World) {
        let completions = world.send_cqes(self.from);
        let expected = self.ops.iter().enumerate().filter(|(_, op)| op.signaled);
        for (cqe, (wr_id, op)) in completions.iter().zip(expected.clone()) {
            assert_eq!((cqe.wr_id, cqe.status), (wr_id as u64, WcStatus::Success), "{:?}", op.kind);
            assert_eq!((cqe.opcode, cqe.qpn), (opcode(op.kind), world.qpn(self.from)));
            assert_eq!(cqe.byte_len, if op.kind.returns_data() { op.len } else { 0 }, "{:?}", op.kind);
        }
        assert_eq!(completions.len(), expected.count(), "send completions");
        assert_eq!(world.outstanding(self.from), 0, "the send queue is empty again");
    }

    fn assert_received(&self, completions: &[Cqe], world: &World) {
        let expected = || self.ops.iter().enumerate().filter(|(_, op)| op.receive.is_some());
        for (cqe, (wr_id, op)) in completions.iter().zip(expected()) {
            assert_eq!((cqe.wr_id, cqe.status), (wr_id as u64, WcStatus::Success), "{:?}", op.kind);
            assert!(self.tells_of(world, cqe, op), "{cqe:?} for {:?} of {}", op.kind, op.len);
        }
        assert_eq!(completions.len(), expected().count(), "receive completions");
    }

    /// UC and UD over links that lose frames: what arrived is one of the messages, whole, and receives were taken in
    /// order. With `in_order` (nothing was swapped or doubled) messages also came in order and once. Gives their number.
    pub fn assert_no_nonsense(&self, world: &World, in_order: bool) -> usize {
        self.assert_sent(world);
        let completions = world.recv_cqes(self.to);
        let inbox = world.content(&self.regions.inbox);
        let receives = self.ops.iter().enumerate().filter(|(_, op)| op.receive.is_some());
        let mut next_message = 0;
        for (cqe, (wr_id, taken)) in completions.iter().zip(receives) {
            assert_eq!((cqe.wr_id, cqe.status), (wr_id as u64, WcStatus::Success));
            let pieces = taken.receive.as_ref().expect("chosen so");
            let message = gather(&inbox, pieces);
            let from = if in_order { next_message } else { 0 };
            let found = self.ops[from..].iter().position(|op| self.is_message(world, cqe, op, &message));
            let found =
                found.unwrap_or_else(|| panic!("{cqe:?} is no message that was sent (and not received)"));
            next_message = from + found + 1;
        }
        self.assert_writes_or_nothing(world);
        completions.len()
    }

    /// Whether a completion, with the bytes of its receive, is this message.
    fn is_message(&self, world: &World, cqe: &Cqe, op: &Op, received: &[u8]) -> bool {
        if op.receive.is_none() || !self.tells_of(world, cqe, op) {
            return false;
        }
        let sent = gather(&world.content(&self.regions.out), &op.local);
        if op.kind == Kind::WriteImm {
            // Its bytes went elsewhere, all of them.
            return world.content(&self.regions.target)[op.remote as usize..].starts_with(&sent);
        }
        let header = if self.qp_type(world) == QpType::Ud { UD_GRH_BYTES as usize } else { 0 };
        received[header..].starts_with(&sent)
    }

    /// Whether a completion says what this message's must.
    fn tells_of(&self, world: &World, cqe: &Cqe, op: &Op) -> bool {
        let ud = self.qp_type(world) == QpType::Ud;
        let opcode = if op.kind == Kind::WriteImm { WcOpcode::RecvRdmaWithImm } else { WcOpcode::Recv };
        let byte_len = op.len + if ud { UD_GRH_BYTES } else { 0 };
        cqe.opcode == opcode
            && cqe.byte_len == byte_len
            && cqe.imm == op.kind.has_imm().then_some(op.imm)
            && cqe.solicited == op.solicited
            && cqe.has_grh == ud
            && (!ud || cqe.src_qp == world.qpn(self.from))
            && cqe.invalidated.is_none()
    }

    /// Parts of lost WRITEs stay: each byte is the old or the new one, and nothing beside them changed.
    fn assert_writes_or_nothing(&self, world: &World) {
        let content = world.content(&self.regions.target);
        let (before, after) = (&self.shadows.target_before, &self.shadows.target);
        let strange = (0..content.len()).find(|&at| content[at] != before[at] && content[at] != after[at]);
        assert_eq!(strange, None, "a byte that nobody wrote");
    }

    fn qp_type(&self, world: &World) -> QpType {
        world.qp_type(self.from)
    }
}

fn opcode(kind: Kind) -> WcOpcode {
    match kind {
        Kind::Send | Kind::SendImm => WcOpcode::Send,
        Kind::Write | Kind::WriteImm => WcOpcode::RdmaWrite,
        Kind::Read => WcOpcode::RdmaRead,
        Kind::CompareSwap => WcOpcode::CompSwap,
        Kind::FetchAdd => WcOpcode::FetchAdd,
    }
}
