//! CRC-32 of bytes that somebody else may be writing, by themselves or while they are copied: what is summed is what was copied.
//!
//! | way | for | bytes at a time |
//! | --- | --- | --- |
//! | `wide.rs` | AVX-512 and VPCLMULQDQ | 256 |
//! | `wide.rs` | AVX2 and VPCLMULQDQ | 128 |
//! | `wide.rs` | AVX and PCLMULQDQ | 128 |
//! | `pieces.rs` | any processor, Miri, and what is left of the others | 1024 |
//!
//! The first three load each byte once, store it if it is copied, and fold it into those that follow a block later; the last
//! copies pieces that stay in the first cache and sums them there, by what `crc32fast` finds. All give the same state, the form
//! that `crc32fast` takes and gives.

mod pieces;
#[cfg(all(target_arch = "x86_64", not(miri)))]
mod wide;

use crate::copy;
use std::mem::MaybeUninit;
use std::ptr::NonNull;

#[cfg(all(target_arch = "x86_64", not(miri)))]
use wide::Wide;

/// The state after the `len` bytes at `from`, given that before.
///
/// # Safety
/// `from` is readable for `len` bytes, which others may be writing by accesses like these or outside of the program's view.
#[inline]
pub(crate) unsafe fn sum(from: *const u8, len: usize, crc: u32) -> u32 {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    if let Some(wide) = Wide::worth(len) {
        // SAFETY: the caller's promise; the processor was asked, and there is a block.
        return unsafe { wide.sum(from, len, crc) };
    }
    // SAFETY: the caller's promise.
    unsafe { pieces::sum(from, len, crc) }
}

/// Copies `len` bytes and returns the state after them, given that before.
///
/// # Safety
/// `from` is readable and `to` writable for `len` bytes, which others may be reading and writing by accesses like these or
/// outside of the program's view. Where the two overlap, some bytes are copied that were copied before.
#[inline]
pub(crate) unsafe fn copy(from: *const u8, to: *mut u8, len: usize, crc: u32) -> u32 {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    if let Some(wide) = Wide::worth(len) {
        // SAFETY: the caller's promise; the processor was asked, and there is a block.
        return unsafe { wide.copy(from, to, len, crc) };
    }
    // SAFETY: the caller's promise.
    unsafe { pieces::copy(from, to, len, crc) }
}

/// Copies `to.len()` bytes that a [`Lender`](crate::Lender) has lent, and returns the CRC-32 state after them, given that
/// before.
///
/// # Safety
/// They begin at `from`, and the lender has not settled since.
#[inline]
pub unsafe fn copy_lent(from: NonNull<u8>, to: &mut [u8], crc: u32) -> u32 {
    // SAFETY: lent bytes are readable until then, and registered memory is never what a slice lies over.
    unsafe { copy(from.as_ptr(), to.as_mut_ptr(), to.len(), crc) }
}

/// A word at the end that is written at once ([`copy::copy_in`]) has to be among the kept bytes.
const WORD: usize = 8;

/// The last bytes of a copy, which are placed when their sum was found right.
#[derive(Debug)]
pub(crate) struct Kept {
    /// The first `len` are there.
    bytes: MaybeUninit<[u8; Self::MOST]>,
    len: usize,
}

impl Kept {
    /// A block, and what is less than one behind it.
    const MOST: usize = 512;

    /// Copies `len` bytes, all but the last few, which are kept; and the state after all of them, given that before.
    ///
    /// # Safety
    /// As for [`copy`].
    #[inline]
    pub unsafe fn copy(from: *const u8, to: *mut u8, len: usize, crc: u32) -> (Kept, u32) {
        let mut kept = Kept { bytes: MaybeUninit::uninit(), len: 0 };
        #[cfg(all(target_arch = "x86_64", not(miri)))]
        if let Some(wide) = Wide::worth(len) {
            // SAFETY: the caller's promise; the processor was asked, and there is a block.
            let (state, left) = unsafe { wide.copy_but_last(from, to, len, crc, &mut kept.bytes) };
            kept.len = left;
            return (kept, state);
        }
        let first = len.saturating_sub(WORD);
        kept.len = len - first;
        // SAFETY: the caller's promise: the first of `len` bytes.
        let state = unsafe { pieces::copy(from, to, first, crc) };
        // SAFETY: the rest of them, at most a word.
        let state = unsafe { pieces::copy(from.add(first), kept.bytes.as_mut_ptr().cast(), kept.len, state) };
        (kept, state)
    }

    /// Puts them in their place, the tail last: see [`copy::copy_in`].
    ///
    /// # Safety
    /// `to` and `len` are those that they were taken from, writable still.
    #[inline]
    pub unsafe fn place(&self, to: *mut u8, len: usize) {
        debug_assert!(self.len <= len);
        // SAFETY: the last `self.len` of `len` bytes; what was kept is our own.
        unsafe { copy::copy_in(self.bytes.as_ptr().cast(), to.add(len - self.len), self.len) };
    }
}

#[cfg(test)]
mod tests;
