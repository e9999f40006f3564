//! With carry-less multiplication: a block of bytes is loaded, stored if it is copied, and added to the remainder of all
//! before it, which is moved over the block's length ("Fast CRC Computation for Generic Polynomials Using PCLMULQDQ").
//!
//! The loads and stores are instructions in `asm!`, so that they may race (`copy.rs`). What is left after the last whole block
//! goes the way of `pieces.rs`.

use super::{Kept, WORD, pieces};
use std::arch::asm;
use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicU8, Ordering};

/// What the processor has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Wide {
    /// AVX and PCLMULQDQ: 16 bytes a register.
    Xmm = 2,
    /// AVX2 and VPCLMULQDQ: 32.
    Ymm = 3,
    /// AVX-512 and VPCLMULQDQ: 64.
    Zmm = 4,
}

/// Not asked yet; 1 is for none, others for a [`Wide`].
static FOUND: AtomicU8 = AtomicU8::new(0);

/// Below that pieces are as fast.
const WORTH_IT: usize = 512;

impl Wide {
    /// The best that there is, if it is worth it for so many bytes.
    #[inline]
    pub fn worth(len: usize) -> Option<Wide> {
        if len < WORTH_IT {
            return None;
        }
        match FOUND.load(Ordering::Relaxed) {
            2 => Some(Wide::Xmm),
            3 => Some(Wide::Ymm),
            4 => Some(Wide::Zmm),
            1 => None,
            _ => Wide::find(),
        }
    }

    #[cold]
    fn find() -> Option<Wide> {
        let best = [Wide::Zmm, Wide::Ymm, Wide::Xmm].into_iter().find(|wide| wide.is_there());
        FOUND.store(best.map_or(1, |wide| wide as u8), Ordering::Relaxed);
        best
    }

    /// Asks the processor.
    pub fn is_there(self) -> bool {
        use std::arch::is_x86_feature_detected as has;
        match self {
            Wide::Xmm => has!("avx") && has!("pclmulqdq"),
            Wide::Ymm => has!("avx2") && has!("vpclmulqdq"),
            Wide::Zmm => has!("avx512f") && has!("vpclmulqdq"),
        }
    }

    /// Bytes of a block.
    pub const fn block(self) -> usize {
        match self {
            Wide::Xmm | Wide::Ymm => 128,
            Wide::Zmm => 256,
        }
    }

    /// See [`super::sum`].
    ///
    /// # Safety
    /// As there; the processor has it, and there is a whole block.
    #[inline]
    pub unsafe fn sum(self, from: *const u8, len: usize, crc: u32) -> u32 {
        let whole = len - len % self.block();
        let mut folded = Folded::new();
        // SAFETY: whole blocks, at least one.
        unsafe {
            match self {
                Wide::Xmm => sum_xmm(from, folded.unused(), folded.unused(), whole, !crc, &mut folded),
                Wide::Ymm => sum_ymm(from, folded.unused(), folded.unused(), whole, !crc, &mut folded),
                Wide::Zmm => sum_zmm(from, folded.unused(), folded.unused(), whole, !crc, &mut folded),
            }
        }
        // SAFETY: it was folded just now.
        let state = unsafe { folded.state(self) };
        // SAFETY: what is left of the bytes at `from`.
        unsafe { pieces::sum(from.add(whole), len - whole, state) }
    }

    /// See [`super::copy`].
    ///
    /// # Safety
    /// As there; the processor has it, and there is a whole block.
    #[inline]
    pub unsafe fn copy(self, from: *const u8, to: *mut u8, len: usize, crc: u32) -> u32 {
        let whole = len - len % self.block();
        // SAFETY: whole blocks, at least one, the last of which goes where it belongs.
        let state = unsafe { self.blocks(from, to, to.add(whole - self.block()), whole, crc) };
        // SAFETY: what is left of the bytes at `from`, and its place.
        unsafe { pieces::copy(from.add(whole), to.add(whole), len - whole, state) }
    }

    /// Copies all but the last bytes, a word at least, which go to `kept`: the state and how many these are.
    ///
    /// # Safety
    /// As for [`copy`](Self::copy).
    #[inline]
    pub unsafe fn copy_but_last(
        self,
        from: *const u8,
        to: *mut u8,
        len: usize,
        crc: u32,
        kept: &mut MaybeUninit<[u8; Kept::MOST]>,
    ) -> (u32, usize) {
        let block = self.block();
        let whole = len - len % block;
        let rest = len - whole;
        let kept = kept.as_mut_ptr().cast::<u8>();
        // The last block is kept, too, when what is behind it is less than a word.
        let (last, behind) = if rest < WORD {
            // SAFETY: a block has room in `kept`.
            (kept, unsafe { kept.add(block) })
        } else {
            // SAFETY: the last block lies within.
            (unsafe { to.add(whole - block) }, kept)
        };
        // SAFETY: whole blocks, at least one; `last` has room for one.
        let state = unsafe { self.blocks(from, to, last, whole, crc) };
        // SAFETY: what is left of the bytes at `from`, less than a block, has room at `behind`.
        let state = unsafe { pieces::copy(from.add(whole), behind, rest, state) };
        (state, if rest < WORD { block + rest } else { rest })
    }

    /// Copies whole blocks (one at least) to `to`, but the last one to `last`; the state after them.
    ///
    /// # Safety
    /// `from` is readable for `len` bytes, `last` writable for a block, and `to` for all blocks but one; races as for
    /// [`super::copy`]. The processor has it.
    #[inline]
    unsafe fn blocks(self, from: *const u8, to: *mut u8, last: *mut u8, len: usize, crc: u32) -> u32 {
        let mut folded = Folded::new();
        // SAFETY: the caller's promises.
        unsafe {
            match self {
                Wide::Xmm => copy_xmm(from, to, last, len, !crc, &mut folded),
                Wide::Ymm => copy_ymm(from, to, last, len, !crc, &mut folded),
                Wide::Zmm => copy_zmm(from, to, last, len, !crc, &mut folded),
            }
        }
        // SAFETY: it was folded just now.
        unsafe { folded.state(self) }
    }

    /// Bytes that are left of all that was folded.
    const fn remainder(self) -> usize {
        match self {
            Wide::Xmm | Wide::Ymm => self.block(),
            Wide::Zmm => 16,
        }
    }
}

/// The polynomial of CRC-32, reflected.
const POLYNOMIAL: u32 = 0xEDB8_8320;

/// x^`power` modulo the polynomial, as a carry-less multiplication of reflected numbers wants it.
pub(super) const fn power(power: u32) -> u64 {
    let (mut value, mut done) = (1u32 << 31, 0);
    while done < power {
        value = (value >> 1) ^ if value & 1 != 0 { POLYNOMIAL } else { 0 };
        done += 1;
    }
    (value as u64) << 1
}

/// What moves the two halves of 16 bytes over so many bytes.
const fn over(bytes: u32) -> [u64; 2] {
    [power(8 * bytes + 32), power(8 * bytes - 32)]
}

static OVER_128: [u64; 2] = over(128);

/// For `Zmm`: what moves a register over a block, and then the first three of four over those behind them, and the first three
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

/// The CRC's remainder of whole blocks, as bytes with the same remainder.
#[repr(align(64))]
struct Folded(MaybeUninit<[u8; Self::MOST]>);

impl Folded {
    /// A block of those that are not folded further.
    const MOST: usize = 128;

    fn new() -> Folded {
        Folded(MaybeUninit::uninit())
    }

    /// A place that is not written.
    fn unused(&mut self) -> *mut u8 {
        self.0.as_mut_ptr().cast()
    }

    /// The state after the blocks.
    ///
    /// # Safety
    /// A function of this width has folded blocks into it.
    #[inline]
    unsafe fn state(&self, wide: Wide) -> u32 {
        // SAFETY: so many bytes were written by it.
        let left = unsafe { std::slice::from_raw_parts(self.0.as_ptr().cast::<u8>(), wide.remainder()) };
        // The register was put in with the first bytes, so it begins at zero here, which is a state of ones.
        let mut hasher = crc32fast::Hasher::new_with_initial(!0);
        hasher.update(left);
        hasher.finalize()
    }
}

// The functions below fold whole blocks (one at least): each is loaded from `from`, stored to `to` (the last one to `last`) if
// they copy, and added to the remainder; `register` is added to the first bytes. `from` is to be readable for `len` bytes; for
// those that copy `last` is to be writable for a block, and `to` for all blocks but one. They race as `super::copy` may. The
// processor has what the width asks for.

/// One register of the first block. `$store` is the instruction that stores it, if any does.
macro_rules! first_xmm {
    ($at:literal, $to:literal $(, $store:literal)?) => {
        concat!("vmovdqu xmm", $to, ", [{from} + ", $at, "]" $(, "\n", $store, " [{to} + ", $at, "], xmm", $to)?)
    };
}

/// One register of a later block, added to what is moved over the block.
macro_rules! next_xmm {
    ($at:literal, $to:literal $(, $store:literal)?) => {
        concat!(
            "vmovdqu xmm8, [{from} + ", $at, "]\n",
            $($store, " [{to} + ", $at, "], xmm8\n",)?
            "vpclmulqdq xmm9, xmm", $to, ", xmm10, 0x00\n",
            "vpclmulqdq xmm", $to, ", xmm", $to, ", xmm10, 0x11\n",
            "vpxor xmm9, xmm9, xmm8\n",
            "vpxor xmm", $to, ", xmm", $to, ", xmm9",
        )
    };
}

macro_rules! fold_xmm {
    ($name:ident $(, $store:literal)?) => {
        /// See above.
        unsafe fn $name(from: *const u8, to: *mut u8, last: *mut u8, len: usize, register: u32, folded: &mut Folded) {
            // SAFETY: reads `len` bytes upwards, a block at a time, and writes as many if it stores, the last block to `last`;
            // then it writes a block to `folded`. Loads and stores are of any alignment but for these, which are of an
            // aligned type. Registers are given up as listed, their upper parts cleared.
            unsafe {
                asm!(
                    "vmovdqu xmm10, [{over}]",
                    "vmovd xmm8, {register:e}",
                    "cmp {left}, 128",
                    "cmove {to}, {last}",
                    first_xmm!("0", "0" $(, $store)?),
                    first_xmm!("16", "1" $(, $store)?),
                    first_xmm!("32", "2" $(, $store)?),
                    first_xmm!("48", "3" $(, $store)?),
                    first_xmm!("64", "4" $(, $store)?),
                    first_xmm!("80", "5" $(, $store)?),
                    first_xmm!("96", "6" $(, $store)?),
                    first_xmm!("112", "7" $(, $store)?),
                    "vpxor xmm0, xmm0, xmm8",
                    "jmp 3f",
                    "2:",
                    "cmp {left}, 128",
                    "cmove {to}, {last}",
                    next_xmm!("0", "0" $(, $store)?),
                    next_xmm!("16", "1" $(, $store)?),
                    next_xmm!("32", "2" $(, $store)?),
                    next_xmm!("48", "3" $(, $store)?),
                    next_xmm!("64", "4" $(, $store)?),
                    next_xmm!("80", "5" $(, $store)?),
                    next_xmm!("96", "6" $(, $store)?),
                    next_xmm!("112", "7" $(, $store)?),
                    "3:",
                    "add {from}, 128",
                    "add {to}, 128",
                    "sub {left}, 128",
                    "jnz 2b",
                    "vmovdqa [{folded} + 0], xmm0",
                    "vmovdqa [{folded} + 16], xmm1",
                    "vmovdqa [{folded} + 32], xmm2",
                    "vmovdqa [{folded} + 48], xmm3",
                    "vmovdqa [{folded} + 64], xmm4",
                    "vmovdqa [{folded} + 80], xmm5",
                    "vmovdqa [{folded} + 96], xmm6",
                    "vmovdqa [{folded} + 112], xmm7",
                    "vzeroupper",
                    from = inout(reg) from => _,
                    to = inout(reg) to => _,
                    last = in(reg) last,
                    left = inout(reg) len => _,
                    over = in(reg) OVER_128.as_ptr(),
                    register = in(reg) register,
                    folded = in(reg) folded.0.as_mut_ptr(),
                    out("xmm0") _, out("xmm1") _, out("xmm2") _, out("xmm3") _, out("xmm4") _, out("xmm5") _,
                    out("xmm6") _, out("xmm7") _, out("xmm8") _, out("xmm9") _, out("xmm10") _, out("xmm11") _,
                    out("xmm12") _, out("xmm13") _, out("xmm14") _, out("xmm15") _,
                    options(nostack),
                );
            }
        }
    };
}

/// One register of the first block. `$store` is the instruction that stores it, if any does.
macro_rules! first_ymm {
    ($at:literal, $to:literal $(, $store:literal)?) => {
        concat!("vmovdqu ymm", $to, ", [{from} + ", $at, "]" $(, "\n", $store, " [{to} + ", $at, "], ymm", $to)?)
    };
}

/// One register of a later block, added to what is moved over the block.
macro_rules! next_ymm {
    ($at:literal, $to:literal $(, $store:literal)?) => {
        concat!(
            "vmovdqu ymm8, [{from} + ", $at, "]\n",
            $($store, " [{to} + ", $at, "], ymm8\n",)?
            "vpclmulqdq ymm9, ymm", $to, ", ymm10, 0x00\n",
            "vpclmulqdq ymm", $to, ", ymm", $to, ", ymm10, 0x11\n",
            "vpxor ymm9, ymm9, ymm8\n",
            "vpxor ymm", $to, ", ymm", $to, ", ymm9",
        )
    };
}

macro_rules! fold_ymm {
    ($name:ident $(, $store:literal)?) => {
        /// See above.
        unsafe fn $name(from: *const u8, to: *mut u8, last: *mut u8, len: usize, register: u32, folded: &mut Folded) {
            // SAFETY: reads `len` bytes upwards, a block at a time, and writes as many if it stores, the last block to `last`;
            // then it writes a block to `folded`. Loads and stores are of any alignment but for these, which are of an
            // aligned type. Registers are given up as listed, their upper parts cleared.
            unsafe {
                asm!(
                    "vbroadcasti128 ymm10, [{over}]",
                    "vmovd xmm8, {register:e}",
                    "cmp {left}, 128",
                    "cmove {to}, {last}",
                    first_ymm!("0", "0" $(, $store)?),
                    first_ymm!("32", "1" $(, $store)?),
                    first_ymm!("64", "2" $(, $store)?),
                    first_ymm!("96", "3" $(, $store)?),
                    "vpxor ymm0, ymm0, ymm8",
                    "jmp 3f",
                    "2:",
                    "cmp {left}, 128",
                    "cmove {to}, {last}",
                    next_ymm!("0", "0" $(, $store)?),
                    next_ymm!("32", "1" $(, $store)?),
                    next_ymm!("64", "2" $(, $store)?),
                    next_ymm!("96", "3" $(, $store)?),
                    "3:",
                    "add {from}, 128",
                    "add {to}, 128",
                    "sub {left}, 128",
                    "jnz 2b",
                    "vmovdqa [{folded} + 0], ymm0",
                    "vmovdqa [{folded} + 32], ymm1",
                    "vmovdqa [{folded} + 64], ymm2",
                    "vmovdqa [{folded} + 96], ymm3",
                    "vzeroupper",
                    from = inout(reg) from => _,
                    to = inout(reg) to => _,
                    last = in(reg) last,
                    left = inout(reg) len => _,
                    over = in(reg) OVER_128.as_ptr(),
                    register = in(reg) register,
                    folded = in(reg) folded.0.as_mut_ptr(),
                    out("xmm0") _, out("xmm1") _, out("xmm2") _, out("xmm3") _, out("xmm4") _, out("xmm5") _,
                    out("xmm6") _, out("xmm7") _, out("xmm8") _, out("xmm9") _, out("xmm10") _, out("xmm11") _,
                    out("xmm12") _, out("xmm13") _, out("xmm14") _, out("xmm15") _,
                    options(nostack),
                );
            }
        }
    };
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
        /// See above.
        unsafe fn $name(from: *const u8, to: *mut u8, last: *mut u8, len: usize, register: u32, folded: &mut Folded) {
            // SAFETY: reads `len` bytes upwards, a block at a time, and writes as many if it stores, the last block to `last`;
            // then it writes 16 bytes to `folded`. Loads and stores are of any alignment but for these, which are of an
            // aligned type. Registers are given up as listed, their upper parts cleared.
            unsafe {
                asm!(
                    "vbroadcasti32x4 zmm10, [{over} + 64]",
                    "vmovd xmm8, {register:e}",
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
                    "vmovdqa [{folded}], xmm3",
                    "vzeroupper",
                    from = inout(reg) from => _,
                    to = inout(reg) to => _,
                    last = in(reg) last,
                    left = inout(reg) len => _,
                    over = in(reg) &raw const OVER_ZMM,
                    register = in(reg) register,
                    folded = in(reg) folded.0.as_mut_ptr(),
                    out("xmm0") _, out("xmm1") _, out("xmm2") _, out("xmm3") _, out("xmm4") _, out("xmm5") _,
                    out("xmm6") _, out("xmm7") _, out("xmm8") _, out("xmm9") _, out("xmm10") _, out("xmm11") _,
                    out("xmm12") _, out("xmm13") _, out("xmm14") _, out("xmm15") _,
                    options(nostack),
                );
            }
        }
    };
}

fold_xmm!(sum_xmm);
fold_xmm!(copy_xmm, "vmovdqu");
fold_ymm!(sum_ymm);
fold_ymm!(copy_ymm, "vmovdqu");
fold_zmm!(sum_zmm);
fold_zmm!(copy_zmm, "vmovdqu64");
