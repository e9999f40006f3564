//! Copies whose last bytes wait for the sum of all.

use super::pieces;
use crate::copy;
use std::mem::MaybeUninit;

#[cfg(all(target_arch = "x86_64", not(miri)))]
use crc::{Ahead, Wide};

/// What any way of [`crc::Wide`] keeps. More than a word at the end, which is written at once ([`copy::copy_in`]).
const MOST: usize = 256;

/// A region of so many bytes or more lies in no cache as a whole: what is written there next may have to come from memory.
const FAR_FROM: usize = 8 << 20;

/// The last bytes of a copy. A register's worth lies in one cache line, to be read again at once (see [`copy::registers_in`]).
///
/// There is nothing beside them that has a value from the beginning: compilers set all of it to zero then.
#[repr(align(64))]
struct Kept(MaybeUninit<[u8; MOST]>);

/// Copies `len` bytes, but the last few only if `is_right` says so of the state after all of them, given that before; gives what it says.
/// `follows` bytes behind them are going to be written soon, or may be, all of a region of `region` bytes.
///
/// # Safety
/// As for [`copy`](super::copy).
#[inline]
pub(crate) unsafe fn copy_if(
    from: *const u8,
    to: *mut u8,
    len: usize,
    crc: u32,
    (follows, region): (usize, usize),
    is_right: impl FnOnce(u32) -> bool,
) -> bool {
    // It stays where it is: to be moved costs more than most of it is worth.
    let mut kept = Kept(MaybeUninit::uninit());
    // SAFETY: the caller's promise.
    let (state, most) = unsafe { kept.copy(from, to, len, crc, (follows, region)) };
    let right = is_right(state);
    if right {
        // SAFETY: the place and length of the copy.
        unsafe { kept.place(to, len, most) };
    }
    right
}

impl Kept {
    /// Copies all but the last bytes, which are kept: the state after all, and how many these are.
    ///
    /// # Safety
    /// As for [`copy_if`].
    #[inline(always)]
    unsafe fn copy(
        &mut self,
        from: *const u8,
        to: *mut u8,
        len: usize,
        crc: u32,
        (follows, region): (usize, usize),
    ) -> (u32, usize) {
        let room = self.0.as_mut_ptr().cast();
        #[cfg(all(target_arch = "x86_64", not(miri)))]
        if let Some(wide) = Wide::found() {
            const { assert!(MOST >= Wide::MOST) };
            let ahead = Some(Ahead { follows, far: region >= FAR_FROM });
            // SAFETY: the caller's promise, and room for a block; the processor was asked.
            return unsafe { wide.copy_but_last(from, to, room, len, crc, ahead) };
        }
        let most = len.min(MOST);
        let first = len - most;
        // SAFETY: the caller's promise: the first of `len` bytes.
        let state = unsafe { pieces::copy(from, to, first, crc) };
        // SAFETY: the rest of them, for which there is room.
        (unsafe { pieces::copy(from.wrapping_add(first), room, most, state) }, most)
    }

    /// Puts the last `most` of `len` bytes in their place, the tail last: see [`copy::copy_in`].
    ///
    /// # Safety
    /// So many were kept of so many, and `to` is where they were copied to.
    #[inline(always)]
    unsafe fn place(&self, to: *mut u8, len: usize, most: usize) {
        debug_assert!(most <= len);
        let from = self.0.as_ptr().cast();
        // SAFETY: the last `most` of `len` bytes; what was kept is our own.
        unsafe {
            let to = to.add(len - most);
            match most {
                16 | 32 | 64 => copy::registers_in(from, to, most),
                most => copy::copy_in(from, to, most),
            }
        }
    }
}
