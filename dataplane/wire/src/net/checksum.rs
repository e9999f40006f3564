//! The Internet checksum (RFC 1071).

use std::slice::ChunksExact;

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
        let mut quads = bytes.chunks_exact(4);
        self.sum += quads_sum(&mut quads);
        let mut words = quads.remainder().chunks_exact(2);
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
        fold(self.sum)
    }

    /// The checksum to write.
    pub fn checksum(self) -> u16 {
        !self.folded()
    }
}

/// The sum of four bytes at a time: 2^16 is 1 in this arithmetic, so that folding adds the halves up. It does not depend on the
/// order of the bytes in a word, so that they are swapped once, at the end: whoever floods a port with wrong checksums pays for
/// every byte, and so do we.
fn quads_sum(quads: &mut ChunksExact<'_, u8>) -> u64 {
    let sum =
        quads.fold(0, |sum, quad| sum + u64::from(u32::from_ne_bytes([quad[0], quad[1], quad[2], quad[3]])));
    u64::from(fold(sum).to_be())
}

fn fold(mut sum: u64) -> u16 {
    while sum > 0xFFFF {
        sum = (sum & 0xFFFF) + (sum >> 16);
    }
    sum as u16
}

#[cfg(test)]
mod tests {
    use super::OnesComplement;

    fn byte_by_byte(bytes: &[u8]) -> u16 {
        let mut sum: u32 = 0;
        for (at, &byte) in bytes.iter().enumerate() {
            sum += if at % 2 == 0 { u32::from(byte) << 8 } else { u32::from(byte) };
            sum = (sum & 0xFFFF) + (sum >> 16);
        }
        sum as u16
    }

    /// Every length at every alignment, in one piece and cut in two anywhere: the sum is that of the bytes one after the other.
    #[test]
    fn any_cut_at_any_alignment_is_the_sum_of_its_bytes() {
        let (begins, lengths) = if cfg!(miri) { (2, 0..=9) } else { (8, 0..=130) };
        for fill in
            [|at: usize| (at * 151 + 89) as u8, |_| 0xFF, |_| 0, |at| if at % 4 == 0 { 0xFF } else { 0 }]
        {
            let bytes: Vec<u8> = (0..160).map(fill).collect();
            for (begin, len) in (0..begins).flat_map(|begin| lengths.clone().map(move |len| (begin, len))) {
                let piece = &bytes[begin..begin + len];
                let right = byte_by_byte(piece);
                for cut in 0..=len {
                    let mut sum = OnesComplement::default();
                    sum.bytes(&piece[..cut]);
                    sum.bytes(&piece[cut..]);
                    assert_eq!(sum.folded(), right, "{len} bytes at {begin}, cut at {cut}");
                }
            }
        }
    }

    #[test]
    fn long_sums_lose_no_carry() {
        let ones = vec![0xFF; if cfg!(miri) { 64 } else { 65_536 }];
        let mut sum = OnesComplement::default();
        (0..64).for_each(|_| sum.bytes(&ones));
        sum.word(1);
        assert_eq!(sum.folded(), 1);
    }
}
