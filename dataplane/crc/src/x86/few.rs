//! Less than a block: each 16 of them are moved over those behind by a factor of their own, so none waits for another. What is no multiple of
//! 16 is at the front, as zeros before it change nothing.

use super::blocks::halves;
use super::moves::{move1, move2, move4, move8, move16, move32};
use super::register::{moved, moved_wide, over, over_wide};
use std::arch::x86_64::*;

/// What bytes leave.
pub struct Left {
    /// Sixteen bytes with the same remainder.
    pub bytes: __m128i,
    /// What they were too few to take up of the state: it is added to what follows.
    pub state: u32,
}

impl Left {
    /// What is to be added to the 16 bytes that follow.
    #[inline]
    #[target_feature(enable = "avx,pclmulqdq")]
    pub fn before(&self) -> __m128i {
        _mm_xor_si128(moved(self.bytes, over(1)), _mm_cvtsi32_si128(self.state as i32))
    }
}

/// Choices for a shuffle: a load from `k` on moves `k` bytes to the end, with zeros in front; 16 later it drops the first `k`, with zeros behind.
pub static SHIFTS: [u8; 48] = {
    let mut table = [0x80; 48];
    let mut at = 0;
    while at < 16 {
        table[16 + at] = at as u8;
        at += 1;
    }
    table
};

/// The first bytes of some, as many as are no whole 16.
struct Begun {
    /// They, behind zeros, and as much of the state as they took up.
    odd: __m128i,
    /// What is left of the state.
    state: __m128i,
}

/// Moves the first 16 bytes, of which up to 15 are odd. Those behind are moved again, and only that counts.
///
/// # Safety
/// 16 bytes at `from`, and as many to write at `to` if `COPY`.
#[inline]
#[target_feature(enable = "avx")]
unsafe fn begin<const COPY: bool>(from: *const u8, to: *mut u8, odd: usize, state: u32) -> Begun {
    let state = _mm_cvtsi32_si128(state as i32);
    // SAFETY: the caller's promise.
    let first = _mm_xor_si128(unsafe { move16::<COPY>(from, to) }, state);
    let at = SHIFTS.as_ptr().wrapping_add(odd);
    // SAFETY: `odd` is at most 15, so that both end within 48.
    let (to_end, dropped) =
        unsafe { (_mm_loadu_si128(at.cast()), _mm_loadu_si128(at.wrapping_add(16).cast())) };
    Begun { odd: _mm_shuffle_epi8(first, to_end), state: _mm_shuffle_epi8(state, dropped) }
}

/// After 16 to 255 bytes.
///
/// # Safety
/// So many at `from`, and as many to write at `to` if `COPY`.
#[inline]
#[target_feature(enable = "avx,pclmulqdq")]
pub unsafe fn some<const COPY: bool>(from: *const u8, to: *mut u8, len: usize, state: u32) -> __m128i {
    // SAFETY: the caller's promises.
    let Begun { odd, state } = unsafe { begin::<COPY>(from, to, len % 16, state) };
    let whole = len / 16;
    let mut sum = moved(odd, over(whole));
    let (mut from, mut to) = (from.wrapping_add(len % 16), to.wrapping_add(len % 16));
    // SAFETY: 16 bytes follow.
    let mut next = _mm_xor_si128(unsafe { move16::<COPY>(from, to) }, state);
    for behind in (1..whole).rev() {
        sum = _mm_xor_si128(sum, moved(next, over(behind)));
        (from, to) = (from.wrapping_add(16), to.wrapping_add(16));
        // SAFETY: another 16 of `whole` times as many.
        next = unsafe { move16::<COPY>(from, to) };
    }
    _mm_xor_si128(sum, next)
}

/// The same by 32 bytes at a time.
///
/// # Safety
/// As for [`some`]; the processor has VPCLMULQDQ.
#[inline]
#[target_feature(enable = "avx2,pclmulqdq")]
pub unsafe fn some_wide<const COPY: bool>(from: *const u8, to: *mut u8, len: usize, state: u32) -> __m128i {
    if len.is_multiple_of(32) {
        // SAFETY: the caller's promises.
        return unsafe { even_wide::<COPY>(from, to, len, state) };
    }
    // SAFETY: the caller's promises.
    let Begun { odd, mut state } = unsafe { begin::<COPY>(from, to, len % 16, state) };
    let whole = len / 16;
    let (mut from, mut to) = (from.wrapping_add(len % 16), to.wrapping_add(len % 16));
    // An odd number of sixteens goes together with what is no sixteen, another has zeros in front of that.
    let mut next = if !whole.is_multiple_of(2) {
        // SAFETY: 16 bytes follow.
        let second = _mm_xor_si128(unsafe { move16::<COPY>(from, to) }, state);
        state = _mm_setzero_si128();
        (from, to) = (from.wrapping_add(16), to.wrapping_add(16));
        _mm256_set_m128i(second, odd)
    } else {
        _mm256_set_m128i(odd, _mm_setzero_si128())
    };
    let mut sum = _mm256_setzero_si256();
    for behind in (1..=whole / 2).rev() {
        // SAFETY: the caller's promise.
        sum = _mm256_xor_si256(sum, unsafe { moved_wide(next, over_wide(behind)) });
        // SAFETY: another 32 bytes.
        next = unsafe { move32::<COPY>(from, to) };
        next = _mm256_xor_si256(next, _mm256_zextsi128_si256(state));
        state = _mm_setzero_si128();
        (from, to) = (from.wrapping_add(32), to.wrapping_add(32));
    }
    // SAFETY: the caller's promise.
    sum = _mm256_xor_si256(sum, unsafe { moved_wide(next, over_wide(0)) });
    halves(sum, next)
}

/// The same of 32 to 224 bytes, by 32.
///
/// # Safety
/// As for [`some_wide`].
#[inline]
#[target_feature(enable = "avx2,pclmulqdq")]
unsafe fn even_wide<const COPY: bool>(
    mut from: *const u8,
    mut to: *mut u8,
    len: usize,
    state: u32,
) -> __m128i {
    // SAFETY: 32 bytes, of the caller's.
    let mut next = unsafe { move32::<COPY>(from, to) };
    next = _mm256_xor_si256(next, _mm256_zextsi128_si256(_mm_cvtsi32_si128(state as i32)));
    let mut sum = _mm256_setzero_si256();
    for behind in (1..len / 32).rev() {
        // SAFETY: the caller's promise.
        sum = _mm256_xor_si256(sum, unsafe { moved_wide(next, over_wide(behind)) });
        (from, to) = (from.wrapping_add(32), to.wrapping_add(32));
        // SAFETY: another 32 bytes.
        next = unsafe { move32::<COPY>(from, to) };
    }
    // SAFETY: the caller's promise.
    sum = _mm256_xor_si256(sum, unsafe { moved_wide(next, over_wide(0)) });
    halves(sum, next)
}

/// After 1 to 15 bytes.
///
/// # Safety
/// As for [`some`].
#[inline]
#[target_feature(enable = "avx,pclmulqdq")]
pub unsafe fn few<const COPY: bool>(from: *const u8, to: *mut u8, len: usize, state: u32) -> Left {
    let last = |unit: usize| (from.wrapping_add(len - unit), to.wrapping_add(len - unit));
    if len >= 8 {
        let (from_last, to_last) = last(8);
        // SAFETY: there are 8 bytes.
        let (first, last) = unsafe { (move8::<COPY>(from, to), move8::<COPY>(from_last, to_last)) };
        let up = 8 * (16 - len);
        // What was moved again counts as it was then.
        let front = (u128::from(first) << up) as u64;
        let value = (u128::from(last) << 64 | u128::from(front)) ^ u128::from(state) << up;
        let bytes = _mm_set_epi64x((value >> 64) as i64, value as i64);
        return Left { bytes, state: 0 };
    }
    let up = 8 * (8 - len);
    let value = match len {
        4.. => {
            let (from_last, to_last) = last(4);
            // SAFETY: there are 4 bytes.
            let (first, last) = unsafe { (move4::<COPY>(from, to), move4::<COPY>(from_last, to_last)) };
            u64::from(last) << 32 | u64::from((u64::from(first) << up) as u32)
        }
        3 => {
            let (from_last, to_last) = last(1);
            // SAFETY: there are 3 bytes.
            let (first, last) = unsafe { (move2::<COPY>(from, to), move1::<COPY>(from_last, to_last)) };
            u64::from(last) << 56 | u64::from(first) << 40
        }
        // SAFETY: there are 2 bytes.
        2 => u64::from(unsafe { move2::<COPY>(from, to) }) << 48,
        // SAFETY: there is 1 byte.
        _ => u64::from(unsafe { move1::<COPY>(from, to) }) << 56,
    };
    let value = value ^ u64::from(state) << up;
    Left { bytes: _mm_set_epi64x(value as i64, 0), state: (u64::from(state) >> (64 - up)) as u32 }
}
