//! For any processor: pieces that stay in the first cache, copied and then summed there.

use crate::copy;

/// Bytes of a piece.
const PIECE: usize = 1024;

/// See [`super::sum`].
///
/// # Safety
/// As there.
pub unsafe fn sum(from: *const u8, len: usize, crc: u32) -> u32 {
    // SAFETY: the caller's promise.
    unsafe { each(from, len, crc, |_, _| {}) }
}

/// See [`super::copy`].
///
/// # Safety
/// As there.
pub unsafe fn copy(from: *const u8, to: *mut u8, len: usize, crc: u32) -> u32 {
    // What is summed is what goes on, whatever happens to the bytes at `from`.
    // SAFETY: the caller's promises; the pieces together are `len` bytes.
    let place = |at, piece: &[u8]| unsafe { copy::copy_in(piece.as_ptr(), to.add(at), piece.len()) };
    // SAFETY: the caller's promise.
    unsafe { each(from, len, crc, place) }
}

/// Sums piece by piece, and gives each away with where it begins.
///
/// # Safety
/// As for [`sum`].
#[inline(always)]
unsafe fn each(from: *const u8, len: usize, mut crc: u32, mut give: impl FnMut(usize, &[u8])) -> u32 {
    let mut room = [0; PIECE];
    for at in (0..len).step_by(PIECE) {
        let piece = &mut room[..PIECE.min(len - at)];
        // SAFETY: the pieces together are `len` bytes.
        unsafe { copy::copy_out(from.add(at), piece.as_mut_ptr(), piece.len()) };
        crc = crc::update(crc, piece);
        give(at, piece);
    }
    crc
}
