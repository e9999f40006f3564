//! Arithmetic in registers. A register of 16 bytes stands for a string of them, the first byte the lowest.

use crate::constants::{LAST, OVER_FOURS, TO_END};
use std::arch::asm;
use std::arch::x86_64::*;

/// The 16 bytes of a constant.
#[inline]
#[target_feature(enable = "avx")]
pub fn constant(bytes: &[u64; 2]) -> __m128i {
    // SAFETY: 16 bytes, of any alignment.
    unsafe { _mm_loadu_si128(bytes.as_ptr().cast()) }
}

/// What moves 16 bytes over so many times 16 that follow them, at most 15.
#[inline]
#[target_feature(enable = "avx")]
pub fn over(sixteens: usize) -> __m128i {
    constant(&TO_END.0[15 - (sixteens & 15)])
}

/// What moves 32 bytes, half by half, to the end of so many times 32 that follow them, at most 7. The last 16 bytes of all give nothing.
#[inline]
#[target_feature(enable = "avx2")]
pub fn over_wide(times: usize) -> __m256i {
    let at = 14 - 2 * (times & 7);
    // SAFETY: two entries from there on.
    unsafe { _mm256_load_si256((&raw const TO_END.0[at]).cast()) }
}

/// What moves 16 bytes over so many times 4 that follow them, from 1 on and less than 128.
#[inline]
#[target_feature(enable = "avx")]
pub fn over_fours(fours: usize) -> __m128i {
    constant(&OVER_FOURS[fours % OVER_FOURS.len()])
}

/// The 16 bytes of two numbers, the first byte the lowest of the first.
#[inline]
#[target_feature(enable = "avx")]
pub fn pair(first: u64, second: u64) -> __m128i {
    _mm_set_epi64x(second as i64, first as i64)
}

/// Moves 16 bytes over those that `by` is for: what is to be added to the last of these.
#[inline]
#[target_feature(enable = "avx,pclmulqdq")]
pub fn moved(bytes: __m128i, by: __m128i) -> __m128i {
    let (first, second) = (_mm_clmulepi64_si128::<0x00>(bytes, by), _mm_clmulepi64_si128::<0x11>(bytes, by));
    _mm_xor_si128(first, second)
}

/// The same with each half of 32 bytes.
///
/// # Safety
/// The processor has VPCLMULQDQ.
#[inline]
#[target_feature(enable = "avx2")]
pub unsafe fn moved_wide(bytes: __m256i, by: __m256i) -> __m256i {
    // SAFETY: the caller's promise.
    let (first, second) = unsafe { (multiplied::<0x00>(bytes, by), multiplied::<0x11>(bytes, by)) };
    _mm256_xor_si256(first, second)
}

/// The same 16 bytes in both halves.
#[inline]
#[target_feature(enable = "avx2")]
pub fn both(bytes: __m128i) -> __m256i {
    _mm256_broadcastsi128_si256(bytes)
}

/// [`over`] for both halves.
#[inline]
#[target_feature(enable = "avx2")]
pub fn over_both(sixteens: usize) -> __m256i {
    both(over(sixteens))
}

/// One multiplication in each half; which of their halves, `WHICH` says as to `vpclmulqdq`.
///
/// # Safety
/// The processor has VPCLMULQDQ.
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn multiplied<const WHICH: u8>(bytes: __m256i, by: __m256i) -> __m256i {
    let product: __m256i;
    // SAFETY: only registers, and the caller's promise.
    unsafe {
        asm!("vpclmulqdq {product}, {bytes}, {by}, {which}", product = lateout(ymm_reg) product, bytes = in(ymm_reg) bytes,
            by = in(ymm_reg) by, which = const WHICH, options(pure, nomem, nostack, preserves_flags));
    }
    product
}

/// [`remainder`] of each half.
///
/// # Safety
/// The processor has VPCLMULQDQ.
#[inline]
#[target_feature(enable = "avx2")]
pub unsafe fn remainders(bytes: __m256i) -> (u32, u32) {
    let (half, barrett) = (both(constant(&LAST.half)), both(constant(&LAST.barrett)));
    // SAFETY: the caller's promise.
    let first = unsafe { multiplied::<0x10>(bytes, half) };
    let bits = _mm256_xor_si256(first, _mm256_srli_si256::<8>(bytes));
    // SAFETY: the same.
    let product = unsafe { multiplied::<0x10>(multiplied::<0x00>(bits, barrett), barrett) };
    let rest = _mm256_xor_si256(bits, product);
    (_mm256_extract_epi32::<2>(rest) as u32, _mm256_extract_epi32::<6>(rest) as u32)
}

/// The remainder of what a register stands for, and 32 zero bits behind it.
#[inline]
#[target_feature(enable = "avx,pclmulqdq")]
pub fn remainder(bytes: __m128i) -> u32 {
    // The first half moved over the second and the zeros: 96 bits with the same remainder, which begin at the lowest.
    let first = _mm_clmulepi64_si128::<0x10>(bytes, constant(&LAST.half));
    let bits = _mm_xor_si128(first, _mm_srli_si128::<8>(bytes));
    // Barrett: the first 64 bits by the quotient tell how often the polynomial is in them,
    let barrett = constant(&LAST.barrett);
    let times = _mm_clmulepi64_si128::<0x00>(bits, barrett);
    // and what so many of it leave of the last 32.
    let product = _mm_clmulepi64_si128::<0x10>(times, barrett);
    _mm_extract_epi32::<2>(_mm_xor_si128(bits, product)) as u32
}
