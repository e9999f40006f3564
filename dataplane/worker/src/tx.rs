//! Transmit: the engine fills a burst, the port takes it. What it does not take stays in front, in order.

use crate::lane::Lane;
use crate::lend::Lending;
use crate::loans::Loans;
use crate::loopback::Loopback;
use crate::seal::Unsealed;
use crate::sink::BurstSink;
use dpdk::{Mbuf, MbufBurst, Mempool, Reserve};
use engine::Nanos;
use memory::HostMemory;
use std::sync::Arc;
use wire::{Icrc, Service};

/// Frames of one transmit burst.
pub(crate) const TX_BURST: usize = 32;

/// Bursts per poll: then the receive queue has its turn.
const BURSTS: usize = 4;

/// Tries to empty the last burst before a worker ends: a port that takes nothing does not keep it.
const FLUSH_TRIES: usize = 1000;

/// Frames that the port has not taken, and what new ones are made of.
#[derive(Debug)]
pub(crate) struct Outgoing {
    pub burst: MbufBurst<TX_BURST>,
    /// Bytes of the burst: counted as it grows, while its frames are in the first cache. Not used where an impairment plan changes what
    /// is sent.
    pub bytes: usize,
    /// The one of the burst that lacks its iCRC.
    pub unsealed: Unsealed,
    /// Sealed packets to ourselves.
    pub looped: Loopback,
    /// Empty buffers.
    pub fresh: Reserve,
    pub pool: Arc<Mempool>,
    pub memory: HostMemory,
    /// How long payloads leave without being copied, where they can.
    pub lending: Option<Lending>,
    /// IPv4 identification of the last frame or run. Nobody reassembles, but it tells captures apart.
    pub ip_id: u16,
}

impl Outgoing {
    pub fn new(pool: Arc<Mempool>, memory: HostMemory, lending: Option<Lending>) -> Outgoing {
        let (burst, looped, fresh) = (MbufBurst::new(), Loopback::new(), Reserve::new(Arc::clone(&pool)));
        let unsealed = Unsealed::default();
        Outgoing { burst, bytes: 0, unsealed, looped, fresh, pool, memory, lending, ip_id: 0 }
    }

    pub fn is_empty(&self) -> bool {
        self.burst.is_empty() && self.looped.is_empty()
    }

    /// A payload of this service can leave without being copied.
    #[inline]
    pub fn lends(&self, service: Service) -> bool {
        self.lending.as_ref().is_some_and(|lending| lending.lends(service))
    }

    /// The same, and one buffer is all of its frame.
    #[inline]
    pub fn lends_in_one(&self, service: Service) -> bool {
        self.lending.as_ref().is_some_and(|lending| lending.is_in_one() && lending.lends(service))
    }

    /// Adds a frame to the burst, which has room.
    #[inline]
    pub fn push(&mut self, frame: Mbuf) {
        self.bytes += frame.pkt_len();
        let _ = self.burst.push(frame);
    }

    /// The same for one that lacks its iCRC: see [`Unsealed::add`].
    #[inline]
    pub fn push_unsealed(&mut self, frame: Mbuf, begin: usize, icrc: Icrc) {
        self.bytes += frame.pkt_len();
        self.unsealed.add(&mut self.burst, frame, begin, icrc);
    }
}

impl Lane {
    /// Sends what the engine has to send, as far as the port takes it. True when something was sent.
    pub(crate) fn transmit(&mut self, now: Nanos) -> bool {
        let mut sent = self.end_loans(now);
        for _ in 0..BURSTS {
            self.take_injected();
            if !self.engine.is_idle() {
                let mut sink = BurstSink {
                    outgoing: &mut self.outgoing,
                    traffic: &mut self.counters.traffic,
                    groups: &self.groups,
                };
                self.engine.poll_transmit(now, &mut sink);
            }
            if self.outgoing.burst.is_empty() && !self.held_frames_leave(now) {
                break;
            }
            let all = self.flush_burst(now, &mut sent);
            if !all || self.engine.is_idle() {
                break;
            }
        }
        sent || !self.outgoing.looped.is_empty()
    }

    /// Tells the engine which of the payloads that it has lent are read no more. True when there were any.
    #[inline]
    fn end_loans(&mut self, now: Nanos) -> bool {
        let loans = self.outgoing.lending.as_mut().and_then(Lending::loans);
        let Some(loan) = loans.and_then(Loans::come_back) else { return false };
        self.engine.on_returned(now, loan);
        true
    }

    /// Sends what is sealed, for a bounded number of tries.
    pub(crate) fn flush(&mut self, now: Nanos) {
        for _ in 0..FLUSH_TRIES {
            if self.outgoing.burst.is_empty() && !self.held_frames_leave(now) {
                break;
            }
            self.flush_burst(now, &mut false);
        }
    }

    /// Frames that an impairment plan held, or multiplied, are to be sent now.
    fn held_frames_leave(&self, now: Nanos) -> bool {
        self.impaired.as_ref().is_some_and(|impaired| impaired.has_to_send(now))
    }

    /// Gives the burst to the port. True when it took everything.
    fn flush_burst(&mut self, now: Nanos, sent: &mut bool) -> bool {
        let Outgoing { unsealed, burst, bytes, .. } = &mut self.outgoing;
        unsealed.seal(burst);
        let (burst, before) = match &mut self.impaired {
            None => (burst, *bytes),
            Some(impaired) => {
                let burst = impaired.next_burst(now, burst);
                let before = bytes_of(burst);
                (burst, before)
            }
        };
        debug_assert_eq!(before, bytes_of(burst));
        let count = self.tx.burst(burst);
        // A port that is full takes nothing, for poll after poll; one that is not takes all.
        *bytes = if count == 0 { before } else { bytes_of(burst) };
        let traffic = &mut self.counters.traffic;
        traffic.tx_frames += count as u64;
        traffic.tx_bytes += (before - *bytes) as u64;
        *sent |= count != 0;
        if burst.is_empty() {
            return true;
        }
        traffic.tx_full += 1;
        false
    }
}

fn bytes_of(burst: &MbufBurst<TX_BURST>) -> usize {
    burst.as_slice().iter().map(Mbuf::pkt_len).sum()
}
