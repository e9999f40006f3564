//! Two endpoints, and short forms.

use engine::{Cqe, RecvWr, SendFlags, SendOp, SendWr, WcStatus, WrData};
use sim::{EndpointId, Mix, World};

/// A world of two.
pub fn two(seed: u64) -> (World, EndpointId, EndpointId) {
    let mut world = World::new(seed);
    let (a, b) = (world.add_endpoint(), world.add_endpoint());
    (world, a, b)
}

/// Requests of every kind that RC has.
pub fn rc_mix(requests: usize) -> Mix {
    Mix { requests, max_len: 9_000, kinds: sim::Kind::RC }
}

/// A signaled SEND of a few bytes.
pub fn send(wr_id: u64, bytes: &[u8]) -> SendWr {
    let data = WrData::Inline(bytes.iter().copied().collect());
    SendWr { wr_id, op: SendOp::Send, data, flags: SendFlags::SIGNALED }
}

/// A receive without room.
pub fn empty_recv(wr_id: u64) -> RecvWr {
    RecvWr { wr_id, sges: Default::default() }
}

/// Who completed, and how.
pub fn statuses(cqes: &[Cqe]) -> Vec<(u64, WcStatus)> {
    cqes.iter().map(|cqe| (cqe.wr_id, cqe.status)).collect()
}
