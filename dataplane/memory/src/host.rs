//! The readers' side of a table of regions: the engine's memory.

use crate::area::{Area, OutOfRange};
use crate::regions::{Reader, Table};
use engine::{Memory, RegionGone, RegionId, Span};
use std::cell::Cell;
use std::marker::PhantomData;
use std::sync::Arc;
use std::sync::atomic::{Ordering, fence};

/// Registered memory as one thread reaches it. It can move to another thread but two cannot use it at once, which is
/// what makes [`quiesce`](Self::quiesce) true whenever it can be called. A clone is a reader of its own.
///
/// A span whose region is gone, or which is not inside its region, is [`RegionGone`]; so is an atomic on bytes that are
/// not aligned to 8.
#[derive(Debug)]
pub struct HostMemory {
    table: Arc<Table>,
    reader: Arc<Reader>,
    not_sync: PhantomData<Cell<()>>,
}

impl HostMemory {
    pub(crate) fn new(table: &Arc<Table>) -> HostMemory {
        HostMemory { table: Arc::clone(table), reader: table.enter(), not_sync: PhantomData }
    }

    /// Says that no copy of this reader is under way. Call it between bursts: what was withdrawn meanwhile can then be
    /// freed. Costs a load when nothing was.
    #[inline]
    pub fn quiesce(&self) {
        // Acquire: later copies see every region closed that was withdrawn up to this epoch.
        let epoch = self.table.epoch.load(Ordering::Acquire);
        if self.reader.seen.load(Ordering::Relaxed) != epoch {
            // Release: earlier copies are done when control sees this.
            self.reader.seen.store(epoch, Ordering::Release);
        }
    }

    /// The bytes of a region, if it is there.
    #[inline]
    fn area(&self, region: RegionId) -> Option<Area<'_>> {
        let slot = self.table.slots.get(region.slot as usize)?;
        if region.generation == 0 || slot.live.load(Ordering::Acquire) != region.generation {
            return None;
        }
        let (start, len) = (slot.start.load(Ordering::Relaxed), slot.len.load(Ordering::Relaxed));
        // SAFETY: the region was registered when `live` was read. Whoever registered it keeps its memory until the table
        // lets go of it, and the table does so only after this reader has called `quiesce` (or is dropped) after the
        // withdrawal. It cannot before this area is gone: areas never leave a method of this type, no method calls
        // `quiesce` while it holds one, and `not_sync` keeps other threads out. `start` and `len` belong to the region,
        // for the same reason: they change only after it was let go.
        Some(unsafe { Area::new(start, len) })
    }
}

impl Clone for HostMemory {
    fn clone(&self) -> Self {
        HostMemory::new(&self.table)
    }
}

impl Drop for HostMemory {
    fn drop(&mut self) {
        self.table.leave(&self.reader);
    }
}

impl Memory for HostMemory {
    #[inline]
    fn read(&self, src: Span, dst: &mut [u8]) -> Result<(), RegionGone> {
        debug_assert_eq!(src.len() as usize, dst.len());
        let len = dst.len().min(src.len() as usize);
        self.area(src.region()).ok_or(RegionGone)?.read(src.offset(), &mut dst[..len]).map_err(gone)
    }

    #[inline]
    fn write(&self, dst: Span, src: &[u8]) -> Result<(), RegionGone> {
        debug_assert_eq!(dst.len() as usize, src.len());
        let len = src.len().min(dst.len() as usize);
        self.area(dst.region()).ok_or(RegionGone)?.write(dst.offset(), &src[..len]).map_err(gone)
    }

    #[inline]
    fn fetch_add(&self, at: Span, add: u64) -> Result<u64, RegionGone> {
        self.area(at.region()).ok_or(RegionGone)?.fetch_add(at.offset(), add).map_err(gone)
    }

    #[inline]
    fn compare_swap(&self, at: Span, compare: u64, swap: u64) -> Result<u64, RegionGone> {
        self.area(at.region()).ok_or(RegionGone)?.compare_swap(at.offset(), compare, swap).map_err(gone)
    }

    #[inline]
    fn publish(&self) {
        fence(Ordering::Release);
    }
}

fn gone(_: OutOfRange) -> RegionGone {
    RegionGone
}
