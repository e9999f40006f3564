//! Requests that were seen: PSNs without wrap, and one record per request packet.

use wire::{AtomicEth, Mtu, OpcodeInfo, Operation, Psn, Reth, packets};

/// A PSN counted on without wrapping, so that it can be compared.
pub type At = u64;

/// Where counting begins: far enough from zero that nothing reaches back below it.
pub const BEGIN: At = 1 << 40;

/// The place of a PSN that lies nearest to `near`.
pub fn unwrap(psn: Psn, near: At) -> At {
    near.wrapping_add_signed(i64::from(psn.distance_from(psn_at(near))))
}

/// The PSN at a place.
pub fn psn_at(at: At) -> Psn {
    Psn::new(at as u32)
}

/// A request packet.
#[derive(Clone, Debug)]
pub struct Record {
    pub at: At,
    pub info: &'static OpcodeInfo,
    /// Bytes of payload.
    pub len: u32,
    /// What memory it names, if it does.
    pub reth: Option<Reth>,
    pub digest: Option<u32>,
    pub icrc: Option<u32>,
    /// When it was last seen, network duplicates left out, nanoseconds.
    pub seen_ns: u64,
    /// How often.
    pub times: u32,
    /// All before it was acknowledged when it was first seen.
    pub alone: bool,
    /// Where the First of its WRITE is, when all between was seen.
    pub head: Option<At>,
    /// Messages that ended up to here, this one included.
    pub ended: Option<u64>,
    /// Packets into a READ at which it was asked for again.
    pub restarts: Vec<u32>,
    /// The value that an atomic was answered with.
    pub original: Option<u64>,
    /// Answers of a READ, atomic, FLUSH or ATOMIC WRITE that were seen in their order.
    pub answered: u32,
    /// The answer that follows the last that was seen.
    pub run: u32,
}

impl Record {
    /// PSNs that it takes; `None` for a READ of unknown path MTU that may take several.
    pub fn span(&self, mtu: Option<Mtu>) -> Option<u32> {
        match (self.info.operation, self.reth) {
            (Operation::ReadRequest, Some(Reth { dma_len, .. })) if dma_len > Mtu::Mtu256.bytes() => {
                mtu.map(|mtu| packets(dma_len, mtu))
            }
            _ => Some(1),
        }
    }

    /// The same at most.
    pub fn longest_span(&self, mtu: Option<Mtu>) -> u32 {
        let longest = || packets(self.reth.map_or(0, |reth| reth.dma_len), Mtu::Mtu256);
        self.span(mtu).unwrap_or_else(longest)
    }

    /// Bytes that the answers to a READ carry.
    pub fn read_len(&self) -> u32 {
        match self.info.operation {
            Operation::ReadRequest => self.reth.map_or(0, |reth| reth.dma_len),
            _ => 0,
        }
    }

    /// Its answers are packets of their own, not an ACK.
    pub fn has_own_answer(&self) -> bool {
        self.info.operation == Operation::ReadRequest || self.is_atomic() || self.draws_empty_response()
    }

    pub fn is_atomic(&self) -> bool {
        matches!(self.info.operation, Operation::CompareSwap | Operation::FetchAdd)
    }

    /// FLUSH and ATOMIC WRITE are answered by an empty READ response.
    pub fn draws_empty_response(&self) -> bool {
        matches!(self.info.operation, Operation::Flush | Operation::AtomicWrite)
    }

    /// A key and a range that a responder can refuse: named by this packet, or by its message. Nothing is looked at for zero
    /// bytes (IBA C9-88).
    pub fn names_memory(&self) -> bool {
        match self.info.operation {
            Operation::Write | Operation::WriteImm | Operation::ReadRequest => {
                self.reth.is_none_or(|reth| reth.dma_len > 0)
            }
            // The key to invalidate.
            Operation::SendInv => true,
            _ => self.has_own_answer(),
        }
    }
}

/// What a request names: its RETH, or the same from an AtomicETH.
pub fn memory_of(reth: Option<Reth>, atomic: Option<AtomicEth>) -> Option<Reth> {
    reth.or(atomic.map(|atomic| Reth { va: atomic.va, rkey: atomic.rkey, dma_len: 8 }))
}
