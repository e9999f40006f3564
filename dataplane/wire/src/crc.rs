//! CRC-32 as in Ethernet and zlib.
//!
//! Whole strings go to the crate `crc`. Single bytes are exchanged by table: CRCs of equally long strings add up by XOR, so what a byte
//! changes in the CRC does not depend on its neighbours.
//!
//! A state is the CRC of what was seen so far.

/// The polynomial 0x04C11DB7, reflected.
const POLYNOMIAL: u32 = 0xEDB8_8320;

/// What each byte value does to a state.
pub(crate) type Change = [u32; 256];

/// The state after `bytes`, given the state before.
#[inline]
pub(crate) fn update(crc: u32, bytes: &[u8]) -> u32 {
    ::crc::update(crc, bytes)
}

/// By value: what changes in the state after a string when a byte with `behind` bytes behind it is XORed with the value.
pub(crate) const fn change_after(behind: usize) -> Change {
    change(8 * (behind + 1), true)
}

/// By value: the change of the state before a string that has the same effect as XORing the byte at `offset` with the value.
/// So masked bytes can be accounted for before the string is looked at, however long it is.
pub(crate) const fn change_before(offset: usize) -> Change {
    change(8 * offset, false)
}

/// Every byte value moved through the register by so many zero bits, forward or back.
const fn change(bits: usize, forward: bool) -> Change {
    let mut table = [0; 256];
    // The move is linear: eight values give all.
    let mut bit = 0;
    while bit < 8 {
        let mut register: u32 = 1 << bit;
        let mut step = 0;
        while step < bits {
            register = if forward { next(register) } else { previous(register) };
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

/// The register after a zero bit.
const fn next(register: u32) -> u32 {
    (register >> 1) ^ if register & 1 != 0 { POLYNOMIAL } else { 0 }
}

/// The register before a zero bit: the polynomial has its top bit set, so that bit tells whether it was added.
const fn previous(register: u32) -> u32 {
    if register >> 31 != 0 { (register ^ POLYNOMIAL) << 1 | 1 } else { register << 1 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn check_value() {
        assert_eq!(update(0, b"123456789"), 0xCBF4_3926);
        assert_eq!(update(update(0, b"1234"), b"56789"), 0xCBF4_3926);
    }

    #[test]
    fn a_changed_byte_changes_the_state_by_table() {
        let string: Vec<u8> = (0..60u8).map(|i| i.wrapping_mul(7) + 1).collect();
        let (places, values) = if cfg!(miri) { (29, 85) } else { (1, 1) };
        for at in (0..string.len()).step_by(places) {
            let (after, before) = (change_after(string.len() - 1 - at), change_before(at));
            for value in (0..=255).step_by(values) {
                let mut changed = string.clone();
                changed[at] ^= value;
                let crc = update(0x1234_5678, &changed);
                assert_eq!(crc, update(0x1234_5678, &string) ^ after[usize::from(value)]);
                assert_eq!(crc, update(0x1234_5678 ^ before[usize::from(value)], &string));
            }
        }
    }
}
