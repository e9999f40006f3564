//! Datagrams for queue pair 1, the general services interface (rocev2 facts, CM 1): the control thread's, by a ring of their own.
//!
//! They are copied out of their buffers, so that however many wait, the port has all its buffers to receive with, and
//! they are not counted on the ring of the slow path, so that ARP and neighbour discovery go on beside a flood. A flood from one
//! address, which costs the control thread time for each, is bounded by a [`Gate`]: other addresses keep their share.

use crate::counters::Drop;
use crate::lane::Lane;
use crate::rx::head;
use dpdk::Mbuf;
use engine::Nanos;
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use wire::{Deth, Frame, Gid, HEAD_LEN, Operation, Position, Qpn, Service, Vlan};

/// Bytes of a management datagram (rocev2 facts, CM 1).
pub const MAD_LEN: usize = 256;

/// A datagram that came for queue pair 1: its iCRC, address and VLAN are right, its length is a MAD's. Nothing else was
/// looked at.
#[derive(Clone, Debug)]
pub struct Datagram {
    /// The packet's headers.
    pub frame: Frame,
    /// Who sent it, with which Q_Key.
    pub deth: Deth,
    /// The tag that it came with, in the frame or taken off by the NIC.
    pub vlan: Option<Vlan>,
    /// The MAD.
    pub mad: [u8; MAD_LEN],
}

/// Sources that are told apart; a power of two. Those that share a place share its rate.
const SOURCES: usize = 256;
/// MADs of one source a second: over twenty times what two thousand connections a second take.
const PER_SECOND: u64 = 100_000;
/// MADs of one source in a row: a thousand connections that begin at the same moment.
const BURST: u64 = 1024;
/// Credit of one MAD.
const COST: u64 = 1_000_000_000;

/// How much one source may ask for: a token bucket for each of some hundred shares of the address space. Which
/// addresses share one cannot be known outside.
#[derive(Debug)]
pub(crate) struct Gate {
    hasher: RandomState,
    buckets: Box<[Bucket; SOURCES]>,
}

#[derive(Clone, Copy, Debug)]
struct Bucket {
    /// In billionths of a MAD.
    credit: u64,
    updated: Nanos,
}

impl Default for Gate {
    fn default() -> Self {
        let full = Bucket { credit: BURST * COST, updated: 0 };
        Gate { hasher: RandomState::new(), buckets: Box::new([full; SOURCES]) }
    }
}

impl Gate {
    fn take(&mut self, now: Nanos, source: Gid) -> bool {
        let bucket = &mut self.buckets[self.hasher.hash_one(source.0) as usize % SOURCES];
        let earned = now.saturating_sub(bucket.updated).saturating_mul(PER_SECOND);
        bucket.updated = now;
        bucket.credit = bucket.credit.saturating_add(earned).min(BURST * COST);
        match bucket.credit.checked_sub(COST) {
            Some(rest) => {
                bucket.credit = rest;
                true
            }
            None => false,
        }
    }
}

/// Whether a good frame is for queue pair 1. Other services than UD are not spoken there: the engine counts them as for a QP
/// that does not exist.
#[inline]
pub(crate) fn is_for_gsi(frame: &Frame) -> bool {
    frame.bth().dest_qpn == Qpn::GSI
        && (frame.info.service, frame.info.operation, frame.info.position)
            == (Service::Ud, Operation::Send, Position::Only)
}

impl Lane {
    /// Gives a datagram to the control thread, or counts why not.
    #[cold]
    pub(crate) fn give_mad(&mut self, now: Nanos, mbuf: &Mbuf, frame: &Frame) {
        if let Err(reason) = self.try_give_mad(now, mbuf, frame) {
            self.counters.count_drop(reason);
        }
    }

    fn try_give_mad(&mut self, now: Nanos, mbuf: &Mbuf, frame: &Frame) -> Result<(), Drop> {
        let mut mad = [0; MAD_LEN];
        let whole =
            frame.payload_len() == MAD_LEN && mbuf.copy_to(frame.payload_offset(), &mut mad) == MAD_LEN;
        let deth =
            frame.ext::<Deth>(head(mbuf, &mut [0; HEAD_LEN])).filter(|_| whole).ok_or(Drop::MadLength)?;
        if !self.gate.take(now, frame.src) {
            return Err(Drop::MadRate);
        }
        // A tag that the NIC took off is one of the frame's already.
        if !self.link.push_mad(Datagram { frame: *frame, deth, vlan: frame.vlan, mad }) {
            return Err(Drop::MadRingFull);
        }
        self.counters.traffic.mads += 1;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_source_has_a_burst_and_a_rate_and_leaves_others_theirs() {
        let mut gate = Gate::default();
        let [flood, other] = [Gid::from_v4([10, 0, 0, 1]), Gid::from_v4([10, 0, 0, 2])];
        let share = |gate: &Gate, gid: Gid| gate.hasher.hash_one(gid.0) as usize % SOURCES;
        while share(&gate, flood) == share(&gate, other) {
            gate.hasher = RandomState::new();
        }
        assert_eq!((0..5000).filter(|_| gate.take(7, flood)).count() as u64, BURST);
        assert!(gate.take(7, other), "its share is its own");
        let later = 7 + COST / PER_SECOND;
        assert!(gate.take(later, flood) && !gate.take(later, flood));
        assert_eq!(
            (0..5000).filter(|_| gate.take(u64::MAX / 2, flood)).count() as u64,
            BURST,
            "no more is saved"
        );
    }
}
