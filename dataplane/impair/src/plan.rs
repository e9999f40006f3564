//! A plan as values. The words for them are in `parse.rs` and `print.rs`.

use crate::{Nanos, PlanError};
use std::num::NonZeroU64;
use wire::{Opcode, Psn, Qpn};

/// Clauses that a plan may have: what may happen to one frame is bounded.
pub const MAX_CLAUSES: usize = 16;
/// Bits that one clause may flip: what the CRC is sure to find in frames of these lengths.
pub(crate) const MAX_BITS: u8 = 3;
/// Bytes of an Ethernet header: no frame is cut shorter, and no bit flips here, where a NIC's own checksum takes care.
pub(crate) const ETHERNET: usize = 14;

/// What happens to frames: clauses, in order, and the number that the dice begin with.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// From `seed N`.
    pub seed: Option<u64>,
    /// At most [`MAX_CLAUSES`]; a [`Stage`](crate::Stage) ignores what is beyond.
    pub clauses: Vec<Clause>,
}

impl Plan {
    /// Reads a plan. The words are explained at the [crate](crate)'s front.
    ///
    /// Errors point at the word that is wrong and say what would be right.
    pub fn parse(text: &str) -> Result<Plan, PlanError> {
        crate::parse::plan(text)
    }
}

impl std::str::FromStr for Plan {
    type Err = PlanError;

    fn from_str(text: &str) -> Result<Plan, PlanError> {
        Plan::parse(text)
    }
}

/// One thing that happens, and to which frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Clause {
    /// What.
    pub action: Action,
    /// How often, among the frames that pass the filter.
    pub when: When,
    /// To which frames.
    pub filter: Filter,
    /// How often at most, in each direction.
    pub times: Times,
}

/// What happens to a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// It vanishes.
    Drop,
    /// An unharmed copy passes too.
    Duplicate,
    /// It is held until so many further frames have passed; at least 1.
    Reorder(u32),
    /// It is held for a time between these two, both included.
    Delay(Nanos, Nanos),
    /// So many of its bits flip, 1 to 3.
    Corrupt(u8),
    /// It ends after so many bytes (14 at least), or anywhere.
    Truncate(Option<u16>),
    /// It is marked "congestion experienced".
    Ce,
}

/// How often a clause strikes, among the frames that pass its filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// Every time.
    Always,
    /// With a probability.
    Chance(Rate),
    /// Each so-many-th time.
    Every(NonZeroU64),
    /// The so-many-th time only; the first is 1.
    Packet(NonZeroU64),
}

/// A probability in parts of a million.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Rate(u32);

impl Rate {
    /// Certainty.
    pub const ONE: Rate = Rate(1_000_000);

    /// So many of a million; more than a million are a million.
    pub const fn per_million(parts: u32) -> Rate {
        Rate(if parts > Rate::ONE.0 { Rate::ONE.0 } else { parts })
    }

    /// So many of a hundred.
    pub const fn percent(percent: u32) -> Rate {
        Rate::per_million(percent.saturating_mul(10_000))
    }

    /// Parts of a million.
    pub const fn parts(self) -> u32 {
        self.0
    }
}

/// Which way a frame goes, as seen from the port.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Direction {
    /// It arrives.
    Rx,
    /// It leaves.
    Tx,
}

/// Which frames a clause is about: all that are told must be so.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    /// Sequence number of the packet.
    pub psn: Option<Psn>,
    /// Destination QP.
    pub qp: Option<Qpn>,
    /// What the packet is.
    pub opcode: Option<Opcode>,
    /// Which way; both, if none.
    pub direction: Option<Direction>,
    /// Also frames that are no RoCE packets; without effect beside `psn`, `qp` or `opcode`.
    pub any: bool,
}

impl Filter {
    /// Asks for something in the packet's BTH.
    pub(crate) fn asks_bth(&self) -> bool {
        self.psn.is_some() || self.qp.is_some() || self.opcode.is_some()
    }
}

/// How often a clause strikes at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Times {
    /// Without end.
    All,
    /// So many times, each way.
    Most(NonZeroU64),
}

impl Times {
    /// What holds when nothing is said: a packet that is named by its PSN is struck once, so that its repetition passes.
    pub fn unsaid(when: When, filter: &Filter) -> Times {
        let once = filter.psn.is_some() && when == When::Always;
        if once { Times::Most(NonZeroU64::MIN) } else { Times::All }
    }
}
