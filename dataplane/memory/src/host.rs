//! The readers' side of a table of regions: the engine's memory.

use crate::area::{Area, OutOfRange};
use crate::regions::{Reader, Table};
use engine::{Extent, Memory, PersistError, RegionGone, RegionId, Span};
use std::cell::Cell;
use std::marker::PhantomData;
use std::ptr::NonNull;
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

    /// Something was withdrawn since the last [`quiesce`](Self::quiesce).
    #[inline]
    pub(crate) fn is_awaited(&self) -> bool {
        self.reader.seen.load(Ordering::Relaxed) != self.table.epoch.load(Ordering::Acquire)
    }

    /// Where the bytes of a span begin. They stay there until this reader quiesces.
    #[inline]
    pub(crate) fn locate(&self, span: Span) -> Result<NonNull<u8>, RegionGone> {
        let area = self.area(span.region()).ok_or(RegionGone)?;
        area.locate(span.offset(), span.len() as usize).map_err(gone)
    }

    /// [`Memory::read`] that returns the CRC-32 of the bytes read, given that of what came before: one pass for both.
    #[inline]
    pub fn read_summed(&self, src: Span, dst: &mut [u8], crc: u32) -> Result<u32, RegionGone> {
        debug_assert_eq!(src.len() as usize, dst.len());
        let len = dst.len().min(src.len() as usize);
        let area = self.area(src.region()).ok_or(RegionGone)?;
        area.read_summed(src.offset(), &mut dst[..len], crc).map_err(gone)
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
    fn store(&self, at: Span, bytes: [u8; 8]) -> Result<(), RegionGone> {
        let value = u64::from_ne_bytes(bytes);
        self.area(at.region()).ok_or(RegionGone)?.store_u64(at.offset(), value).map_err(gone)
    }

    /// A fence is all it takes: processors see each other's stores without further ado, and so do their devices.
    #[inline]
    fn make_visible(&self, what: Extent) -> Result<(), RegionGone> {
        self.area(what.region()).ok_or(RegionGone)?;
        fence(Ordering::SeqCst);
        Ok(())
    }

    /// Of a buffer over a file ([`Buffer::of_file`](crate::Buffer::of_file)); waits for the disk.
    fn persist(&self, what: Extent) -> Result<(), PersistError> {
        let area = self.area(what.region()).ok_or(RegionGone)?;
        let durable = self.table.slots.get(what.region().slot as usize);
        if !durable.is_some_and(|slot| slot.durable.load(Ordering::Relaxed)) {
            return Err(PersistError::Volatile);
        }
        area.persist(what.offset(), what.len())
    }

    #[inline]
    fn publish(&self) {
        fence(Ordering::Release);
    }
}

fn gone(_: OutOfRange) -> RegionGone {
    RegionGone
}
