//! Packets of UC whose memory is read after they have left: who lent it, and how far a QP's requests are done when it comes back.
//!
//! Nothing else ends them, since nobody acknowledges them. A sink numbers its loans ([`PacketSink::take_loan`](crate::PacketSink::take_loan)), which
//! come back in this order.

use std::collections::VecDeque;
use wire::{Psn, Qpn};

/// Turns of QPs that may wait: more than there are packets on a wire that passes lent ones on.
const MOST: usize = 2048;

/// What a QP has sent in a turn.
#[derive(Clone, Copy, Debug)]
struct Note {
    /// The last loan that something of it, or of what the QP has sent before, is in.
    loan: u64,
    qpn: Qpn,
    /// The PSN behind it.
    end: Psn,
}

/// What is lent, in the order of its leaving.
#[derive(Debug, Default)]
pub(crate) struct Loans(VecDeque<Note>);

impl Loans {
    /// Makes room, so that no packet allocates.
    pub fn prepare(&mut self) {
        self.0.reserve(MOST - self.0.len());
    }

    /// There is no room: nothing that may be lent can leave.
    #[inline]
    pub fn is_full(&self) -> bool {
        self.0.len() >= MOST
    }

    /// A QP has sent packets up to `end`, which are done when this loan has come back.
    pub fn note(&mut self, loan: u64, qpn: Qpn, end: Psn) {
        match self.0.back_mut() {
            Some(last) if (last.loan, last.qpn) == (loan, qpn) => last.end = end,
            _ => self.0.push_back(Note { loan, qpn, end }),
        }
    }

    /// The oldest note of the loans up to this one: a QP, and the PSN that it is done before.
    pub fn take(&mut self, loan: u64) -> Option<(Qpn, Psn)> {
        let note = *self.0.front().filter(|note| note.loan <= loan)?;
        self.0.pop_front();
        Some((note.qpn, note.end))
    }

    /// A QP is gone, or has nothing that waits.
    pub fn forget(&mut self, qpn: Qpn) {
        self.0.retain(|note| note.qpn != qpn);
    }
}
