//! The requester's window: how many PSNs may be outstanding.
//!
//! It grows by what is acknowledged, doubling from one round trip to the next, until packets are lost. From then on it knows what
//! the way bears: half of what it was, and one packet more for each window that arrives whole. Without that it would overrun the
//! same queue after every loss. Where the wire is known to hold no more than so many packets, it never grows beyond: a receiver that is
//! away for a moment then finds them all.

use crate::limits::{WINDOW_MAX, WINDOW_MIN, WINDOW_START};

const _: () = assert!(WINDOW_MAX <= u16::MAX as u32);

/// PSNs that may be outstanding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Window {
    size: u32,
    /// From here on it grows by one packet for each window.
    careful_from: u16,
    /// Packets of a window that has not arrived whole.
    part: u32,
    /// It grows to here.
    most: u16,
}

impl Window {
    /// Of a QP that begins, on a wire that holds so many packets.
    pub fn up_to(most: u32) -> Window {
        let most = most.clamp(WINDOW_MIN, WINDOW_MAX) as u16;
        Window { size: WINDOW_START.min(most.into()), careful_from: most, part: 0, most }
    }

    /// Forgets what it has learnt.
    pub fn restart(&mut self) {
        *self = Window::up_to(self.most.into());
    }

    /// PSNs.
    #[inline]
    pub fn size(self) -> u32 {
        self.size
    }

    /// So many packets arrived.
    #[inline]
    pub fn grow(&mut self, packets: u32) {
        if self.size < u32::from(self.careful_from) {
            self.size = self.size.saturating_add(packets).min(self.careful_from.into());
        } else if self.size < u32::from(self.most) {
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
        self.careful_from = self.size as u16;
        self.part = 0;
    }
}
