//! The requester's window: how many PSNs may be outstanding.
//!
//! It grows by what is acknowledged, doubling from one round trip to the next, until packets are lost. From then on it knows what
//! the way bears: half of what it was, and one packet more for each window that arrives whole. Without that it would overrun the
//! same queue after every loss.

use crate::limits::{WINDOW_MAX, WINDOW_MIN, WINDOW_START};

/// PSNs that may be outstanding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Window {
    size: u32,
    /// From here on it grows by one packet for each window.
    careful_from: u32,
    /// Packets of a window that has not arrived whole.
    part: u32,
}

impl Window {
    /// Of a QP that begins.
    pub const START: Window = Window { size: WINDOW_START, careful_from: WINDOW_MAX, part: 0 };

    /// PSNs.
    #[inline]
    pub fn size(self) -> u32 {
        self.size
    }

    /// So many packets arrived.
    #[inline]
    pub fn grow(&mut self, packets: u32) {
        if self.size < self.careful_from {
            self.size = self.size.saturating_add(packets).min(self.careful_from);
        } else if self.size < WINDOW_MAX {
            self.part += packets;
            if self.part >= self.size {
                self.part -= self.size;
                self.size += 1;
            }
        }
    }

    /// Packets were lost.
    pub fn shrink(&mut self) {
        self.size = (self.size / 2).max(WINDOW_MIN);
        self.careful_from = self.size;
        self.part = 0;
    }
}
