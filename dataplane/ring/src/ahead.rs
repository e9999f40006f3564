//! Asking for memory before it is needed: what is named early is on its way from memory while other work is done. Of many queue pairs
//! nothing is in a cache when its turn comes, and what waits for one line after the other waits longer than it works.

/// Bytes of a cache line.
const LINE: usize = 64;

/// Asks for the lines of an item. Nothing is read, changed or waited for.
#[inline(always)]
pub fn fetch<T>(item: &T) {
    fetch_from(item, size_of::<T>());
}

/// Asks for the lines of so many bytes from the beginning of `first` on.
#[inline(always)]
pub fn fetch_from<T>(first: &T, bytes: usize) {
    let first = std::ptr::from_ref(first).cast::<u8>();
    // From the beginning of its line: a range that ends in another one has it asked for, too.
    let skew = first.addr() % LINE;
    for line in 0..(skew + bytes).div_ceil(LINE) {
        let address = first.wrapping_sub(skew).wrapping_add(line * LINE);
        #[cfg(all(target_arch = "x86_64", not(miri)))]
        // SAFETY: a prefetch reads nothing that the program sees and faults on no address.
        unsafe {
            std::arch::x86_64::_mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T0 }>(address.cast());
        }
        #[cfg(not(all(target_arch = "x86_64", not(miri))))]
        let _ = address;
    }
}
