//! What carry-less multiplication takes: powers of x modulo the polynomial, and the quotient of Barrett's reduction. All reflected,
//! as CRC-32 is: the lowest bit stands for the highest power.

use crate::LEAD_OVER;

/// The polynomial of CRC-32, without its highest power.
const POLYNOMIAL: u32 = 0xEDB8_8320;

/// A power of x moved on by one.
const fn next(power: u32) -> u32 {
    (power >> 1) ^ if power & 1 != 0 { POLYNOMIAL } else { 0 }
}

/// x^`power` modulo the polynomial. The lowest bit stands for x^32, so that the product with 64 bits is of 96.
pub const fn power(power: u32) -> u64 {
    let (mut value, mut done) = (1u32 << 31, 0);
    while done < power {
        value = next(value);
        done += 1;
    }
    (value as u64) << 1
}

/// What moves the two halves of 16 bytes over so many bytes.
pub const fn over(bytes: u32) -> [u64; 2] {
    [power(8 * bytes + 32), power(8 * bytes - 32)]
}

/// The polynomial; the lowest bit stands for x^32.
const WHOLE: u64 = (POLYNOMIAL as u64) << 1 | 1;

/// x^96 divided by the polynomial, without the remainder. The lowest bit stands for x^64; that of x^0 has no room, and is not needed.
const QUOTIENT: u64 = {
    let (mut rest, mut quotient, mut at) = (1u64, 0, 0);
    // `rest` is what is left of the 33 highest powers, its lowest bit that of the highest.
    while at < 64 {
        if rest & 1 != 0 {
            quotient |= 1 << at;
            rest ^= WHOLE;
        }
        rest >>= 1;
        at += 1;
    }
    quotient
};

/// What the last step multiplies by.
#[repr(C, align(16))]
pub struct Last {
    /// The first half of 16 bytes becomes 12 with it, together with the second.
    pub half: [u64; 2],
    /// The quotient, and the polynomial.
    pub barrett: [u64; 2],
}

pub static LAST: Last = Last { half: over(16), barrett: [QUOTIENT, WHOLE] };

/// Sixteen bytes each: what moves them to the end of 256 bytes, from place to place; the last are there.
#[repr(C, align(64))]
pub struct ToEnd(pub [[u64; 2]; 16]);

pub static TO_END: ToEnd = ToEnd({
    let mut table = [[0; 2]; 16];
    let mut at = 0;
    while at < 15 {
        table[at] = over(16 * (15 - at as u32));
        at += 1;
    }
    table
});

/// What moves 16 bytes over 4 times the place that follow them. That at 0 moves nothing right.
pub static OVER_FOURS: [[u64; 2]; LEAD_OVER / 4] = {
    let mut table = [[0; 2]; LEAD_OVER / 4];
    // The powers of 0 and 64: of the second entry.
    let (mut low, mut high) = (1u32 << 31, (power(64) >> 1) as u32);
    let mut at = 1;
    while at < table.len() {
        table[at] = [(high as u64) << 1, (low as u64) << 1];
        let mut bit = 0;
        while bit < 32 {
            (low, high) = (next(low), next(high));
            bit += 1;
        }
        at += 1;
    }
    table
};

pub static OVER_128: [u64; 2] = over(128);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fours_are_powers() {
        for (fours, entry) in OVER_FOURS.iter().enumerate().skip(1) {
            assert_eq!(*entry, over(4 * fours as u32), "{fours}");
        }
    }

    /// "Fast CRC Computation for Generic Polynomials Using PCLMULQDQ": k1, k2 and the polynomial of the reflected CRC-32.
    #[test]
    fn constants_are_those_of_intels_paper() {
        assert_eq!((power(512 + 32), power(512 - 32)), (0x1_5444_2bd4, 0x1_c6e4_1596));
        assert_eq!(WHOLE, 0x1_db71_0641);
        // The paper divides x^64: its highest 33 bits are those of the longer quotient.
        assert_eq!(QUOTIENT & 0x1_ffff_ffff, 0x1_f701_1641);
    }
}
