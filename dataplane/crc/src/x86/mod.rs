//! By carry-less multiplication. Bytes are loaded into registers, stored if they are copied, and moved over all that are behind them, by a
//! factor for each distance; 16 bytes with the same remainder are left, and these are divided.
//!
//! | file | what |
//! | --- | --- |
//! | `moves.rs` | loads and stores that may race |
//! | `register.rs` | the multiplications |
//! | `few.rs` | less than a block |
//! | `pair.rs` | the same of two strings at once |
//! | `blocks.rs`, `zmm.rs` | whole blocks |
//!
//! A length that is no multiple of a block begins with what is less than one: so what is left at the end has one form.

mod blocks;
mod few;
mod moves;
mod pair;
mod register;
mod zmm;

use crate::Lead;
use few::Left;
use std::arch::x86_64::*;
use std::sync::atomic::{AtomicU8, Ordering};

/// What the processor has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Wide {
    /// AVX and PCLMULQDQ: 16 bytes a register.
    Xmm = 2,
    /// AVX2 and VPCLMULQDQ: 32.
    Ymm = 3,
    /// AVX-512 and VPCLMULQDQ: 64.
    Zmm = 4,
}

/// What is known of the bytes behind a copy, so that lines can be asked for before it comes to them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ahead {
    /// So many are going to be copied next.
    pub follows: usize,
    /// Where they go may lie in no cache.
    pub far: bool,
}

/// Not asked yet; 1 is for none, others for a [`Wide`].
static FOUND: AtomicU8 = AtomicU8::new(0);

impl Wide {
    /// All, the best first.
    pub const ALL: [Wide; 3] = [Wide::Zmm, Wide::Ymm, Wide::Xmm];

    /// Most bytes that [`copy_but_last`](Self::copy_but_last) keeps.
    pub const MOST: usize = 256;

    /// The best that there is.
    #[inline]
    pub fn found() -> Option<Wide> {
        match FOUND.load(Ordering::Relaxed) {
            2 => Some(Wide::Xmm),
            3 => Some(Wide::Ymm),
            4 => Some(Wide::Zmm),
            1 => None,
            _ => Wide::find(),
        }
    }

    #[cold]
    fn find() -> Option<Wide> {
        let best = Wide::ALL.into_iter().find(|wide| wide.is_there());
        FOUND.store(best.map_or(1, |wide| wide as u8), Ordering::Relaxed);
        best
    }

    /// Asks the processor.
    pub fn is_there(self) -> bool {
        use std::arch::is_x86_feature_detected as has;
        has!("pclmulqdq")
            && match self {
                Wide::Xmm => has!("avx"),
                Wide::Ymm => has!("avx2") && has!("vpclmulqdq"),
                Wide::Zmm => has!("avx2") && has!("avx512f") && has!("vpclmulqdq"),
            }
    }

    /// Bytes of a block.
    pub const fn block(self) -> usize {
        match self {
            Wide::Xmm => blocks::XMM,
            Wide::Ymm => blocks::YMM,
            Wide::Zmm => zmm::ZMM,
        }
    }

    /// How many of a block's last bytes can have a place of their own: a register.
    pub const fn last(self) -> usize {
        match self {
            Wide::Xmm => 16,
            Wide::Ymm => 32,
            Wide::Zmm => 64,
        }
    }

    /// The state after the `len` bytes at `from`, given that before.
    ///
    /// # Safety
    /// The processor has it. `from` is readable for `len` bytes, which others may be writing by accesses like these or outside of the
    /// program's view.
    #[inline]
    pub unsafe fn sum(self, from: *const u8, len: usize, crc: u32) -> u32 {
        let none = std::ptr::null_mut();
        // SAFETY: the caller's promises; nothing is written.
        unsafe {
            match self {
                Wide::Xmm => xmm::<false>(from, none, none, len, crc, None),
                Wide::Ymm => ymm::<false>(from, none, none, len, crc, None),
                Wide::Zmm => zmm::<false>(from, none, none, len, crc, None),
            }
        }
    }

    /// The same of two strings of `len` bytes each.
    ///
    /// # Safety
    /// As for [`sum`](Self::sum) of each.
    #[inline]
    pub unsafe fn sum_pair(
        self,
        (from, crc): (*const u8, u32),
        (other, its_crc): (*const u8, u32),
        len: usize,
    ) -> (u32, u32) {
        if self != Wide::Xmm && pair::fits(len) {
            // SAFETY: the caller's promises; both others have what it takes.
            return unsafe { pair::sum(from, other, len, crc, its_crc) };
        }
        // SAFETY: the caller's promises.
        let first = unsafe { self.sum(from, len, crc) };
        // SAFETY: the same.
        (first, unsafe { self.sum(other, len, its_crc) })
    }

    /// Copies `len` bytes and returns the state after them, given that before.
    ///
    /// # Safety
    /// As for [`sum`](Self::sum), and `to` is writable for `len` bytes, which others may be reading and writing in the same ways. Where
    /// the two overlap, some bytes are copied that were copied before.
    #[inline]
    pub unsafe fn copy(self, from: *const u8, to: *mut u8, len: usize, crc: u32) -> u32 {
        let last = to.wrapping_add(len).wrapping_sub(self.last());
        // SAFETY: the caller's promises; the last bytes of a block, if there is one, go where they belong.
        unsafe { self.copy_to(from, to, last, len, crc, None) }
    }

    /// The same, but the [`last`](Self::last) bytes, or all if there is no block, go to `kept`: the state, and how many bytes these are.
    /// Lines may be asked for `ahead`.
    ///
    /// # Safety
    /// As for [`copy`](Self::copy); `kept` is writable for [`MOST`](Self::MOST) bytes.
    #[inline]
    pub unsafe fn copy_but_last(
        self,
        from: *const u8,
        to: *mut u8,
        kept: *mut u8,
        len: usize,
        crc: u32,
        ahead: Option<Ahead>,
    ) -> (u32, usize) {
        let (to, most) = if len < self.block() { (kept, len) } else { (to, self.last()) };
        // SAFETY: the caller's promises; less than a block has room at `kept`.
        (unsafe { self.copy_to(from, to, kept, len, crc, ahead) }, most)
    }

    /// Copies `len` bytes that come behind a [`Lead`], and returns the state after them.
    ///
    /// # Safety
    /// As for [`copy`](Self::copy), and [`Lead::reaches`] says so of the length.
    #[inline(always)]
    pub unsafe fn copy_led(self, from: *const u8, to: *mut u8, len: usize, lead: Lead) -> u32 {
        debug_assert!(lead.reaches(len));
        let Lead { crc, bytes: [first, second], behind } = lead;
        // SAFETY: the caller's promises.
        unsafe {
            match self {
                Wide::Xmm => xmm_led(from, to, len, crc, first, second, behind),
                Wide::Ymm => ymm_led(from, to, len, crc, first, second, behind),
                Wide::Zmm => zmm_led(from, to, len, crc, first, second, behind),
            }
        }
    }

    /// The same of two strings of `len` bytes each, whose leads differ in their sixteen bytes alone.
    ///
    /// # Safety
    /// As for [`copy_led`](Self::copy_led) of each.
    #[inline(always)]
    pub unsafe fn copy_led_pair(
        self,
        (from, to): (*const u8, *mut u8),
        (other, its): (*const u8, *mut u8),
        len: usize,
        lead: Lead,
        its_lead: [u64; 2],
    ) -> (u32, u32) {
        debug_assert!(lead.reaches(len));
        let Lead { crc, bytes: [begin, end], behind } = lead;
        if self != Wide::Xmm && pair::fits(len) {
            let (begin, its_begin) = ((begin, end), (its_lead[0], its_lead[1]));
            // SAFETY: the caller's promises; both others have what it takes.
            return unsafe { pair::copy_led(begin, its_begin, len, crc, behind, (from, to), (other, its)) };
        }
        // SAFETY: the caller's promises.
        let first = unsafe { self.copy_led(from, to, len, lead) };
        // SAFETY: the same.
        (first, unsafe { self.copy_led(other, its, len, Lead { bytes: its_lead, ..lead }) })
    }

    /// # Safety
    /// As for [`copy`](Self::copy), but the [`last`](Self::last) bytes go to `last`, if there is a block.
    #[inline]
    unsafe fn copy_to(
        self,
        from: *const u8,
        to: *mut u8,
        last: *mut u8,
        len: usize,
        crc: u32,
        ahead: Option<Ahead>,
    ) -> u32 {
        // SAFETY: the caller's promises.
        unsafe {
            match self {
                Wide::Xmm => xmm::<true>(from, to, last, len, crc, ahead),
                Wide::Ymm => ymm::<true>(from, to, last, len, crc, ahead),
                Wide::Zmm => zmm::<true>(from, to, last, len, crc, ahead),
            }
        }
    }
}

macro_rules! ways {
    ($($wide:expr, $name:ident, $led:ident, $left:ident, $features:literal, $block:path, $some:path, $blocks:path;)*) => {$(
        /// The state after `len` bytes at `from`. If `COPY` they go to `to`, but the last bytes of the last whole block, if there is
        /// one, to `last`, and lines may be asked for `ahead` of what is copied.
        ///
        /// # Safety
        /// As for [`Wide::sum`], and for [`Wide::copy`] if `COPY`.
        #[target_feature(enable = $features)]
        unsafe fn $name<const COPY: bool>(
            from: *const u8,
            to: *mut u8,
            last: *mut u8,
            len: usize,
            crc: u32,
            ahead: Option<Ahead>,
        ) -> u32 {
            // SAFETY: the caller's promises.
            let left = unsafe { $left::<COPY>(from, to, last, len, crc, ahead) };
            !(register::remainder(left.bytes) ^ left.state)
        }

        /// The same of a copy behind a lead.
        ///
        /// # Safety
        /// As for [`Wide::copy_led`].
        #[target_feature(enable = $features)]
        unsafe fn $led(
            from: *const u8,
            to: *mut u8,
            len: usize,
            crc: u32,
            first: u64,
            second: u64,
            behind: usize,
        ) -> u32 {
            let last = to.wrapping_add(len).wrapping_sub($wide.last());
            // SAFETY: the caller's promises; the last bytes of a block, if there is one, go where they belong.
            let left = unsafe { $left::<true>(from, to, last, len, crc, None) };
            let lead = register::moved(register::pair(first, second), register::over_fours((behind + len) / 4));
            !(register::remainder(_mm_xor_si128(left.bytes, lead)) ^ left.state)
        }

        /// What bytes leave.
        ///
        /// # Safety
        /// As for the first.
        #[inline]
        #[target_feature(enable = $features)]
        unsafe fn $left<const COPY: bool>(
            from: *const u8,
            to: *mut u8,
            last: *mut u8,
            len: usize,
            crc: u32,
            ahead: Option<Ahead>,
        ) -> Left {
            let (odd, whole) = (len % $block, len - len % $block);
            let left = match odd {
                0 => Left { bytes: _mm_setzero_si128(), state: !crc },
                // SAFETY: the first of `len` bytes.
                1..16 => unsafe { few::few::<COPY>(from, to, odd, !crc) },
                // SAFETY: the same.
                _ => Left { bytes: unsafe { $some(from, to, odd, !crc) }, state: 0 },
            };
            if whole == 0 {
                return left;
            }
            let before = left.before();
            let (from, to) = (from.wrapping_add(odd), to.wrapping_add(odd));
            // SAFETY: the others, whole blocks.
            Left { bytes: unsafe { $blocks(from, to, last, whole, before, ahead) }, state: 0 }
        }
    )*};
}

ways! {
    Wide::Xmm, xmm, xmm_led, xmm_left, "avx,pclmulqdq", blocks::XMM, few::some::<COPY>, blocks::xmm::<COPY>;
    Wide::Ymm, ymm, ymm_led, ymm_left, "avx2,pclmulqdq", blocks::YMM, few::some_wide::<COPY>, blocks::ymm::<COPY>;
    Wide::Zmm, zmm, zmm_led, zmm_left, "avx2,pclmulqdq", zmm::ZMM, few::some_wide::<COPY>, zmm::zmm::<COPY>;
}
