//! Whole blocks with AVX-512, whose registers the oldest compilers that we take have no types for: so all of it is in `asm!`.

use super::Ahead;
use crate::constants::over;
use std::arch::asm;
use std::arch::x86_64::__m128i;

/// Bytes of a block.
pub const ZMM: usize = 256;
/// How far ahead of a copy lines are asked for.
const AHEAD: usize = 1024;

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

/// What whole blocks leave, as in `blocks.rs`. What is read is asked for ahead, too.
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
    ahead: Option<Ahead>,
) -> __m128i {
    // With so many bytes left or more, the lines that a block asks for lie within what follows.
    let asks = ahead.map_or(usize::MAX, |ahead| (AHEAD + ZMM).saturating_sub(ahead.follows));
    // SAFETY: the caller's promises.
    unsafe {
        match ahead {
            _ if !COPY => sums(from, to, last, len, before, asks),
            Some(Ahead { far: true, .. }) => copies_far(from, to, last, len, before, asks),
            _ => copies(from, to, last, len, before, asks),
        }
    }
}

/// Asks for the lines of a block `{ahead}` bytes behind this one.
macro_rules! ask_zmm {
    ($what:literal, $at:literal) => {
        concat!(
            $what,
            " [{",
            $at,
            "} + {ahead}]\n",
            $what,
            " [{",
            $at,
            "} + {ahead} + 64]\n",
            $what,
            " [{",
            $at,
            "} + {ahead} + 128]\n",
            $what,
            " [{",
            $at,
            "} + {ahead} + 192]\n",
        )
    };
}

/// What every block begins with: if `{asks}` bytes are left, lines are asked for. Operands that one has no use for are named all the same,
/// as `asm!` wants it.
macro_rules! begin_zmm {
    (sum) => {
        "/* {to} {last} {ahead} {asks} */"
    };
    (near) => {
        concat!(
            "cmp {left}, {asks}\njb 4f\n",
            ask_zmm!("prefetcht0", "from"),
            ask_zmm!("prefetchw", "to"),
            "4:"
        )
    };
    // To be written, but out of memory, where nobody else has the line: it comes as this core's alone. To ask for it by way of the second
    // cache is faster, probably since the first one has few places at which it waits for lines.
    (far) => {
        concat!(
            "cmp {left}, {asks}\njb 4f\n",
            ask_zmm!("prefetcht0", "from"),
            ask_zmm!("prefetcht1", "to"),
            "4:"
        )
    };
}

/// A register goes to its place, if it goes anywhere.
macro_rules! store_zmm {
    (sum, $register:literal, $place:literal) => {
        ""
    };
    ($copy:ident, $register:literal, $place:literal) => {
        concat!("vmovdqu64 [", $place, "], zmm", $register)
    };
}

/// The last register goes to its place by sixteens: it is read again soon, and no load that lies in a sixteen has to wait until it is in
/// the cache, behind all stores before it.
macro_rules! last_zmm {
    (sum) => {
        ""
    };
    ($copy:ident) => {
        concat!(
            "vmovdqu [{last}], xmm11\nvextracti32x4 [{last} + 16], zmm11, 1\n",
            "vextracti32x4 [{last} + 32], zmm11, 2\nvextracti32x4 [{last} + 48], zmm11, 3"
        )
    };
}

/// One register of a later block, by way of another one, added to what is moved over the block.
macro_rules! next_zmm {
    ($at:literal, $sum:literal, $by:literal) => {
        concat!(
            "vmovdqu64 zmm",
            $by,
            ", [{from} + ",
            $at,
            "]\n",
            "vpclmulqdq zmm9, zmm",
            $sum,
            ", zmm10, 0x00\n",
            "vpclmulqdq zmm",
            $sum,
            ", zmm",
            $sum,
            ", zmm10, 0x11\n",
            "vpternlogq zmm",
            $sum,
            ", zmm9, zmm",
            $by,
            ", 0x96",
        )
    };
}

macro_rules! fold_zmm {
    ($name:ident, $how:ident) => {
        /// # Safety
        /// As for [`zmm`].
        #[inline]
        #[target_feature(enable = "avx2,pclmulqdq")]
        unsafe fn $name(
            from: *const u8,
            to: *mut u8,
            last: *mut u8,
            len: usize,
            before: __m128i,
            asks: usize,
        ) -> __m128i {
            let all;
            // SAFETY: reads `len` bytes upwards, a block at a time, and writes as many if it copies, the last register to `last`. These
            // loads and stores are of any alignment; `over` is of an aligned type. Registers are given up as listed, their upper parts
            // cleared.
            unsafe {
                asm!(
                    "vbroadcasti32x4 zmm10, [{over} + 64]",
                    // Clears what is above.
                    "vmovdqa xmm8, xmm8",
                    begin_zmm!($how),
                    "vmovdqu64 zmm0, [{from}]",
                    store_zmm!($how, "0", "{to}"),
                    "vmovdqu64 zmm1, [{from} + 64]",
                    store_zmm!($how, "1", "{to} + 64"),
                    "vmovdqu64 zmm2, [{from} + 128]",
                    store_zmm!($how, "2", "{to} + 128"),
                    "vmovdqu64 zmm3, [{from} + 192]",
                    "vmovdqa64 zmm11, zmm3",
                    "vpxorq zmm0, zmm0, zmm8",
                    "jmp 3f",
                    "2:",
                    // It was not the last one.
                    store_zmm!($how, "11", "{to} - 64"),
                    begin_zmm!($how),
                    next_zmm!("0", "0", "8"),
                    store_zmm!($how, "8", "{to}"),
                    next_zmm!("64", "1", "12"),
                    store_zmm!($how, "12", "{to} + 64"),
                    next_zmm!("128", "2", "13"),
                    store_zmm!($how, "13", "{to} + 128"),
                    next_zmm!("192", "3", "11"),
                    "3:",
                    "add {from}, 256",
                    "add {to}, 256",
                    "sub {left}, 256",
                    "jnz 2b",
                    last_zmm!($how),
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
                    ahead = const AHEAD,
                    asks = in(reg) asks,
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

fold_zmm!(sums, sum);
fold_zmm!(copies, near);
fold_zmm!(copies_far, far);
