//! Two strings of the same length, each in its half of a register: what few bytes cost is mostly the multiplications that do not depend on
//! how many they are, and one is for both here.

use super::few::SHIFTS;
use super::moves::move16;
use super::register::{both, moved_wide, over_both, over_fours, pair, remainders};
use std::arch::x86_64::*;

/// Bytes of each: 16 to 255.
#[inline]
pub const fn fits(len: usize) -> bool {
    16 <= len && len < 256
}

/// Copies `len` bytes of each, which come behind sixteen of its own (`lead`, `its_lead`), and gives their states. `behind` bytes of the same
/// state are between. What is loaded into wide registers comes in narrow ones: from the stack it would be waited for.
///
/// # Safety
/// As for [`Wide::copy_led`](super::Wide::copy_led) of both, and the processor has VPCLMULQDQ. So many bytes [fit](fits).
#[target_feature(enable = "avx2,pclmulqdq")]
pub unsafe fn copy_led(
    (lead, lead_end): (u64, u64),
    (its_lead, its_end): (u64, u64),
    len: usize,
    crc: u32,
    behind: usize,
    (from, to): (*const u8, *mut u8),
    (other, its): (*const u8, *mut u8),
) -> (u32, u32) {
    let state = both(_mm_cvtsi32_si128(!crc as i32));
    // SAFETY: the caller's promises.
    let left = unsafe { some::<true>((from, to), (other, its), len, state) };
    let bytes = _mm256_set_m128i(pair(its_lead, its_end), pair(lead, lead_end));
    // SAFETY: the caller's promise.
    let lead = unsafe { moved_wide(bytes, both(over_fours((behind + len) / 4))) };
    // SAFETY: the same.
    let (first, second) = unsafe { remainders(_mm256_xor_si256(left, lead)) };
    (!first, !second)
}

/// The states after `len` bytes of each, given those before.
///
/// # Safety
/// As for [`Wide::sum`](super::Wide::sum) of both, and the processor has VPCLMULQDQ. So many bytes [fit](fits).
#[target_feature(enable = "avx2,pclmulqdq")]
pub unsafe fn sum(from: *const u8, other: *const u8, len: usize, crc: u32, its_crc: u32) -> (u32, u32) {
    let state = _mm256_set_m128i(_mm_cvtsi32_si128(!its_crc as i32), _mm_cvtsi32_si128(!crc as i32));
    let none = std::ptr::null_mut();
    // SAFETY: the caller's promises; nothing is written.
    let left = unsafe { some::<false>((from, none), (other, none), len, state) };
    // SAFETY: the same.
    let (first, second) = unsafe { remainders(left) };
    (!first, !second)
}

/// Sixteen bytes of each.
///
/// # Safety
/// As for [`move16`] of both.
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn move_both<const COPY: bool>(
    from: *const u8,
    to: *mut u8,
    other: *const u8,
    its: *mut u8,
) -> __m256i {
    // SAFETY: the caller's promises.
    let (low, high) = unsafe { (move16::<COPY>(from, to), move16::<COPY>(other, its)) };
    _mm256_set_m128i(high, low)
}

/// What 16 to 255 bytes of each leave, as [`few::some`](super::few::some) does of one.
///
/// # Safety
/// So many to read of each, and as many to write if `COPY`; the processor has VPCLMULQDQ.
#[inline]
#[target_feature(enable = "avx2,pclmulqdq")]
unsafe fn some<const COPY: bool>(
    (from, to): (*const u8, *mut u8),
    (other, its): (*const u8, *mut u8),
    len: usize,
    mut state: __m256i,
) -> __m256i {
    // SAFETY: the caller's promise, as behind each place there are 16 more.
    let moved_from = |at: usize| unsafe {
        move_both::<COPY>(
            from.wrapping_add(at),
            to.wrapping_add(at),
            other.wrapping_add(at),
            its.wrapping_add(at),
        )
    };
    let whole = len / 16;
    let mut next = _mm256_xor_si256(moved_from(0), state);
    let mut sum = _mm256_setzero_si256();
    let odd = len % 16;
    if odd > 0 {
        let at = SHIFTS.as_ptr().wrapping_add(odd);
        // SAFETY: `odd` is at most 15, so that both end within 48.
        let (to_end, dropped) =
            unsafe { (_mm_loadu_si128(at.cast()), _mm_loadu_si128(at.wrapping_add(16).cast())) };
        // SAFETY: the caller's promise.
        sum = unsafe { moved_wide(_mm256_shuffle_epi8(next, both(to_end)), over_both(whole)) };
        state = _mm256_shuffle_epi8(state, both(dropped));
        // Those that were moved with what is odd are moved again, and only that counts.
        next = _mm256_xor_si256(moved_from(odd), state);
    }
    for behind in (1..whole).rev() {
        // SAFETY: the caller's promise.
        sum = _mm256_xor_si256(sum, unsafe { moved_wide(next, over_both(behind)) });
        next = moved_from(len - 16 * behind);
    }
    _mm256_xor_si256(sum, next)
}
