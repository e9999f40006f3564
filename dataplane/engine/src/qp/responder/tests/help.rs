//! Short forms for the dialogues.

pub use crate::access::Access;
pub use crate::counters::{Counter, DropReason};
pub use crate::event::{AsyncEvent, EventKind, EventSource};
pub use crate::fault::Fault;
pub use crate::qp::{QpAttr, QpState, QpType};
pub use crate::status::{Cqe, WcOpcode, WcStatus};
pub use crate::testkit::*;
pub use wire::Operation::*;
pub use wire::Position::*;
pub use wire::{
    Aeth, AtomicEth, Bth, Deth, Ieth, ImmDt, Msn, NakCode, Operation, PKey, Position, Psn, QKey, Qpn, RKey,
    Reth, Syndrome,
};

/// The first PSN that the rig's QP expects.
pub const FIRST: u32 = 0x100;
/// Its path MTU.
pub const MTU: usize = 256;
/// All rights that matter here.
pub const ALL: Access =
    Access::LOCAL_WRITE.union(Access::REMOTE_WRITE).union(Access::REMOTE_READ).union(Access::REMOTE_ATOMIC);

/// A sent Acknowledge packet: PSN, syndrome, MSN.
pub type Ack = (u32, Syndrome, u32);

/// An ACK.
pub fn ack(psn: u32, msn: u32) -> Ack {
    (psn, Syndrome::ACK, msn)
}

/// A NAK.
pub fn nak(code: NakCode, psn: u32, msn: u32) -> Ack {
    (psn, Syndrome::Nak(code), msn)
}

/// The packets, all of which must be Acknowledges to the peer's QP.
pub fn acks(sent: &[Packet]) -> Vec<Ack> {
    sent.iter()
        .map(|packet| {
            assert_eq!(packet.kind(), (Acknowledge, Only), "{packet:?}");
            assert_eq!(packet.bth.dest_qpn, PEER_QPN);
            (packet.bth.psn.value(), packet.syndrome().unwrap(), packet.msn().unwrap().value())
        })
        .collect()
}

/// Bytes that are told apart from a region's own.
pub fn bytes(len: usize) -> Vec<u8> {
    (0..len).map(|i| (i % 249) as u8 ^ 0xA5).collect()
}

/// The RETH of `len` bytes from `offset` of a region.
pub fn reth(region: &Region, offset: u64, len: u32) -> Reth {
    Reth { va: region.addr + offset, rkey: region.rkey(), dma_len: len }
}

/// The QP and all it has is as before, except counters: what a dropped packet leaves behind.
pub fn assert_untouched(rig: &mut Rig, state: QpState) {
    assert_eq!(rig.state(), state);
    assert!(rig.sent().is_empty());
    assert_eq!(rig.recv_cqes(), []);
    assert_eq!(rig.send_cqes(), []);
}

/// The QP failed: it is in ERROR and says nothing any more.
pub fn assert_failed(rig: &mut Rig) {
    assert_eq!(rig.state(), QpState::Err);
    assert!(rig.sent().is_empty());
}

/// All that can be seen of a responder, the answers first.
pub fn seen(rig: &mut Rig) -> String {
    let (sent, cqes, events) = (rig.sent(), rig.recv_cqes(), rig.raised());
    let seen = (rig.state(), rig.shared.rq().len(), rig.memory.published());
    let qp = &rig.engine.qp(QPN).unwrap().resp;
    let (counters, memory) = (rig.engine.counters(), rig.memory.snapshot());
    format!("{sent:?} {cqes:?} {events:?} {seen:?} {qp:?} {counters:?} {memory:?}")
}

/// A dialogue leaves the same whether packets are executed together or one by one; how many were executed together. `hold` holds it in
/// the one or the other way, and tells their number and all that can be seen.
pub fn both_ways(name: &str, hold: impl Fn(bool) -> (u32, String)) -> u32 {
    let [(together, runs), (_, one_by_one)] = [true, false].map(hold);
    assert_eq!(runs, one_by_one, "{name}");
    together
}
