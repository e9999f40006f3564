//! A range of shared memory, alive for `'a`: every access is bounded here, then done by `copy.rs`.

use crate::copy;
use crate::summed;
use engine::{PersistError, RegionGone};
use memmap2::MmapRaw;
use nix::sys::mman::{MsFlags, msync};
use nix::unistd::{SysconfVar, sysconf};
use std::marker::PhantomData;
use std::ptr::NonNull;
use std::sync::atomic::Ordering;

/// The bytes asked for are not all inside, or not aligned where an atomic needs it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the bytes are not all inside the memory, or not aligned to 8 for an atomic access")]
pub struct OutOfRange;

/// `len` bytes from `start`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Area<'a> {
    start: *mut u8,
    len: usize,
    alive: PhantomData<&'a ()>,
}

impl<'a> Area<'a> {
    /// `len` bytes from `offset` of a map, which lives as long as it is borrowed. They must not lie on its guard pages, or the
    /// first access is a fault.
    ///
    /// # Panics
    /// When the map is shorter than that.
    #[inline]
    pub fn of_map(map: &'a MmapRaw, offset: usize, len: usize) -> Area<'a> {
        assert!(offset <= map.len() && len <= map.len() - offset, "an area lies in its map");
        // SAFETY: a `MmapRaw` is mapped over its whole length until it is dropped, readable and writable but for guard pages
        // (where an access ends the program), and it never lends references to its bytes. The range was checked.
        unsafe { Area::new(map.as_mut_ptr().add(offset), len) }
    }

    /// # Safety
    /// `len` bytes from `start` are readable and writable during `'a`, and nobody accesses them but by accesses like
    /// those of `copy.rs` or outside of the program's view.
    pub unsafe fn new(start: *mut u8, len: usize) -> Area<'a> {
        Area { start, len, alive: PhantomData }
    }

    /// Bytes.
    pub fn len(self) -> usize {
        self.len
    }

    /// First byte.
    pub fn start(self) -> *mut u8 {
        self.start
    }

    /// Where `len` bytes from `offset` begin, if all are inside.
    #[inline]
    pub fn locate(self, offset: u64, len: usize) -> Result<NonNull<u8>, OutOfRange> {
        NonNull::new(self.at(offset, len)?).ok_or(OutOfRange)
    }

    /// Copies out.
    #[inline]
    pub fn read(self, offset: u64, to: &mut [u8]) -> Result<(), OutOfRange> {
        let at = self.at(offset, to.len())?;
        // SAFETY: `at` has `to.len()` bytes, checked; the slice is exclusive, so they do not overlap.
        unsafe { copy::copy_out(at, to.as_mut_ptr(), to.len()) };
        Ok(())
    }

    /// The CRC-32 state after `len` bytes, given that before.
    #[inline]
    pub fn sum(self, offset: u64, len: usize, crc: u32) -> Result<u32, OutOfRange> {
        let at = self.at(offset, len)?;
        // SAFETY: `at` has `len` bytes, checked.
        Ok(unsafe { summed::sum(at, len, crc) })
    }

    /// Copies in `len` bytes that lie elsewhere; the CRC-32 state after them, given that before.
    ///
    /// # Safety
    /// `from` is readable for `len` bytes, which others may be writing by accesses like those of `copy.rs` or outside of the
    /// program's view.
    #[inline]
    pub unsafe fn write_summed(
        self,
        offset: u64,
        from: *const u8,
        len: usize,
        crc: u32,
    ) -> Result<u32, OutOfRange> {
        let at = self.at(offset, len)?;
        // SAFETY: `at` has `len` bytes, checked, and `from` by the caller's promise.
        Ok(unsafe { summed::copy(from, at, len, crc) })
    }

    /// The same, with the tail last, and the tail not at all unless `is_right` says so of the state after all bytes. `follows` bytes behind
    /// them are going to be written soon, or may be: see [`summed::copy_if`].
    ///
    /// # Safety
    /// As for [`write_summed`](Self::write_summed).
    #[inline]
    pub unsafe fn write_if(
        self,
        offset: u64,
        from: *const u8,
        len: usize,
        crc: u32,
        follows: u32,
        is_right: impl FnOnce(u32) -> bool,
    ) -> Result<bool, OutOfRange> {
        let at = self.at(offset, len)?;
        // SAFETY: `at` has `len` bytes, checked, and `from` by the caller's promise.
        Ok(unsafe { summed::copy_if(from, at, len, crc, (follows as usize, self.len), is_right) })
    }

    /// Copies in, the tail last.
    #[inline]
    pub fn write(self, offset: u64, from: &[u8]) -> Result<(), OutOfRange> {
        let at = self.at(offset, from.len())?;
        // SAFETY: `at` has `from.len()` bytes, checked; a slice never lies over an area, so they do not overlap.
        unsafe { copy::copy_in(from.as_ptr(), at, from.len()) };
        Ok(())
    }

    /// The byte at `offset`; later reads see what was written before it.
    #[inline]
    pub fn load_u8(self, offset: u64) -> Result<u8, OutOfRange> {
        let at = self.at(offset, 1)?;
        // SAFETY: one byte, checked.
        Ok(unsafe { copy::load_u8(at) })
    }

    /// The aligned 8 bytes at `offset`, in host order.
    #[inline]
    pub fn load_u64(self, offset: u64) -> Result<u64, OutOfRange> {
        let at = self.aligned(offset)?;
        // SAFETY: `aligned` checked bounds and alignment.
        Ok(unsafe { copy::word(at) }.load(Ordering::Acquire))
    }

    /// Stores the aligned 8 bytes at `offset` at once.
    #[inline]
    pub fn store_u64(self, offset: u64, value: u64) -> Result<(), OutOfRange> {
        let at = self.aligned(offset)?;
        // SAFETY: `aligned` checked bounds and alignment.
        unsafe { copy::store_u64(at, value) };
        Ok(())
    }

    /// Adds to the aligned 8 bytes at `offset` and returns what was there.
    #[inline]
    pub fn fetch_add(self, offset: u64, add: u64) -> Result<u64, OutOfRange> {
        let at = self.aligned(offset)?;
        // SAFETY: `aligned` checked bounds and alignment.
        Ok(unsafe { copy::word(at) }.fetch_add(add, Ordering::AcqRel))
    }

    /// Stores `swap` in the aligned 8 bytes at `offset` if they are `compare`, and returns what was there.
    #[inline]
    pub fn compare_swap(self, offset: u64, compare: u64, swap: u64) -> Result<u64, OutOfRange> {
        let at = self.aligned(offset)?;
        // SAFETY: `aligned` checked bounds and alignment.
        let word = unsafe { copy::word(at) };
        let (Ok(old) | Err(old)) = word.compare_exchange(compare, swap, Ordering::AcqRel, Ordering::Acquire);
        Ok(old)
    }

    /// Writes `len` bytes from `offset` to the file below, and waits for it. The area is of a map of a file.
    pub fn persist(self, offset: u64, len: u64) -> Result<(), PersistError> {
        let len = usize::try_from(len).map_err(|_| RegionGone)?;
        let at = self.at(offset, len).map_err(|OutOfRange| RegionGone)?;
        // The call takes whole pages: the rest of the first one is written, too. A map begins with a page.
        let page = sysconf(SysconfVar::PAGE_SIZE).ok().flatten().ok_or(PersistError::Failed)? as usize;
        let ahead = at.addr() % page;
        let start = NonNull::new(at.wrapping_sub(ahead)).ok_or(RegionGone)?;
        // SAFETY: the range lies in a map that lives as long as this area, and the call changes no byte of it.
        let written = unsafe { msync(start.cast(), len + ahead, MsFlags::MS_SYNC) };
        written.map_err(|_| PersistError::Failed)
    }

    fn aligned(self, offset: u64) -> Result<*mut u8, OutOfRange> {
        let at = self.at(offset, 8)?;
        if at.addr() % 8 == 0 { Ok(at) } else { Err(OutOfRange) }
    }

    /// Where `len` bytes from `offset` begin, if they are all inside.
    #[inline]
    fn at(self, offset: u64, len: usize) -> Result<*mut u8, OutOfRange> {
        let offset = usize::try_from(offset).map_err(|_| OutOfRange)?;
        match offset.checked_add(len) {
            // SAFETY: `offset <= self.len`, so the result is in the area or just behind it.
            Some(end) if end <= self.len => Ok(unsafe { self.start.add(offset) }),
            _ => Err(OutOfRange),
        }
    }
}
