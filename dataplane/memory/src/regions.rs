//! The table of regions, its control side: register, withdraw, free when no reader can be inside.
//!
//! Readers find a region by slot and generation without a lock (`host.rs`). The grace period is that of quiescent
//! states: withdrawing raises the table's epoch, each reader repeats the epoch it has seen between two bursts, and
//! what was withdrawn at epoch `e` is let go when every reader has repeated `e` or more.

use crate::area::OutOfRange;
use crate::buffer::Buffer;
use crate::host::HostMemory;
use engine::RegionId;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Every slot of the table is in use, or waits for a reader.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the table of memory regions is full: {0} slots")]
pub struct TableFull(pub usize);

/// The control side of a table of regions. Clones share the table.
#[derive(Clone, Debug)]
pub struct Regions {
    table: Arc<Table>,
}

/// What readers and control share.
#[derive(Debug)]
pub(crate) struct Table {
    pub slots: Box<[Slot]>,
    /// Raised by every withdrawal.
    pub epoch: AtomicU64,
    control: Mutex<Control>,
}

/// One region as readers see it. All but `live` change only while no reader can use them: after the grace period
/// of the last region here and before `live` names the next.
#[derive(Debug, Default)]
pub(crate) struct Slot {
    /// Generation of the region that may be used; 0 for none.
    pub live: AtomicU32,
    pub start: AtomicPtr<u8>,
    pub len: AtomicUsize,
    /// A file lies below it.
    pub durable: AtomicBool,
}

/// A reader's word that it has seen an epoch, on a cache line of its own.
#[derive(Debug, Default)]
#[repr(align(64))]
pub(crate) struct Reader {
    pub seen: AtomicU64,
}

#[derive(Debug)]
struct Control {
    free: Vec<u32>,
    /// By slot: the generation of its last region, and what keeps its memory.
    entries: Vec<Entry>,
    withdrawn: Vec<Withdrawn>,
    readers: Vec<Arc<Reader>>,
}

#[derive(Debug, Clone, Default)]
struct Entry {
    generation: u32,
    /// Registered, or withdrawn and not let go.
    occupied: bool,
    keeps: Option<Arc<Buffer>>,
}

#[derive(Debug)]
struct Withdrawn {
    slot: u32,
    epoch: u64,
}

impl Regions {
    /// A table for `capacity` regions at a time.
    pub fn new(capacity: usize) -> Regions {
        let capacity = capacity.min(u32::MAX as usize);
        let control = Control {
            free: (0..capacity as u32).rev().collect(),
            entries: vec![Entry::default(); capacity],
            withdrawn: Vec::new(),
            readers: Vec::new(),
        };
        let slots = (0..capacity).map(|_| Slot::default()).collect();
        Regions { table: Arc::new(Table { slots, epoch: AtomicU64::new(0), control: Mutex::new(control) }) }
    }

    /// A reader of this table, for one worker's engine.
    pub fn reader(&self) -> HostMemory {
        HostMemory::new(&self.table)
    }

    /// Makes a buffer reachable. The table keeps it until the region is withdrawn and no reader is inside.
    pub fn register(&self, buffer: Arc<Buffer>) -> Result<RegionId, TableFull> {
        let area = buffer.area();
        self.table.add(area.start(), area.len(), Some(Arc::clone(&buffer)))
    }

    /// Makes a part of a buffer reachable, counted from `offset`.
    pub fn register_part(
        &self,
        buffer: Arc<Buffer>,
        offset: usize,
        len: usize,
    ) -> Result<RegionId, PartError> {
        offset.checked_add(len).filter(|&end| end <= buffer.len()).ok_or(OutOfRange)?;
        let start = buffer.area().start().wrapping_add(offset);
        Ok(self.table.add(start, len, Some(buffer))?)
    }

    /// Makes memory reachable that the table does not own.
    ///
    /// # Safety
    /// `len` bytes from `start` stay readable and writable until [`is_released`](Self::is_released) says so for the
    /// region, or the table with all its readers is gone. Meanwhile the program makes no references to them and accesses
    /// them only by atomic or volatile operations, or while no peer and no request of its own may touch them.
    pub unsafe fn register_raw(&self, start: *mut u8, len: usize) -> Result<RegionId, TableFull> {
        self.table.add(start, len, None)
    }

    /// Withdraws a region: copies that begin later find it gone. False if it was gone before. The memory is let go by
    /// [`reclaim`](Self::reclaim).
    pub fn invalidate(&self, region: RegionId) -> bool {
        self.table.withdraw(region)
    }

    /// Lets go of every withdrawn region that no reader can be inside, and returns how many are left waiting.
    pub fn reclaim(&self) -> usize {
        let mut control = self.table.control();
        control.reclaim(&self.table);
        control.withdrawn.len()
    }

    /// True when a region is withdrawn and nobody uses its memory any more.
    pub fn is_released(&self, region: RegionId) -> bool {
        let mut control = self.table.control();
        control.reclaim(&self.table);
        let Some(entry) = control.entries.get(region.slot as usize) else { return true };
        entry.generation != region.generation || !entry.occupied
    }
}

/// Why a part of a buffer was not registered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PartError {
    /// The part is not inside the buffer.
    #[error(transparent)]
    OutOfRange(#[from] OutOfRange),
    /// No slot.
    #[error(transparent)]
    Full(#[from] TableFull),
}

impl Table {
    fn control(&self) -> MutexGuard<'_, Control> {
        // Nothing below panics half-way through a change.
        self.control.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn add(&self, start: *mut u8, len: usize, keeps: Option<Arc<Buffer>>) -> Result<RegionId, TableFull> {
        let mut control = self.control();
        if control.free.is_empty() {
            control.reclaim(self);
        }
        let slot = control.free.pop().ok_or(TableFull(self.slots.len()))?;
        let durable = keeps.as_ref().is_some_and(|buffer| buffer.is_durable());
        let entry = &mut control.entries[slot as usize];
        entry.generation += 1; // Cannot overflow: a slot with the last generation is not freed.
        entry.occupied = true;
        entry.keeps = keeps;
        let shared = &self.slots[slot as usize];
        shared.start.store(start, Ordering::Relaxed);
        shared.len.store(len, Ordering::Relaxed);
        shared.durable.store(durable, Ordering::Relaxed);
        shared.live.store(entry.generation, Ordering::Release);
        Ok(RegionId { slot, generation: entry.generation })
    }

    fn withdraw(&self, region: RegionId) -> bool {
        let mut control = self.control();
        let Some(slot) = self.slots.get(region.slot as usize) else { return false };
        if region.generation == 0 || slot.live.load(Ordering::Relaxed) != region.generation {
            return false;
        }
        slot.live.store(0, Ordering::Relaxed);
        // Release: who sees the new epoch sees the slot closed.
        let epoch = self.epoch.fetch_add(1, Ordering::AcqRel) + 1;
        control.withdrawn.push(Withdrawn { slot: region.slot, epoch });
        true
    }

    /// Adds a reader. It cannot reach what was withdrawn before: the lock orders its reads after the closing.
    pub fn enter(&self) -> Arc<Reader> {
        let mut control = self.control();
        let reader = Arc::new(Reader { seen: AtomicU64::new(self.epoch.load(Ordering::Acquire)) });
        control.readers.push(Arc::clone(&reader));
        reader
    }

    /// Removes a reader, which copies nothing any more.
    pub fn leave(&self, reader: &Arc<Reader>) {
        let mut control = self.control();
        control.readers.retain(|other| !Arc::ptr_eq(other, reader));
        control.reclaim(self);
    }
}

impl Control {
    /// Lets go of what every reader has left behind.
    fn reclaim(&mut self, table: &Table) {
        // Acquire: what readers copied before they said so is done before the memory goes.
        let seen = self.readers.iter().map(|reader| reader.seen.load(Ordering::Acquire)).min();
        let reached = seen.unwrap_or_else(|| table.epoch.load(Ordering::Acquire));
        let Control { withdrawn, entries, free, .. } = self;
        withdrawn.retain(|&Withdrawn { slot, epoch }| {
            if epoch > reached {
                return true;
            }
            let entry = &mut entries[slot as usize];
            entry.occupied = false;
            entry.keeps = None;
            table.slots[slot as usize].start.store(null_mut(), Ordering::Relaxed);
            // A slot that has used up its generations stays empty: a number never names two regions.
            if entry.generation < u32::MAX {
                free.push(slot);
            }
            false
        });
    }
}
