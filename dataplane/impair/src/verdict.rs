//! What becomes of one frame.

use crate::Nanos;
use crate::plan::{MAX_BITS, MAX_CLAUSES};
use arrayvec::ArrayVec;

/// Flipped bits of every clause, and what a CE mark changes: one byte of the IP header and two of its checksum.
const MAX_CHANGES: usize = MAX_CLAUSES * MAX_BITS as usize + 3;

/// Bits of one byte of a frame that flip.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Change {
    /// Offset from the start of the frame, within its length.
    pub at: u16,
    /// The bits.
    pub flip: u8,
}

/// How long a frame is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hold {
    /// Until so many further frames have passed.
    Frames(u32),
    /// Until a time.
    Until(Nanos),
}

/// What becomes of one frame: copies pass at once and unharmed, then the frame itself is changed, and passes or is held.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Verdict {
    pub(crate) dropped: bool,
    pub(crate) copies: u8,
    pub(crate) marked: bool,
    pub(crate) len: Option<u16>,
    pub(crate) hold: Option<Hold>,
    pub(crate) changes: ArrayVec<Change, MAX_CHANGES>,
}

impl Verdict {
    /// Nothing happens to it.
    pub fn is_pass(&self) -> bool {
        *self == Verdict::default()
    }

    /// It vanishes; of copies that came before, see [`copies`](Self::copies).
    pub fn is_dropped(&self) -> bool {
        self.dropped
    }

    /// So many copies of the frame as it came pass too: behind it when it passes, alone when it is dropped or held.
    pub fn copies(&self) -> usize {
        self.copies.into()
    }

    /// The length that it is cut to.
    #[expect(clippy::len_without_is_empty, reason = "of the frame, not of the verdict")]
    pub fn len(&self) -> Option<usize> {
        self.len.map(usize::from)
    }

    /// It passes later. `None`: at once.
    pub fn hold(&self) -> Option<Hold> {
        self.hold
    }

    /// What changes in its bytes. Offsets beyond [`len`](Self::len) do not occur.
    pub fn changes(&self) -> &[Change] {
        &self.changes
    }

    /// Changes a frame that lies in one piece and gives the length to cut it to.
    pub fn apply(&self, frame: &mut [u8]) -> usize {
        for change in &self.changes {
            if let Some(byte) = frame.get_mut(usize::from(change.at)) {
                *byte ^= change.flip;
            }
        }
        self.len().unwrap_or(frame.len()).min(frame.len())
    }

    /// Adds a change; there is room for all that a plan's clauses may do.
    pub(crate) fn flip(&mut self, at: usize, flip: u8) {
        if let (Ok(at), true) = (u16::try_from(at), flip != 0) {
            let _ = self.changes.try_push(Change { at, flip });
        }
    }

    pub(crate) fn cut(&mut self, len: usize) {
        self.len = u16::try_from(len).ok();
        self.changes.retain(|change| usize::from(change.at) < len);
    }
}
