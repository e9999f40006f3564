//! A request that was seen before to the last bit: did its sender send it again, or did the network double it?
//!
//! Nothing in the packet tells. It counts as sent again when something asks for it: a sequence NAK for it or for what is shortly
//! before it; the packet before it, that was sent again itself (a requester goes back and sends all from there on); an RNR timer
//! that has run out; or so much time as timeouts take and no network holds a copy back. Otherwise the network doubled it. UC
//! repeats nothing, so there it is always the network.

use crate::record::At;

/// Longest time by which a copy comes after the frame that it copies, nanoseconds.
const LATEST_COPY_NS: u64 = 1_000_000;

/// So many packets of those that are sent again may be lost in a row before they are seen.
const MOST_LOST: u64 = 16;

/// Where the next packet of those that are sent again is expected.
#[derive(Debug, Default)]
pub struct Repeats {
    next: Option<At>,
}

impl Repeats {
    /// All from `at` on was asked for, or is sent again.
    pub fn begin(&mut self, at: At) {
        self.next = Some(at);
    }

    /// A new request: nothing is sent again any more.
    pub fn over(&mut self) {
        self.next = None;
    }

    /// A packet at `at` that was last seen so long ago is sent again.
    pub fn has(&self, at: At, since_ns: u64) -> bool {
        let next = self.next.is_some_and(|next| (next..next + MOST_LOST).contains(&at));
        next || since_ns >= LATEST_COPY_NS
    }
}
