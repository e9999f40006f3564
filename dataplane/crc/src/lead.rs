//! Bytes that come first and are summed last.

/// Bytes that a lead can be moved over, and one more.
pub(crate) const LEAD_OVER: usize = 512;

/// What differs between strings that begin alike: sixteen bytes of their beginning, of which the state knows nothing. Sums add up by
/// XOR, so they are moved over all that follows while that is summed by itself, and nothing waits for them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lead {
    /// The state before what is summed, were the sixteen bytes zeros.
    pub crc: u32,
    /// The sixteen, the first byte the lowest of the first.
    pub bytes: [u64; 2],
    /// Bytes between them and what is summed, a multiple of 4, at most 16.
    pub behind: usize,
}

impl Lead {
    /// Whether it can be moved over so many bytes that are summed: a multiple of 4, and neither none nor too many.
    #[inline]
    pub const fn reaches(&self, len: usize) -> bool {
        let over = len + self.behind;
        over.is_multiple_of(4) && over > 0 && over < LEAD_OVER
    }

    /// The state before what is summed.
    pub fn state(&self) -> u32 {
        let mut string = [0; 32];
        let (first, rest) = string.split_at_mut(8);
        first.copy_from_slice(&self.bytes[0].to_le_bytes());
        rest[..8].copy_from_slice(&self.bytes[1].to_le_bytes());
        // From a register of zeros on, zeros before the sixteen would change nothing.
        let string = &string[..16 + self.behind.min(16)];
        self.crc ^ !crate::update(!0, string)
    }
}
