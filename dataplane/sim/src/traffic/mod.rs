//! Traffic: random work requests from one QP to another, with the bytes and completions that must come of them.
//!
//! Each request has places of its own in the regions, with gaps between, so that at the end a whole region can be compared
//! with its shadow: what was asked for is there, and nothing else changed. Atomics share a few cells, which only this
//! traffic touches, so that their results follow from the order of posting.

mod layout;
mod plan;
mod post;
mod verify;

use crate::endpoint::Region;
use crate::qp::QpId;
use plan::Op;

/// A kind of work request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// SEND (a datagram on UD).
    Send,
    /// SEND with immediate.
    SendImm,
    /// WRITE.
    Write,
    /// WRITE with immediate.
    WriteImm,
    /// READ.
    Read,
    /// Compare and swap; about half of them swap.
    CompareSwap,
    /// Fetch and add.
    FetchAdd,
}

impl Kind {
    /// Everything that RC does.
    pub const RC: &'static [Kind] = &[
        Kind::Send,
        Kind::SendImm,
        Kind::Write,
        Kind::WriteImm,
        Kind::Read,
        Kind::CompareSwap,
        Kind::FetchAdd,
    ];
    /// Everything that UC does.
    pub const UC: &'static [Kind] = &[Kind::Send, Kind::SendImm, Kind::Write, Kind::WriteImm];
    /// Everything that UD does.
    pub const UD: &'static [Kind] = &[Kind::Send, Kind::SendImm];

    fn is_atomic(self) -> bool {
        matches!(self, Kind::CompareSwap | Kind::FetchAdd)
    }

    fn is_send(self) -> bool {
        matches!(self, Kind::Send | Kind::SendImm)
    }

    fn has_imm(self) -> bool {
        matches!(self, Kind::SendImm | Kind::WriteImm)
    }

    /// The peer needs a receive for it.
    fn takes_receive(self) -> bool {
        self.is_send() || self.has_imm()
    }

    /// Data comes back.
    fn returns_data(self) -> bool {
        self == Kind::Read || self.is_atomic()
    }
}

/// What traffic is made of.
#[derive(Clone, Copy, Debug)]
pub struct Mix {
    /// Work requests; at most the depth of the queues.
    pub requests: usize,
    /// Longest message, bytes.
    pub max_len: u32,
    /// Kinds to choose from.
    pub kinds: &'static [Kind],
}

/// Traffic that was posted.
pub struct Traffic {
    from: QpId,
    to: QpId,
    ops: Vec<Op>,
    regions: Regions,
    shadows: Shadows,
}

/// The regions of one traffic: two at the sender, four at its peer.
struct Regions {
    /// What is sent or written: never changes.
    out: Region,
    /// Where READs and atomics bring their results.
    back: Region,
    /// Where receives lie.
    inbox: Region,
    /// Where WRITEs go.
    target: Region,
    /// What READs read: never changes.
    source: Region,
    /// Where atomics work.
    cells: Region,
}

/// What regions hold when everything has arrived.
struct Shadows {
    back: Vec<u8>,
    inbox: Vec<u8>,
    target: Vec<u8>,
    cells: Vec<u8>,
    /// The target as it was.
    target_before: Vec<u8>,
}
