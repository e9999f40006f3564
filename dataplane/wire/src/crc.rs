//! CRC-32 as in Ethernet and zlib, for the short pieces that headers are made of.
//!
//! `crc32fast` is as fast as memory from 128 bytes on, but takes what is left over below 16 (or, in short inputs, 64) bytes
//! one at a time: more than the whole rest of a small packet. So long pieces go to it in multiples of 16, and short ones
//! here, up to 16 bytes a step ("slicing").
//!
//! A state is the CRC of what was seen so far, complemented as usual: the form that `crc32fast` takes and gives.

/// From so many bytes on `crc32fast` uses carry-less multiplication.
const LONG: usize = 128;

/// Bytes per step.
const SLICE: usize = 16;

/// `TABLES[k][b]`: the register, from zero, after byte `b` and `k` zero bytes.
static TABLES: [[u32; 256]; SLICE] = {
    let mut tables = [[0; 256]; SLICE];
    let mut k = 0;
    while k < SLICE {
        tables[k] = byte_before_zeros(k);
        k += 1;
    }
    tables
};

/// The polynomial 0x04C11DB7, reflected.
const POLYNOMIAL: u32 = 0xEDB8_8320;

/// By byte: the register, from zero, after that byte and `zeros` zero bytes. CRCs of equally long strings add up by XOR
/// (from a zero register), so with this table a byte can be put into a string whose CRC is known.
pub(crate) const fn byte_before_zeros(zeros: usize) -> [u32; 256] {
    let mut table = [0; 256];
    // A register is as linear in its byte: eight values give all.
    let mut bit = 0;
    while bit < 8 {
        let mut register = 1 << bit;
        let mut step = 0;
        while step < 8 * (zeros + 1) {
            register = (register >> 1) ^ if register & 1 != 0 { POLYNOMIAL } else { 0 };
            step += 1;
        }
        let mut below = 0;
        while below < 1 << bit {
            table[below | 1 << bit] = table[below] ^ register;
            below += 1;
        }
        bit += 1;
    }
    table
}

/// The CRC after `bytes`, given the CRC before.
#[inline]
pub(crate) fn update(crc: u32, bytes: &[u8]) -> u32 {
    if bytes.len() < LONG {
        return short(crc, bytes);
    }
    let (long, rest) = bytes.split_at(bytes.len() & !(SLICE - 1));
    let mut hasher = crc32fast::Hasher::new_with_initial(crc);
    hasher.update(long);
    short(hasher.finalize(), rest)
}

#[inline]
fn short(crc: u32, bytes: &[u8]) -> u32 {
    let mut register = !crc;
    let mut rest = bytes;
    while let Some((slice, tail)) = rest.split_first_chunk::<SLICE>() {
        register = step(register, slice);
        rest = tail;
    }
    if let Some((eight, tail)) = rest.split_first_chunk::<8>() {
        register = step(register, eight);
        rest = tail;
    }
    if let Some((four, tail)) = rest.split_first_chunk::<4>() {
        register = step(register, four);
        rest = tail;
    }
    for &byte in rest {
        register = register >> 8 ^ TABLES[0][usize::from(register as u8 ^ byte)];
    }
    !register
}

/// `N` bytes at once, at least four: the register folds into the first four, every byte counts by its distance from the end.
#[inline(always)]
fn step<const N: usize>(register: u32, bytes: &[u8; N]) -> u32 {
    let head = u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]) ^ register;
    let mut sum = 0;
    for (i, byte) in head.to_le_bytes().into_iter().enumerate() {
        sum ^= TABLES[N - 1 - i][usize::from(byte)];
    }
    for (i, &byte) in bytes.iter().enumerate().skip(4) {
        sum ^= TABLES[N - 1 - i][usize::from(byte)];
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn check_value() {
        assert_eq!(update(0, b"123456789"), 0xCBF4_3926);
    }

    #[test]
    fn every_length_and_split_agrees_with_crc32fast() {
        let bytes: Vec<u8> = (0..400u32).map(|i| (i * 7 + 3) as u8).collect();
        for len in 0..=bytes.len() {
            let whole = crc32fast::hash(&bytes[..len]);
            for split in [0, len / 3, len / 2, len] {
                let crc = update(update(0, &bytes[..split]), &bytes[split..len]);
                assert_eq!(crc, whole, "{len} bytes split at {split}");
            }
        }
    }
}
