//! Memory from the system, for buffers.
//!
//! With debug assertions, as tests are built, anonymous memory lies between pages that may not be touched: an access before its
//! beginning or behind its end is a fault at once. Where the length is no multiple of pages, the bytes between memory and
//! guard page hold a mark, which is looked at when the memory is given back. A release build has neither.

use crate::area::Area;
use memmap2::{MmapMut, MmapRaw};
use nix::sys::mman::{ProtFlags, mprotect};
use nix::unistd::{SysconfVar, sysconf};
use std::io;
use std::ptr::NonNull;

/// Miri knows no protection; it sees such accesses by itself.
const GUARDED: bool = cfg!(all(debug_assertions, not(miri)));

/// Guarded memory begins at a multiple of this: at a page when its length is of whole pages.
const ALIGN: usize = 64;

/// What lies in a gap.
const MARK: u8 = 0xA5;

/// `len` bytes, readable and writable while this lives.
#[derive(Debug)]
pub(crate) struct Map {
    whole: MmapRaw,
    /// Where the memory begins in the map.
    start: usize,
    len: usize,
    /// Bytes of a guard page on either side; 0 for none.
    guard: usize,
}

impl Map {
    /// Zeros.
    pub fn anonymous(len: usize) -> io::Result<Map> {
        if GUARDED { Map::guarded(len) } else { Map::bare(len) }
    }

    fn bare(len: usize) -> io::Result<Map> {
        let map = Map::of_file(MmapRaw::from(MmapMut::map_anon(len)?));
        // Advice: without it everything works, with more misses of the translation cache. Miri has no such call.
        #[cfg(all(target_os = "linux", not(miri)))]
        let _ = map.whole.advise(memmap2::Advice::HugePage);
        Ok(map)
    }

    fn guarded(len: usize) -> io::Result<Map> {
        let page = sysconf(SysconfVar::PAGE_SIZE)?.ok_or(io::ErrorKind::Unsupported)? as usize;
        let pages = len.checked_next_multiple_of(page).ok_or(io::ErrorKind::OutOfMemory)?;
        let all = pages.checked_add(2 * page).ok_or(io::ErrorKind::OutOfMemory)?;
        let whole = MmapRaw::from(MmapMut::map_anon(all)?);
        for at in [0, page + pages] {
            let guard = NonNull::new(whole.as_mut_ptr().wrapping_add(at)).ok_or(io::ErrorKind::Other)?;
            // SAFETY: a whole page of the map that was just made: nobody refers to it, and no area has it.
            unsafe { mprotect(guard.cast(), page, ProtFlags::PROT_NONE) }?;
        }
        let map = Map { whole, start: page + (pages - len) / ALIGN * ALIGN, len, guard: page };
        for (at, len) in map.gaps() {
            let marked = map.usable().write(at as u64, &vec![MARK; len]);
            debug_assert!(marked.is_ok(), "gaps lie between the guard pages");
        }
        Ok(map)
    }

    /// All of a map; bytes of a file have no guard pages.
    pub fn of_file(whole: MmapRaw) -> Map {
        let len = whole.len();
        Map { whole, start: 0, len, guard: 0 }
    }

    /// The memory.
    #[inline]
    pub fn area(&self) -> Area<'_> {
        Area::of_map(&self.whole, self.start, self.len)
    }

    /// The memory and its gaps: what lies between the guard pages.
    fn usable(&self) -> Area<'_> {
        Area::of_map(&self.whole, self.guard, self.whole.len() - 2 * self.guard)
    }

    /// Begin and length of the gaps, counted in [`usable`](Self::usable).
    fn gaps(&self) -> [(usize, usize); 2] {
        let before = self.start - self.guard;
        let end = before + self.len;
        [(0, before), (end, self.whole.len() - 2 * self.guard - end)]
    }
}

impl Drop for Map {
    fn drop(&mut self) {
        for (at, len) in self.gaps().into_iter().filter(|_| !std::thread::panicking()) {
            let mut gap = vec![0; len];
            let intact =
                self.usable().read(at as u64, &mut gap).is_ok() && gap.iter().all(|&byte| byte == MARK);
            assert!(intact, "bytes beside a buffer of {} bytes were written", self.len);
        }
    }
}
