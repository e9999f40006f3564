//! Loads that may race, and stores if the bytes are copied: instructions in `asm!`, which the compiler treats as opaque and whose
//! meaning is a copy byte by byte in no particular order. What they give is what they stored.
//!
//! All take: `from` is readable for so many bytes, `to` writable if `COPY`; of any alignment.

use std::arch::asm;
use std::arch::x86_64::*;

macro_rules! moves {
    ($($name:ident, $value:ty, $class:ident, $features:literal, $load:literal, $store:literal;)*) => {$(
        /// See above.
        ///
        /// # Safety
        /// See above.
        #[inline]
        #[target_feature(enable = $features)]
        pub unsafe fn $name<const COPY: bool>(from: *const u8, to: *mut u8) -> $value {
            let value: $value;
            // SAFETY: the caller's promise.
            unsafe {
                asm!($load, from = in(reg) from, value = lateout($class) value,
                    options(readonly, nostack, preserves_flags));
            }
            if COPY {
                // SAFETY: the caller's promise.
                unsafe {
                    asm!($store, to = in(reg) to, value = in($class) value, options(nostack, preserves_flags));
                }
            }
            value
        }
    )*};
}

moves! {
    move1, u8, reg_byte, "avx", "mov {value}, [{from}]", "mov [{to}], {value}";
    move2, u16, reg, "avx", "mov {value:x}, [{from}]", "mov [{to}], {value:x}";
    move4, u32, reg, "avx", "mov {value:e}, [{from}]", "mov [{to}], {value:e}";
    move8, u64, reg, "avx", "mov {value}, [{from}]", "mov [{to}], {value}";
    move16, __m128i, xmm_reg, "avx", "vmovdqu {value}, [{from}]", "vmovdqu [{to}], {value}";
    move32, __m256i, ymm_reg, "avx", "vmovdqu {value}, [{from}]", "vmovdqu [{to}], {value}";
}
