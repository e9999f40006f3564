//! Moves of bytes that somebody else may be writing.
//!
//! Rust calls an ordinary access that races with a write undefined, and applications do race with peers. Here
//! every access to shared bytes is one that may race: on x86-64 instructions in `asm!`, which the compiler treats as
//! opaque and whose meaning is a copy byte by byte in no particular order; elsewhere, and under Miri, relaxed atomic
//! loads and stores. A race then yields old or new bytes, as it does with an adapter that writes by DMA.

use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};

/// Copies `len` bytes out of shared memory.
///
/// # Safety
/// `from` is readable for `len` bytes, which others may be writing by accesses like these or outside of the program's
/// view. `to` is writable for `len` bytes and the caller's alone; the two do not overlap.
#[inline]
pub(crate) unsafe fn copy_out(from: *const u8, to: *mut u8, len: usize) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    // SAFETY: the caller's promise is the callee's condition.
    unsafe {
        x86::copy(from, to, len);
    }
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    // SAFETY: the caller's promise is the callee's condition.
    unsafe {
        portable::copy_out(from, to, len);
    }
}

/// Copies `len` bytes into shared memory, so that whoever sees the last byte sees all of them. On x86-64 that holds for
/// an aligned word at the end, too: it arrives at once.
///
/// # Safety
/// `to` is writable for `len` bytes, which others may be reading and writing by accesses like these or outside of the
/// program's view. `from` is readable for `len` bytes and nobody writes it; the two do not overlap.
#[inline]
pub(crate) unsafe fn copy_in(from: *const u8, to: *mut u8, len: usize) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    // SAFETY: the caller's promise is the callee's condition.
    unsafe {
        x86::copy_tail_last(from, to, len);
    }
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    // SAFETY: the caller's promise is the callee's condition.
    unsafe {
        portable::copy_tail_last(from, to, len);
    }
}

/// The same of a multiple of 16 bytes that were stored just now by registers, from an aligned place on. A load that lies across two
/// stores, or two sixteens of a wide one, waits until they are in the cache, behind every store before them: so none does.
///
/// # Safety
/// As for [`copy_in`]; there are 16 bytes at least.
#[inline(always)]
pub(crate) unsafe fn registers_in(from: *const u8, to: *mut u8, len: usize) {
    debug_assert!(len >= 16 && len.is_multiple_of(16));
    let before = len - 16;
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    for at in (0..before).step_by(16) {
        // SAFETY: the caller's promise for 16 of so many.
        unsafe { x86::move16(from.add(at), to.add(at)) };
    }
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    // SAFETY: the caller's promise.
    unsafe {
        copy_in(from, to, before);
    }
    // SAFETY: the caller's promise for the last 16.
    unsafe { copy_in(from.add(before), to.add(before), 16) };
}

/// Reads a byte; later reads see what was written before it.
///
/// # Safety
/// `at` is readable; races as for [`copy_out`].
#[inline]
pub(crate) unsafe fn load_u8(at: *const u8) -> u8 {
    // SAFETY: the caller's promise; a load through the atomic writes nothing.
    unsafe { AtomicU8::from_ptr(at.cast_mut()) }.load(Ordering::Acquire)
}

/// Stores 8 bytes at once, after everything that was written before.
///
/// # Safety
/// `at` is writable for 8 bytes and aligned to 8.
#[inline]
pub(crate) unsafe fn store_u64(at: *mut u8, value: u64) {
    // SAFETY: the caller's promise.
    unsafe { word(at) }.store(value, Ordering::Release);
}

/// The aligned 8 bytes at `at` as an atomic.
///
/// # Safety
/// `at` is aligned to 8, and readable and writable for 8 bytes as long as the result is used.
#[inline]
pub(crate) unsafe fn word<'a>(at: *mut u8) -> &'a AtomicU64 {
    // SAFETY: the caller's promise.
    unsafe { AtomicU64::from_ptr(at.cast()) }
}

#[cfg(all(target_arch = "x86_64", not(miri)))]
mod x86 {
    use std::arch::asm;

    /// From here on the string instruction wins over 16 bytes at a time.
    const STRING_FROM: usize = 512;

    /// Copies `len` bytes between ranges that do not overlap, either of them shared.
    #[inline]
    pub unsafe fn copy(from: *const u8, to: *mut u8, len: usize) {
        // Short lengths: two moves that may overlap each other cover every length of a class.
        // SAFETY: each arm moves within `len` bytes: its unit fits into `len`, and `len - unit` is where the last begins.
        unsafe {
            match len {
                0 => {}
                1 => move1(from, to),
                2..=3 => ends::<2>(from, to, len, move2),
                4..=7 => ends::<4>(from, to, len, move4),
                8..=15 => ends::<8>(from, to, len, move8),
                16..=32 => ends::<16>(from, to, len, move16),
                33..=64 => ends::<32>(from, to, len, move32),
                65..STRING_FROM => sixteens(from, to, len),
                _ => string(from, to, len),
            }
        }
    }

    /// See [`super::copy_in`]. The processor keeps stores in order, those of a string instruction before all later ones.
    #[inline]
    pub unsafe fn copy_tail_last(from: *const u8, to: *mut u8, len: usize) {
        match len {
            0 => {}
            // Programs poll either a byte or an aligned word.
            8.. if to.addr().wrapping_add(len).is_multiple_of(8) => {
                match len - 8 {
                    // As of the smallest messages that benchmarks send: no call.
                    // SAFETY: as in `copy`.
                    len @ 33..=64 => unsafe { ends::<32>(from, to, len, move32) },
                    // SAFETY: the caller's promise for more.
                    len => unsafe { copy(from, to, len) },
                }
                // SAFETY: the last 8 bytes lie within `len`.
                unsafe { move8(from.add(len - 8), to.add(len - 8)) };
            }
            _ => {
                // SAFETY: `1 <= len`.
                unsafe { copy(from, to, len - 1) };
                // SAFETY: the last byte lies within `len`.
                unsafe { move1(from.add(len - 1), to.add(len - 1)) };
            }
        }
    }

    type Move = unsafe fn(*const u8, *mut u8);

    #[inline(always)]
    unsafe fn ends<const N: usize>(from: *const u8, to: *mut u8, len: usize, unit: Move) {
        // SAFETY: `N <= len`, so the first and the last `N` bytes lie within.
        unsafe { unit(from, to) };
        // SAFETY: as above.
        unsafe { unit(from.add(len - N), to.add(len - N)) };
    }

    #[inline(always)]
    unsafe fn move32(from: *const u8, to: *mut u8) {
        // SAFETY: the caller gives 32 bytes to read and to write.
        unsafe { move16(from, to) };
        // SAFETY: as above.
        unsafe { move16(from.add(16), to.add(16)) };
    }

    #[inline(always)]
    unsafe fn sixteens(from: *const u8, to: *mut u8, len: usize) {
        let mut at = 0;
        while at + 16 <= len {
            // SAFETY: 16 bytes from `at` lie within `len`.
            unsafe { move16(from.add(at), to.add(at)) };
            at += 16;
        }
        // SAFETY: `len >= 16`, so the last 16 bytes lie within. They may overlap what was moved already: the same bytes.
        unsafe { move16(from.add(len - 16), to.add(len - 16)) };
    }

    /// One instruction for the whole copy, which processors of the last ten years run a cache line at a time, if the line
    /// is a whole one where it goes: so what is before the first such line is moved by hand.
    #[inline(always)]
    unsafe fn string(from: *const u8, to: *mut u8, len: usize) {
        // SAFETY: `len` is at least `STRING_FROM`, more than a line. Bytes moved twice are the same bytes.
        unsafe { sixteens(from, to, 64) };
        let ahead = 64 - to.addr() % 64;
        let len = len - ahead;
        // SAFETY: `ahead` is at most a line, which lies within.
        let (from, to) = unsafe { (from.add(ahead), to.add(ahead)) };
        // SAFETY: reads and writes `len` bytes upwards; the ABI keeps the direction flag clear.
        unsafe {
            asm!("rep movsb", inout("rcx") len => _, inout("rsi") from => _, inout("rdi") to => _,
                options(nostack, preserves_flags));
        }
    }

    macro_rules! moves {
        ($($name:ident, $bytes:literal, $class:ident, $load:literal, $store:literal;)*) => {$(
            #[doc = concat!("Moves ", $bytes, " bytes.")]
            #[inline(always)]
            pub unsafe fn $name(from: *const u8, to: *mut u8) {
                // SAFETY: the caller gives so many bytes to read and to write; alignment does not matter here.
                unsafe {
                    asm!($load, $store, from = in(reg) from, to = in(reg) to, t = out($class) _,
                        options(nostack, preserves_flags));
                }
            }
        )*};
    }

    moves! {
        move1, 1, reg_byte, "mov {t}, [{from}]", "mov [{to}], {t}";
        move2, 2, reg, "mov {t:x}, [{from}]", "mov [{to}], {t:x}";
        move4, 4, reg, "mov {t:e}, [{from}]", "mov [{to}], {t:e}";
        move8, 8, reg, "mov {t}, [{from}]", "mov [{to}], {t}";
        move16, 16, xmm_reg, "movups {t}, [{from}]", "movups [{to}], {t}";
    }
}

#[cfg(not(all(target_arch = "x86_64", not(miri))))]
mod portable {
    use super::*;

    /// See [`super::copy_out`].
    pub unsafe fn copy_out(from: *const u8, to: *mut u8, len: usize) {
        for at in 0..len {
            // SAFETY: `at < len`. The atomic only loads.
            let byte = unsafe { AtomicU8::from_ptr(from.add(at).cast_mut()) }.load(Ordering::Relaxed);
            // SAFETY: `at < len`.
            unsafe { to.add(at).write(byte) };
        }
    }

    /// See [`super::copy_in`].
    pub unsafe fn copy_tail_last(from: *const u8, to: *mut u8, len: usize) {
        for at in 0..len {
            // SAFETY: `at < len`.
            let byte = unsafe { from.add(at).read() };
            let order = if at + 1 == len { Ordering::Release } else { Ordering::Relaxed };
            // SAFETY: `at < len`.
            unsafe { AtomicU8::from_ptr(to.add(at)) }.store(byte, order);
        }
    }
}
