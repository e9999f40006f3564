//! The bytes of a checked message, and whether they arrived.
//!
//! Each message of a run differs from every other in all its words, and each word of it from every other, so
//! a byte that is lost, old, doubled or in the wrong place shows. The first up to 8 bytes carry the message's
//! number (masked per QP), which is how a receiver of an unreliable service knows what it got.

use memory::Buffer;
use std::fmt;

/// Bytes compared at a time.
const PIECE: usize = 4096;
/// Bytes that carry the number.
const HEAD: usize = 8;
/// Odd, so that multiples of it repeat only after 2^64: 2^64 divided by the golden ratio.
const STEP: u64 = 0x9E37_79B9_7F4A_7C15;

/// Mixes all bits of a number into all bits of the result (the finalizer of splitmix64).
fn mix(value: u64) -> u64 {
    let value = (value ^ (value >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    value ^ (value >> 31)
}

/// The messages of one QP and direction.
#[derive(Clone, Copy, Debug)]
pub struct Pattern {
    mask: u64,
}

/// A message that is not what was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mismatch {
    /// The message's number on its QP.
    pub message: u64,
    /// The first wrong byte in the message.
    pub byte: u64,
    /// What it should be.
    pub expected: u8,
    /// What it is.
    pub found: u8,
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Mismatch { message, byte, expected, found } = self;
        write!(f, "message {message}: byte {byte} is {found:#04x}, not {expected:#04x}")
    }
}

impl Pattern {
    /// The messages that QP number `qp` of a run carries towards the server (or away from it).
    pub fn new(seed: u64, qp: usize, to_server: bool) -> Pattern {
        Pattern { mask: mix(seed ^ mix((qp as u64) << 1 | u64::from(to_server))) }
    }

    /// Fills `piece` with the bytes of message `number` from byte `at` (a multiple of 8).
    pub fn fill(&self, number: u64, at: u64, piece: &mut [u8]) {
        debug_assert_eq!(at % 8, 0, "pieces begin on words");
        let head = number ^ self.mask;
        let mut word = mix(head).wrapping_add((at / 8).wrapping_mul(STEP));
        let mut words = piece.chunks_exact_mut(8);
        for bytes in &mut words {
            bytes.copy_from_slice(&word.to_le_bytes());
            word = word.wrapping_add(STEP);
        }
        let rest = words.into_remainder();
        let len = rest.len();
        rest.copy_from_slice(&word.to_le_bytes()[..len]);
        if at == 0 {
            let len = piece.len().min(HEAD);
            piece[..len].copy_from_slice(&head.to_le_bytes()[..len]);
        }
    }

    /// The number of the message that begins with `head`, if it is the first one at or after `from` that
    /// fits. A message of less than 8 bytes only tells its number's low bytes; an empty one tells nothing and
    /// counts as `from`.
    pub fn number_of(&self, head: &[u8], from: u64) -> u64 {
        let len = head.len().min(HEAD);
        if len == 0 {
            return from;
        }
        let mut bytes = [0; HEAD];
        bytes[..len].copy_from_slice(&head[..len]);
        let all = u64::MAX >> (64 - 8 * len);
        let low = (u64::from_le_bytes(bytes) ^ self.mask) & all;
        from.wrapping_add(low.wrapping_sub(from) & all)
    }

    /// Writes message `number` of `len` bytes to `offset`. The range is inside the buffer.
    pub fn write(&self, number: u64, buffer: &Buffer, offset: u64, len: u32) {
        let mut piece = [0; PIECE];
        for (at, part) in pieces(len) {
            self.fill(number, at, &mut piece[..part]);
            inside(buffer.write((offset + at) as usize, &piece[..part]));
        }
    }

    /// Compares `len` bytes at `offset` with message `number`. The range is inside the buffer.
    pub fn check(&self, number: u64, buffer: &Buffer, offset: u64, len: u32) -> Result<(), Mismatch> {
        let mut expected = [0; PIECE];
        let mut found = [0; PIECE];
        for (at, part) in pieces(len) {
            self.fill(number, at, &mut expected[..part]);
            inside(buffer.read((offset + at) as usize, &mut found[..part]));
            if expected[..part] != found[..part] {
                let wrong = (0..part).find(|&byte| expected[byte] != found[byte]).unwrap_or(0);
                let byte = at + wrong as u64;
                return Err(Mismatch {
                    message: number,
                    byte,
                    expected: expected[wrong],
                    found: found[wrong],
                });
            }
        }
        Ok(())
    }
}

/// (offset, length) of each piece of a message.
fn pieces(len: u32) -> impl Iterator<Item = (u64, usize)> {
    let len = u64::from(len);
    (0..len).step_by(PIECE).map(move |at| (at, (len - at).min(PIECE as u64) as usize))
}

/// The layout computes every offset from the buffer's length, so a range outside of it is a fault of this
/// module.
pub(super) fn inside<E: fmt::Display>(result: Result<(), E>) {
    if let Err(why) = result {
        panic!("a slot lies outside of its area: {why}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn buffer(len: u32) -> Buffer {
        Buffer::new(len as usize + 64).unwrap()
    }

    #[test]
    fn what_was_written_is_found() {
        let pattern = Pattern::new(7, 3, true);
        for len in [0, 1, 7, 8, 9, 64, 4095, 4096, 4097, 65537] {
            let buffer = buffer(len);
            pattern.write(12345, &buffer, 64, len);
            assert_eq!(pattern.check(12345, &buffer, 64, len), Ok(()), "{len}");
        }
    }

    #[test]
    fn every_corrupted_byte_is_found_where_it_is() {
        let pattern = Pattern::new(7, 3, true);
        let len = 5000;
        let buffer = buffer(len);
        pattern.write(9, &buffer, 0, len);
        for byte in 0..len {
            let mut was = [0];
            buffer.read(byte as usize, &mut was).unwrap();
            buffer.write(byte as usize, &[was[0] ^ 0x10]).unwrap();
            let mismatch = pattern.check(9, &buffer, 0, len).unwrap_err();
            assert_eq!(
                (mismatch.byte, mismatch.expected, mismatch.found),
                (byte.into(), was[0], was[0] ^ 0x10)
            );
            buffer.write(byte as usize, &was).unwrap();
        }
        assert_eq!(pattern.check(9, &buffer, 0, len), Ok(()));
    }

    #[test]
    fn old_foreign_and_misplaced_bytes_are_found() {
        let pattern = Pattern::new(7, 3, true);
        let buffer = buffer(8192);
        pattern.write(9, &buffer, 0, 8192);
        assert_eq!(pattern.check(10, &buffer, 0, 8192).unwrap_err().byte, 0, "another message");
        for other in [Pattern::new(8, 3, true), Pattern::new(7, 2, true), Pattern::new(7, 3, false)] {
            assert!(other.check(9, &buffer, 0, 8192).is_err());
        }
        // A packet of the message before in the middle, and two packets in each other's place.
        let (mut old, mut first, mut second) = ([0; 1024], [0; 1024], [0; 1024]);
        pattern.fill(8, 4096, &mut old);
        buffer.read(4096, &mut first).unwrap();
        buffer.read(5120, &mut second).unwrap();
        buffer.write(4096, &old).unwrap();
        assert_eq!(pattern.check(9, &buffer, 0, 8192).unwrap_err().byte, 4096);
        buffer.write(4096, &second).unwrap();
        buffer.write(5120, &first).unwrap();
        assert_eq!(pattern.check(9, &buffer, 0, 8192).unwrap_err().byte, 4096);
    }

    #[test]
    fn a_message_tells_its_number() {
        let pattern = Pattern::new(1, 0, false);
        let head = |number, len: usize| {
            let mut bytes = [0; 16];
            pattern.fill(number, 0, &mut bytes[..len]);
            bytes[..len].to_vec()
        };
        assert_eq!(pattern.number_of(&head(1 << 40, 16), 5), 1 << 40);
        assert_eq!(pattern.number_of(&head(1000, 1), 999), 1000, "one byte: the next number that fits");
        assert_eq!(pattern.number_of(&head(1000, 2), 1000), 1000);
        assert_eq!(pattern.number_of(&[], 77), 77);
    }
}
