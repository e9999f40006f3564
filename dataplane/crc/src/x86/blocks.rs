//! Whole blocks, one at least: each register of a block is added to what is moved over the block's length.
//!
//! Four registers of 32 bytes are enough. A multiplication is begun every other cycle and takes four, so the eight of a block are what the
//! processor waits for; eight registers were no faster on Zen 3.
//!
//! Both functions take: `from` is readable for `len` bytes, a multiple of a block; if `COPY`, `last` is writable for a register and `to` for
//! all but the last one. `before` is added to the first 16 bytes. They race as `moves.rs` may. If `COPY`, and
//! so much follows that may lie in no cache, the lines [`AHEAD`] bytes behind what is written are asked for, to be written: in caches Zen 3 loses
//! by it.

use super::Ahead;
use super::moves::{move16, move32};
use super::register::{constant, moved, moved_wide, over, over_wide};
use crate::constants::OVER_128;
use std::arch::asm;
use std::arch::x86_64::*;

/// Bytes of a block of registers of 16 bytes.
pub const XMM: usize = 128;
/// Bytes of a block of registers of 32 bytes.
pub const YMM: usize = 128;
/// How far ahead of a copy lines are asked for: two packets of the largest path MTU.
const AHEAD: usize = 8192;
/// Bytes of a cache line.
const LINE: usize = 64;

/// Asks for the lines of `N` bytes, to be written.
#[inline(always)]
fn own<const N: usize>(at: *mut u8) {
    for line in 0..N / LINE {
        let at = at.wrapping_add(line * LINE);
        // SAFETY: a prefetch changes nothing that the program sees, and faults on no address; processors that lack this one do nothing.
        unsafe { asm!("prefetchw [{0}]", in(reg) at, options(nostack, preserves_flags, readonly)) };
    }
}

/// Where a register of `N` bytes goes, the one `at` of a block of `BLOCK` at `to`: the last of all has a place of its own.
#[inline(always)]
fn place<const BLOCK: usize, const N: usize>(to: *mut u8, last: *mut u8, left: usize, at: usize) -> *mut u8 {
    if (at + 1) * N == BLOCK && left == BLOCK { last } else { to.wrapping_add(N * at) }
}

/// What whole blocks leave. If `COPY` they go to `to`, but the last register to `last`.
///
/// # Safety
/// See above.
#[inline]
#[target_feature(enable = "avx,pclmulqdq")]
pub unsafe fn xmm<const COPY: bool>(
    mut from: *const u8,
    mut to: *mut u8,
    last: *mut u8,
    len: usize,
    before: __m128i,
    ahead: Option<Ahead>,
) -> __m128i {
    let asked = COPY && ahead.is_some_and(|ahead| ahead.far && ahead.follows >= AHEAD);
    let factor = constant(&OVER_128);
    let (mut left, mut later) = (len, to.wrapping_add(AHEAD));
    let mut sums = [_mm_setzero_si128(); XMM / 16];
    for (at, sum) in sums.iter_mut().enumerate() {
        let place = place::<XMM, 16>(to, last, left, at);
        // SAFETY: there is a block.
        *sum = unsafe { move16::<COPY>(from.wrapping_add(16 * at), place) };
    }
    sums[0] = _mm_xor_si128(sums[0], before);
    while left != XMM {
        left -= XMM;
        if asked {
            own::<XMM>(later);
            later = later.wrapping_add(XMM);
        }
        (from, to) = (from.wrapping_add(XMM), to.wrapping_add(XMM));
        for (at, sum) in sums.iter_mut().enumerate() {
            let place = place::<XMM, 16>(to, last, left, at);
            // SAFETY: there is another.
            let next = unsafe { move16::<COPY>(from.wrapping_add(16 * at), place) };
            *sum = _mm_xor_si128(moved(*sum, factor), next);
        }
    }
    if asked {
        own::<XMM>(later);
    }
    let [first @ .., mut all] = sums;
    for (at, sum) in first.into_iter().enumerate() {
        all = _mm_xor_si128(all, moved(sum, over(first.len() - at)));
    }
    all
}

/// The same by 32 bytes.
///
/// # Safety
/// See above; the processor has VPCLMULQDQ.
#[inline]
#[target_feature(enable = "avx2,pclmulqdq")]
pub unsafe fn ymm<const COPY: bool>(
    mut from: *const u8,
    mut to: *mut u8,
    last: *mut u8,
    len: usize,
    before: __m128i,
    ahead: Option<Ahead>,
) -> __m128i {
    let asked = COPY && ahead.is_some_and(|ahead| ahead.far && ahead.follows >= AHEAD);
    let factor = _mm256_broadcastsi128_si256(constant(&OVER_128));
    let (mut left, mut later) = (len, to.wrapping_add(AHEAD));
    let mut sums = [_mm256_setzero_si256(); YMM / 32];
    for (at, sum) in sums.iter_mut().enumerate() {
        let place = place::<YMM, 32>(to, last, left, at);
        // SAFETY: there is a block.
        *sum = unsafe { move32::<COPY>(from.wrapping_add(32 * at), place) };
    }
    sums[0] = _mm256_xor_si256(sums[0], _mm256_zextsi128_si256(before));
    while left != YMM {
        left -= YMM;
        if asked {
            own::<YMM>(later);
            later = later.wrapping_add(YMM);
        }
        (from, to) = (from.wrapping_add(YMM), to.wrapping_add(YMM));
        for (at, sum) in sums.iter_mut().enumerate() {
            let place = place::<YMM, 32>(to, last, left, at);
            // SAFETY: there is another.
            let next = unsafe { move32::<COPY>(from.wrapping_add(32 * at), place) };
            // SAFETY: the caller's promise.
            *sum = _mm256_xor_si256(unsafe { moved_wide(*sum, factor) }, next);
        }
    }
    if asked {
        own::<YMM>(later);
    }
    let mut all = _mm256_setzero_si256();
    for (at, sum) in sums.into_iter().enumerate() {
        // SAFETY: the caller's promise.
        all = _mm256_xor_si256(all, unsafe { moved_wide(sum, over_wide(sums.len() - 1 - at)) });
    }
    halves(all, sums[sums.len() - 1])
}

/// The sum of both halves of what was moved to the end, and of the half that was there, the last of `end`.
#[inline]
#[target_feature(enable = "avx2")]
pub fn halves(moved: __m256i, end: __m256i) -> __m128i {
    let last = _mm256_extracti128_si256::<1>(_mm256_xor_si256(moved, end));
    _mm_xor_si128(_mm256_castsi256_si128(moved), last)
}
