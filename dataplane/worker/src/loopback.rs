//! Packets to ourselves: no port sees them.
//!
//! A sealed packet whose destination is the port's own MAC waits in a ring of the worker that sent it, and goes from there
//! the way of a received frame: parse, iCRC, lookup, or the hand-off ring of the worker where the QP lives. So order and
//! checks are those of the wire. A full ring is a full transmit ring to the engine: it offers the packet again.

use crate::lane::Lane;
use crate::rx::{Origin, RX_BURST};
use dpdk::{Mbuf, MbufBurst};
use engine::Nanos;
use std::collections::VecDeque;

/// Packets that may wait: as many as one poll sends.
const LOOPED: usize = 128;

/// The ring.
#[derive(Debug)]
pub(crate) struct Loopback(VecDeque<Mbuf>);

impl Loopback {
    pub fn new() -> Loopback {
        Loopback(VecDeque::with_capacity(LOOPED))
    }

    #[inline]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    #[inline]
    pub fn is_full(&self) -> bool {
        self.0.len() >= LOOPED
    }

    /// Adds a packet. The caller has seen that there is room.
    #[inline]
    pub fn push(&mut self, mbuf: Mbuf) {
        debug_assert!(!self.is_full(), "it would allocate");
        self.0.push_back(mbuf);
    }

    /// Moves the oldest packets into a burst.
    fn fill(&mut self, burst: &mut MbufBurst<RX_BURST>) {
        let count = self.0.len().min(burst.room());
        for mbuf in self.0.drain(..count) {
            // There is room, as just seen.
            let _ = burst.push(mbuf);
        }
    }
}

impl Lane {
    /// Takes what we sent to ourselves and executes it. True when there was something.
    #[inline]
    pub(crate) fn receive_looped(&mut self, now: Nanos) -> bool {
        if self.outgoing.looped.is_empty() {
            return false;
        }
        let mut received = self.received.take().unwrap_or_default();
        // Execution adds nothing to the ring, so this ends.
        while !self.outgoing.looped.is_empty() {
            self.outgoing.looped.fill(&mut received.burst);
            self.counters.traffic.looped += received.burst.len() as u64;
            self.take_burst(now, &mut received, Origin::Own);
        }
        self.received = Some(received);
        true
    }
}
