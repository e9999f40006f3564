//! Asking for cache lines before they are needed.

/// Bytes of a cache line.
pub(crate) const CACHE_LINE: usize = 64;
/// Most lines of one frame to ask for: as many are on their way at once as a core can wait for, or a few more.
const MOST_LINES: usize = 16;

/// Lines to ask for of a frame that has `len` bytes from the address `start` on: none that it does not lie in, which would come from another
/// core in vain.
#[inline(always)]
pub(crate) fn of(start: usize, len: usize) -> usize {
    (start % CACHE_LINE + len).div_ceil(CACHE_LINE).min(MOST_LINES)
}

/// Asks for so many lines from `start` on, to be read.
#[inline(always)]
pub(crate) fn prefetch(start: *const u8, lines: usize) {
    for line in 0..lines {
        let address = start.wrapping_add(line * CACHE_LINE);
        #[cfg(target_arch = "x86_64")]
        // SAFETY: a prefetch reads nothing that the program sees and faults on no address.
        unsafe {
            std::arch::x86_64::_mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T0 }>(address.cast());
        }
        #[cfg(not(target_arch = "x86_64"))]
        let _ = address;
    }
}

/// Asks for a line without other cores' copies of it.
#[inline(always)]
pub(crate) fn own_line(address: *const u8) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch changes nothing that the program sees and faults on no address; processors that lack
    // `prefetchw` take it for no operation.
    unsafe {
        std::arch::asm!("prefetchw [{0}]", in(reg) address, options(nostack, preserves_flags, readonly));
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = address;
}
