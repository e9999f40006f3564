//! CRC-32 of bytes that somebody else may be writing, by themselves or while they are copied: what is summed is what was copied.
//!
//! Where the processor multiplies without carry this is all of [`crc::Wide`]: one pass. Elsewhere, and under Miri, `pieces.rs` copies pieces
//! that stay in the first cache and sums them there.

mod kept;
mod pieces;

pub(crate) use kept::copy_if;

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

#[cfg(test)]
mod tests;
