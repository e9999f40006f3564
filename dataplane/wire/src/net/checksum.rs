//! The Internet checksum (RFC 1071).

/// A running ones' complement sum over 16-bit words. Pieces may have any length: an odd piece leaves its last byte
/// waiting for the first of the next.
#[derive(Clone, Copy, Debug, Default)]
pub struct OnesComplement {
    sum: u64,
    odd: bool,
}

impl OnesComplement {
    /// Adds one word; only between whole words.
    pub fn word(&mut self, word: u16) {
        debug_assert!(!self.odd, "a word would straddle two");
        self.sum += u64::from(word);
    }

    /// Adds bytes.
    pub fn bytes(&mut self, mut bytes: &[u8]) {
        if let (true, Some((&low, rest))) = (self.odd, bytes.split_first()) {
            self.sum += u64::from(low);
            self.odd = false;
            bytes = rest;
        }
        let mut words = bytes.chunks_exact(2);
        for word in &mut words {
            self.sum += u64::from(u16::from_be_bytes([word[0], word[1]]));
        }
        if let [high] = words.remainder() {
            self.sum += u64::from(*high) << 8;
            self.odd = true;
        }
    }

    /// The sum folded to 16 bits: 0xFFFF over data with a right checksum in it.
    pub fn folded(self) -> u16 {
        let mut sum = self.sum;
        while sum > 0xFFFF {
            sum = (sum & 0xFFFF) + (sum >> 16);
        }
        sum as u16
    }

    /// The checksum to write.
    pub fn checksum(self) -> u16 {
        !self.folded()
    }
}
