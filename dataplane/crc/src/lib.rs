//! CRC-32 as in Ethernet and zlib: of bytes that others may be writing, too, by themselves or while they are copied. What is summed is
//! what was copied.
//!
//! | way | for | bytes at a time |
//! | --- | --- | --- |
//! | [`Wide::Zmm`] | AVX-512 and VPCLMULQDQ | 256, less by 32 |
//! | [`Wide::Ymm`] | AVX2 and VPCLMULQDQ | 128, less by 32 |
//! | [`Wide::Xmm`] | AVX and PCLMULQDQ | 128, less by 16 |
//! | `crc32fast` | any processor, and Miri | |
//!
//! The first three take any length, load each byte as often as they store it, multiply in registers until 32 bits are left, and look up no
//! table but of constants ("Fast CRC Computation for Generic Polynomials Using PCLMULQDQ"). Unsafe code is there alone (`x86/`).
//!
//! What strings that begin alike differ in can be summed last: a [`Lead`].
//!
//! A state is the CRC of what was seen so far, the form that `crc32fast` takes and gives.
#![warn(missing_docs)]
#![deny(unsafe_op_in_unsafe_fn)]

#[cfg(all(target_arch = "x86_64", not(miri)))]
mod constants;
mod lead;
#[cfg(all(target_arch = "x86_64", not(miri)))]
mod x86;

#[cfg(all(target_arch = "x86_64", not(miri)))]
use lead::LEAD_OVER;
pub use lead::Lead;

#[cfg(all(target_arch = "x86_64", not(miri)))]
pub use x86::{Ahead, Wide};

/// The state after `bytes`, given the state before.
#[inline]
pub fn update(crc: u32, bytes: &[u8]) -> u32 {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    if let Some(wide) = Wide::found() {
        // SAFETY: as many bytes as the slice has; the processor was asked.
        return unsafe { wide.sum(bytes.as_ptr(), bytes.len(), crc) };
    }
    let mut hasher = crc32fast::Hasher::new_with_initial(crc);
    hasher.update(bytes);
    hasher.finalize()
}

/// The same of two strings: sooner than one after the other if they are short and as long as each other.
#[inline]
pub fn update_pair((crc, bytes): (u32, &[u8]), (its_crc, other): (u32, &[u8])) -> (u32, u32) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    if let Some(wide) = Wide::found().filter(|_| bytes.len() == other.len()) {
        // SAFETY: as many bytes as both slices have; the processor was asked.
        return unsafe { wide.sum_pair((bytes.as_ptr(), crc), (other.as_ptr(), its_crc), bytes.len()) };
    }
    (update(crc, bytes), update(its_crc, other))
}

#[cfg(test)]
mod tests;
