//! The responder: what an arriving request does.

use super::{Ctx, Qp};
use crate::memory::Memory;
use crate::packet::RxPacket;
use wire::Psn;

/// The receiving half of a QP.
#[derive(Debug)]
pub(crate) struct Responder {}

impl Responder {
    /// A responder before its first packet.
    pub fn new() -> Self {
        Responder {}
    }

    /// Starts afresh: expects `rq_psn`, keeps `max_dest_rd_atomic` READs and atomics (INIT → RTR, RESET).
    pub fn reset(&mut self, rq_psn: Psn, max_dest_rd_atomic: u8) {
        let _ = (rq_psn, max_dest_rd_atomic);
    }

    /// The receive that a message in progress has taken, for `flush.rs`: it is flushed before those behind it.
    pub fn take_current_receive(&mut self) -> Option<crate::RecvWr> {
        None
    }

    /// A response waits to be sent.
    pub fn has_response(&self) -> bool {
        false
    }
}

/// A request that was admitted.
pub(crate) fn on_request<M: Memory>(qp: &mut Qp, ctx: &Ctx<'_, M>, packet: &RxPacket<'_>) {
    let _ = (qp, ctx, packet);
}
