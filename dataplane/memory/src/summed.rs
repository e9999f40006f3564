//! Copy and CRC-32 in one pass over bytes that somebody else may be writing: what is summed is what was copied.
//!
//! Where the processor has AVX-512 and VPCLMULQDQ, 256 bytes at a time are loaded, stored and folded; elsewhere pieces
//! that stay in the first cache are copied and summed one after the other, by what `crc32fast` finds. Both give the same
//! state, the form that `crc32fast` takes and gives.

use crate::copy;
use std::ptr::NonNull;

/// A piece on the way without AVX-512: small enough to be in the first cache when it is summed.
const PIECE: usize = 1024;

/// Copies `to.len()` bytes from `from` and returns the CRC-32 state after them, given that before.
///
/// # Safety
/// `from` is readable for `to.len()` bytes, which others may be writing by accesses like these or outside of the
/// program's view. The two do not overlap.
#[inline]
pub(crate) unsafe fn copy_out(from: *const u8, to: &mut [u8], crc: u32) -> u32 {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    if to.len() >= avx512::WORTH_IT && avx512::is_there() {
        // SAFETY: the caller's promise; the processor was asked.
        return unsafe { avx512::copy_out(from, to, crc) };
    }
    // SAFETY: the caller's promise.
    unsafe { by_pieces(from, to, crc) }
}

/// Copies `to.len()` bytes that a [`Lender`](crate::Lender) has lent, and returns the CRC-32 state after them, given that
/// before.
///
/// # Safety
/// They begin at `from`, and the lender has not settled since.
#[inline]
pub unsafe fn copy_lent(from: NonNull<u8>, to: &mut [u8], crc: u32) -> u32 {
    // SAFETY: lent bytes are readable until then, and registered memory is never what a slice lies over.
    unsafe { copy_out(from.as_ptr(), to, crc) }
}

/// # Safety
/// As for [`copy_out`].
unsafe fn by_pieces(mut from: *const u8, to: &mut [u8], crc: u32) -> u32 {
    let mut hasher = crc32fast::Hasher::new_with_initial(crc);
    for piece in to.chunks_mut(PIECE) {
        // SAFETY: the pieces together are `to.len()` bytes.
        unsafe { copy::copy_out(from, piece.as_mut_ptr(), piece.len()) };
        // SAFETY: as above.
        from = unsafe { from.add(piece.len()) };
        hasher.update(piece);
    }
    hasher.finalize()
}

#[cfg(all(target_arch = "x86_64", not(miri)))]
mod avx512 {
    use super::by_pieces;
    use std::arch::asm;

    /// Four registers of 64 bytes.
    const BLOCK: usize = 256;

    /// Below that the other way is as fast.
    pub const WORTH_IT: usize = 2 * BLOCK;

    #[inline]
    pub fn is_there() -> bool {
        std::arch::is_x86_feature_detected!("avx512f") && std::arch::is_x86_feature_detected!("vpclmulqdq")
    }

    /// The polynomial of CRC-32, reflected.
    const POLYNOMIAL: u32 = 0xEDB8_8320;

    /// x^`power` modulo the polynomial, as a carry-less multiplication of reflected numbers wants it.
    pub(super) const fn power(power: u32) -> u64 {
        let (mut value, mut done) = (1u32 << 31, 0);
        while done < power {
            value = (value >> 1) ^ if value & 1 != 0 { POLYNOMIAL } else { 0 };
            done += 1;
        }
        (value as u64) << 1
    }

    /// Moves the two halves of 16 bytes over a block.
    const OVER_A_BLOCK: [u64; 2] = [power(8 * BLOCK as u32 + 32), power(8 * BLOCK as u32 - 32)];

    /// The CRC's remainder of whole blocks, as so many bytes with the same remainder.
    #[repr(align(64))]
    struct Folded([u8; BLOCK]);

    /// See [`super::copy_out`].
    ///
    /// # Safety
    /// As there, and the processor has AVX-512F and VPCLMULQDQ. `to` is not shorter than a block.
    #[inline]
    pub unsafe fn copy_out(from: *const u8, to: &mut [u8], crc: u32) -> u32 {
        let whole = to.len() / BLOCK * BLOCK;
        let (blocks, rest) = to.split_at_mut(whole);
        let mut folded = Folded([0; BLOCK]);
        // SAFETY: `blocks` are whole blocks, at least one, and `from` has as many bytes.
        unsafe { fold(from, blocks, !crc, &mut folded) };
        // The register was put in with the first bytes, so it begins at zero here, which is a state of ones.
        let mut hasher = crc32fast::Hasher::new_with_initial(!0);
        hasher.update(&folded.0);
        // SAFETY: what is left of the bytes at `from`.
        unsafe { by_pieces(from.add(whole), rest, hasher.finalize()) }
    }

    /// Copies whole blocks (one at least) and folds each into the next, the first with `register` added to its first
    /// bytes.
    ///
    /// # Safety
    /// `from` is readable for as many bytes as `to` has, races as for [`super::copy_out`]; the processor has AVX-512F and
    /// VPCLMULQDQ.
    #[inline]
    unsafe fn fold(from: *const u8, to: &mut [u8], register: u32, folded: &mut Folded) {
        // SAFETY: reads and writes `to.len()` bytes upwards, a block at a time, then a block to `folded`; loads and stores
        // are of any alignment but for the last, which are of an aligned type. Registers are given up as listed, their
        // upper parts cleared.
        unsafe {
            asm!(
                "vbroadcasti32x4 zmm8, [{over}]",
                "vmovd xmm4, {register:e}",
                "vmovdqu64 zmm0, [{from}]",
                "vmovdqu64 zmm1, [{from} + 64]",
                "vmovdqu64 zmm2, [{from} + 128]",
                "vmovdqu64 zmm3, [{from} + 192]",
                "vmovdqu64 [{to}], zmm0",
                "vmovdqu64 [{to} + 64], zmm1",
                "vmovdqu64 [{to} + 128], zmm2",
                "vmovdqu64 [{to} + 192], zmm3",
                "vpxorq zmm0, zmm0, zmm4",
                "add {from}, 256",
                "add {to}, 256",
                "sub {left}, 256",
                "jz 3f",
                "2:",
                "vmovdqu64 zmm4, [{from}]",
                "vmovdqu64 zmm5, [{from} + 64]",
                "vmovdqu64 zmm6, [{from} + 128]",
                "vmovdqu64 zmm7, [{from} + 192]",
                "vmovdqu64 [{to}], zmm4",
                "vmovdqu64 [{to} + 64], zmm5",
                "vmovdqu64 [{to} + 128], zmm6",
                "vmovdqu64 [{to} + 192], zmm7",
                "vpclmulqdq zmm9, zmm0, zmm8, 0x00",
                "vpclmulqdq zmm10, zmm1, zmm8, 0x00",
                "vpclmulqdq zmm11, zmm2, zmm8, 0x00",
                "vpclmulqdq zmm12, zmm3, zmm8, 0x00",
                "vpclmulqdq zmm0, zmm0, zmm8, 0x11",
                "vpclmulqdq zmm1, zmm1, zmm8, 0x11",
                "vpclmulqdq zmm2, zmm2, zmm8, 0x11",
                "vpclmulqdq zmm3, zmm3, zmm8, 0x11",
                "vpternlogq zmm0, zmm9, zmm4, 0x96",
                "vpternlogq zmm1, zmm10, zmm5, 0x96",
                "vpternlogq zmm2, zmm11, zmm6, 0x96",
                "vpternlogq zmm3, zmm12, zmm7, 0x96",
                "add {from}, 256",
                "add {to}, 256",
                "sub {left}, 256",
                "jnz 2b",
                "3:",
                "vmovdqa64 [{folded}], zmm0",
                "vmovdqa64 [{folded} + 64], zmm1",
                "vmovdqa64 [{folded} + 128], zmm2",
                "vmovdqa64 [{folded} + 192], zmm3",
                "vzeroupper",
                from = inout(reg) from => _,
                to = inout(reg) to.as_mut_ptr() => _,
                left = inout(reg) to.len() => _,
                over = in(reg) OVER_A_BLOCK.as_ptr(),
                register = in(reg) register,
                folded = in(reg) folded.0.as_mut_ptr(),
                out("xmm0") _, out("xmm1") _, out("xmm2") _, out("xmm3") _, out("xmm4") _, out("xmm5") _,
                out("xmm6") _, out("xmm7") _, out("xmm8") _, out("xmm9") _, out("xmm10") _, out("xmm11") _,
                out("xmm12") _, out("xmm13") _, out("xmm14") _, out("xmm15") _,
                options(nostack),
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(len: usize, seed: usize) -> Vec<u8> {
        (0..len).map(|at| ((at + seed) * 131 + (at >> 8) * 29 + at * at % 251) as u8).collect()
    }

    fn expect(from: &[u8], crc: u32) -> u32 {
        let mut hasher = crc32fast::Hasher::new_with_initial(crc);
        hasher.update(from);
        hasher.finalize()
    }

    type Way = unsafe fn(*const u8, &mut [u8], u32) -> u32;

    fn ways() -> Vec<Way> {
        let mut ways: Vec<Way> = vec![copy_out, by_pieces];
        #[cfg(all(target_arch = "x86_64", not(miri)))]
        if avx512::is_there() {
            ways.push(|from, to, crc| match to.len() {
                // SAFETY: the caller's promise; the processor was asked.
                256.. => unsafe { avx512::copy_out(from, to, crc) },
                // SAFETY: the caller's promise.
                _ => unsafe { by_pieces(from, to, crc) },
            });
        }
        ways
    }

    /// Copies `len` bytes from `skew` bytes behind an aligned place to as many behind another, by every way.
    fn one(source: &[u8], len: usize, from: usize, to: usize, crc: u32) {
        for way in ways() {
            let mut room = vec![0xA5; to + len + 70];
            let source = &source[from..from + len];
            // SAFETY: as many bytes as the slice has, and nobody writes them.
            let state = unsafe { way(source.as_ptr(), &mut room[to..to + len], crc) };
            assert_eq!(state, expect(source, crc), "{len} bytes from {from} to {to}");
            assert_eq!(&room[to..to + len], source, "{len} bytes from {from} to {to}");
            let around = room[..to].iter().chain(&room[to + len..]);
            assert!(around.into_iter().all(|&byte| byte == 0xA5), "{len} bytes stay inside");
        }
    }

    #[test]
    fn every_length_has_its_bytes_and_its_sum() {
        let source = bytes(9100, 3);
        let step = if cfg!(miri) { 611 } else { 1 };
        for len in (0..=2100).chain((4000..=4200).chain(8900..9000)).step_by(step) {
            one(&source, len, 0, 0, 0x1234_5678);
        }
    }

    #[test]
    fn every_alignment_has_its_bytes_and_its_sum() {
        let source = bytes(1300, 5);
        let step = if cfg!(miri) { 37 } else { 1 };
        for from in (0..=64).step_by(step) {
            for to in (0..=64).step_by(step) {
                one(&source, 1025, from, to, !0);
            }
        }
    }

    #[test]
    fn any_state_goes_on() {
        let source = bytes(1111, 9);
        for crc in [0, 1, !0, 0x8000_0000, 0x2144_DF1C] {
            one(&source, 1111, 0, 0, crc);
        }
    }

    #[cfg(all(target_arch = "x86_64", not(miri)))]
    #[test]
    fn powers_are_those_of_intels_paper() {
        // "Fast CRC Computation for Generic Polynomials Using PCLMULQDQ": k1 and k2 of the reflected CRC-32.
        assert_eq!((avx512::power(512 + 32), avx512::power(512 - 32)), (0x1_5444_2bd4, 0x1_c6e4_1596));
    }
}
