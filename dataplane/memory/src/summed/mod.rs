//! CRC-32 of bytes that somebody else may be writing, by themselves or while they are copied: what is summed is what was copied.
//!
//! Where the processor multiplies without carry this is all of [`crc::Wide`]: one pass. Elsewhere, and under Miri, `pieces.rs` copies pieces
//! that stay in the first cache and sums them there.

mod pieces;

use crate::copy;
use std::mem::MaybeUninit;
use std::ptr::NonNull;

use crc::Lead;
#[cfg(all(target_arch = "x86_64", not(miri)))]
use crc::Wide;

/// The state after the `len` bytes at `from`, given that before.
///
/// # Safety
/// `from` is readable for `len` bytes, which others may be writing by accesses like these or outside of the program's view.
#[inline]
pub(crate) unsafe fn sum(from: *const u8, len: usize, crc: u32) -> u32 {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    if let Some(wide) = Wide::found() {
        // SAFETY: the caller's promise; the processor was asked.
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
    if let Some(wide) = Wide::found() {
        // SAFETY: the caller's promise; the processor was asked.
        return unsafe { wide.copy(from, to, len, crc) };
    }
    // SAFETY: the caller's promise.
    unsafe { pieces::copy(from, to, len, crc) }
}

/// The same behind a [`Lead`].
///
/// # Safety
/// As for [`copy`].
#[inline(always)]
pub(crate) unsafe fn copy_led(from: *const u8, to: *mut u8, len: usize, lead: Lead) -> u32 {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    if let Some(wide) = Wide::found().filter(|_| lead.reaches(len)) {
        // SAFETY: the caller's promise; the processor was asked, and so was the lead.
        return unsafe { wide.copy_led(from, to, len, lead) };
    }
    // SAFETY: the caller's promise.
    unsafe { copy(from, to, len, lead.state()) }
}

/// The same of two strings of `len` bytes each, whose leads differ in their sixteen bytes alone.
///
/// # Safety
/// As for [`copy`] of each.
#[inline(always)]
pub(crate) unsafe fn copy_led_pair(
    (from, to): (*const u8, *mut u8),
    (other, its): (*const u8, *mut u8),
    len: usize,
    lead: Lead,
    its_lead: [u64; 2],
) -> (u32, u32) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    if let Some(wide) = Wide::found().filter(|_| lead.reaches(len)) {
        // SAFETY: the caller's promise; the processor was asked, and so was the lead.
        return unsafe { wide.copy_led_pair((from, to), (other, its), len, lead, its_lead) };
    }
    // SAFETY: the caller's promise.
    let first = unsafe { copy_led(from, to, len, lead) };
    // SAFETY: the same.
    (first, unsafe { copy_led(other, its, len, Lead { bytes: its_lead, ..lead }) })
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

/// The last bytes of a copy, which are placed when their sum was found right.
///
/// A register's worth lies in one cache line, to be read again at once (see [`copy::registers_in`]).
#[derive(Debug)]
#[repr(align(64))]
pub(crate) struct Kept {
    /// The first `len` are there.
    bytes: MaybeUninit<[u8; Self::MOST]>,
    len: usize,
}

/// A region of so many bytes lies in no cache as a whole: what is written there next may have to come from memory.
const COLD_FROM: usize = 8 << 20;

/// What follows, if lines are to be asked for ahead: without that, a copy to memory that no cache holds waits for each of its lines.
/// A Xeon with AVX-512 gains by it wherever a region of `region` bytes lies; Zen 3, without, loses by it what is in its caches.
#[cfg(all(target_arch = "x86_64", not(miri)))]
#[inline]
fn asked(wide: Wide, follows: usize, region: usize) -> Option<usize> {
    (wide == Wide::Zmm || region >= COLD_FROM).then_some(follows)
}

impl Kept {
    /// What any way of [`crc::Wide`] keeps. More than a word at the end, which is written at once ([`copy::copy_in`]).
    const MOST: usize = 256;

    /// Room for them. Where it is it has to stay: to be moved costs more than most of them are worth.
    #[inline(always)]
    pub fn none() -> Kept {
        Kept { bytes: MaybeUninit::uninit(), len: 0 }
    }

    /// Copies `len` bytes, all but the last few, which are kept; the state after all of them, given that before. `follows` bytes behind
    /// them are going to be written soon, all of a region of `region` bytes.
    ///
    /// # Safety
    /// As for [`copy`](self::copy).
    #[inline]
    pub unsafe fn copy(
        &mut self,
        from: *const u8,
        to: *mut u8,
        len: usize,
        crc: u32,
        follows: usize,
        region: usize,
    ) -> u32 {
        let room = self.bytes.as_mut_ptr().cast();
        #[cfg(all(target_arch = "x86_64", not(miri)))]
        if let Some(wide) = Wide::found() {
            const { assert!(Self::MOST >= Wide::MOST) };
            // SAFETY: the caller's promise, and room for a block; the processor was asked.
            let (state, most) =
                unsafe { wide.copy_but_last(from, to, room, len, crc, asked(wide, follows, region)) };
            self.len = most;
            return state;
        }
        self.len = len.min(Self::MOST);
        let first = len - self.len;
        // SAFETY: the caller's promise: the first of `len` bytes.
        let state = unsafe { pieces::copy(from, to, first, crc) };
        // SAFETY: the rest of them, for which there is room.
        unsafe { pieces::copy(from.wrapping_add(first), room, self.len, state) }
    }

    /// Puts them in their place, the tail last: see [`copy::copy_in`].
    ///
    /// # Safety
    /// `to` and `len` are those that they were taken from, writable still.
    #[inline]
    pub unsafe fn place(&self, to: *mut u8, len: usize) {
        debug_assert!(self.len <= len);
        let from = self.bytes.as_ptr().cast();
        // SAFETY: the last `self.len` of `len` bytes; what was kept is our own.
        unsafe {
            let to = to.add(len - self.len);
            match self.len {
                16 | 32 | 64 => copy::registers_in(from, to, self.len),
                kept => copy::copy_in(from, to, kept),
            }
        }
    }
}

#[cfg(test)]
mod tests;
