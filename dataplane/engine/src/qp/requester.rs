//! The requester: what a send queue transmits next.

use super::{Ctx, Poll, Qp};
use crate::Nanos;
use crate::memory::Memory;
use crate::packet::PacketSink;
use wire::Psn;

/// The sending half of a QP.
#[derive(Debug)]
pub(crate) struct Requester {}

impl Requester {
    /// A requester for a send queue of `depth`. Everything it needs is allocated here.
    pub fn new(depth: u32) -> Self {
        let _ = depth;
        Requester {}
    }

    /// Starts afresh: nothing in flight, next PSN `sq_psn` (RESET, and RTR → RTS).
    pub fn reset(&mut self, sq_psn: Psn) {
        let _ = sq_psn;
    }

    /// When the ACK or RNR timer fires.
    pub fn deadline(&self) -> Option<Nanos> {
        None
    }

    /// Nothing is in flight: every started message is sent and acknowledged.
    pub fn is_drained(&self) -> bool {
        true
    }
}

/// There may be something to send: a cheap look, no promise.
pub(crate) fn may_send(qp: &Qp) -> bool {
    let _ = qp;
    false
}

/// Sends the next request packet if there is one and rules and window allow.
pub(crate) fn poll<M: Memory>(qp: &mut Qp, ctx: &Ctx<'_, M>, sink: &mut impl PacketSink) -> Poll {
    let _ = (qp, ctx, sink);
    Poll::Idle
}
