//! Whole blocks with AVX-512, whose registers the oldest compilers that we take have no types for: so all of it is in `asm!`.

use crate::constants::over;
use std::arch::asm;
use std::arch::x86_64::__m128i;

/// Bytes of a block.
pub const ZMM: usize = 256;

/// What moves a register over a block, and then the first three of four over those behind them, and the first three
/// lanes of a register over those behind them.
#[repr(C, align(64))]
struct OverZmm {
    lanes: [[u64; 2]; 4],
    block: [u64; 2],
    registers: [[u64; 2]; 3],
}

static OVER_ZMM: OverZmm = OverZmm {
    lanes: [over(48), over(32), over(16), [0, 0]],
    block: over(256),
    registers: [over(192), over(128), over(64)],
};

/// What whole blocks leave, as in `blocks.rs`.
///
/// # Safety
/// As there.
#[inline]
#[target_feature(enable = "avx2,pclmulqdq")]
pub unsafe fn zmm<const COPY: bool>(
    from: *const u8,
    to: *mut u8,
    last: *mut u8,
    len: usize,
    before: __m128i,
    _ahead: usize,
) -> __m128i {
    // SAFETY: the caller's promises.
    unsafe { if COPY { copies(from, to, last, len, before) } else { sums(from, to, last, len, before) } }
}

/// One register of the first block. `$store` is the instruction that stores it, if any does.
macro_rules! first_zmm {
    ($at:literal, $to:literal $(, $store:literal)?) => {
        concat!("vmovdqu64 zmm", $to, ", [{from} + ", $at, "]" $(, "\n", $store, " [{to} + ", $at, "], zmm", $to)?)
    };
}

/// One register of a later block, added to what is moved over the block.
macro_rules! next_zmm {
    ($at:literal, $to:literal $(, $store:literal)?) => {
        concat!(
            "vmovdqu64 zmm8, [{from} + ", $at, "]\n",
            $($store, " [{to} + ", $at, "], zmm8\n",)?
            "vpclmulqdq zmm9, zmm", $to, ", zmm10, 0x00\n",
            "vpclmulqdq zmm", $to, ", zmm", $to, ", zmm10, 0x11\n",
            "vpternlogq zmm", $to, ", zmm9, zmm8, 0x96",
        )
    };
}

macro_rules! fold_zmm {
    ($name:ident $(, $store:literal)?) => {
        /// # Safety
        /// As for [`zmm`].
        #[inline]
        #[target_feature(enable = "avx2,pclmulqdq")]
        unsafe fn $name(from: *const u8, to: *mut u8, last: *mut u8, len: usize, before: __m128i) -> __m128i {
            let all;
            // SAFETY: reads `len` bytes upwards, a block at a time, and writes as many if it stores, the last block to `last`. These
            // loads and stores are of any alignment; `over` is of an aligned type. Registers are given up as listed, their upper parts
            // cleared.
            unsafe {
                asm!(
                    "vbroadcasti32x4 zmm10, [{over} + 64]",
                    // Clears what is above.
                    "vmovdqa xmm8, xmm8",
                    "cmp {left}, 256",
                    "cmove {to}, {last}",
                    first_zmm!("0", "0" $(, $store)?),
                    first_zmm!("64", "1" $(, $store)?),
                    first_zmm!("128", "2" $(, $store)?),
                    first_zmm!("192", "3" $(, $store)?),
                    "vpxorq zmm0, zmm0, zmm8",
                    "jmp 3f",
                    "2:",
                    "cmp {left}, 256",
                    "cmove {to}, {last}",
                    next_zmm!("0", "0" $(, $store)?),
                    next_zmm!("64", "1" $(, $store)?),
                    next_zmm!("128", "2" $(, $store)?),
                    next_zmm!("192", "3" $(, $store)?),
                    "3:",
                    "add {from}, 256",
                    "add {to}, 256",
                    "sub {left}, 256",
                    "jnz 2b",
                    // Four registers become one,
                    "vbroadcasti32x4 zmm4, [{over} + 80]",
                    "vbroadcasti32x4 zmm5, [{over} + 96]",
                    "vbroadcasti32x4 zmm6, [{over} + 112]",
                    "vpclmulqdq zmm7, zmm0, zmm4, 0x00",
                    "vpclmulqdq zmm8, zmm1, zmm5, 0x00",
                    "vpclmulqdq zmm9, zmm2, zmm6, 0x00",
                    "vpclmulqdq zmm0, zmm0, zmm4, 0x11",
                    "vpclmulqdq zmm1, zmm1, zmm5, 0x11",
                    "vpclmulqdq zmm2, zmm2, zmm6, 0x11",
                    "vpternlogq zmm0, zmm7, zmm3, 0x96",
                    "vpternlogq zmm1, zmm8, zmm9, 0x96",
                    "vpternlogq zmm0, zmm1, zmm2, 0x96",
                    // and its four lanes one.
                    "vmovdqa64 zmm4, [{over}]",
                    "vextracti32x4 xmm3, zmm0, 3",
                    "vpclmulqdq zmm5, zmm0, zmm4, 0x00",
                    "vpclmulqdq zmm6, zmm0, zmm4, 0x11",
                    "vpxorq zmm5, zmm5, zmm6",
                    "vextracti64x4 ymm6, zmm5, 1",
                    "vpxor ymm5, ymm5, ymm6",
                    "vextracti128 xmm6, ymm5, 1",
                    "vpxor xmm5, xmm5, xmm6",
                    "vpxor xmm3, xmm3, xmm5",
                    "vzeroupper",
                    from = inout(reg) from => _,
                    to = inout(reg) to => _,
                    last = in(reg) last,
                    left = inout(reg) len => _,
                    over = in(reg) &raw const OVER_ZMM,
                    out("xmm0") _, out("xmm1") _, out("xmm2") _, out("xmm3") all, out("xmm4") _, out("xmm5") _,
                    out("xmm6") _, out("xmm7") _, inout("xmm8") before => _, out("xmm9") _, out("xmm10") _, out("xmm11") _,
                    out("xmm12") _, out("xmm13") _, out("xmm14") _, out("xmm15") _,
                    options(nostack),
                );
            }
            all
        }
    };
}

fold_zmm!(sums);
fold_zmm!(copies, "vmovdqu64");
