//! The readers' side of a table of regions: the engine's memory.

use crate::area::{Area, OutOfRange};
use crate::regions::{Reader, Table};
use crate::source::Source;
use engine::{Extent, Memory, PersistError, PlaceError, RegionGone, RegionId, Span};
use std::cell::Cell;
use std::marker::PhantomData;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicPtr, Ordering, fence};
use wire::{ICRC_LEN, Icrc};

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
    held: Held,
}

/// Bytes elsewhere that a packet brings, as far as they are still to be placed.
#[derive(Debug, Default)]
struct Held {
    /// The next one. Atomic so that it moves to other threads with the memory; nobody shares it.
    from: AtomicPtr<u8>,
    left: Cell<usize>,
    /// Of all of the packet before them.
    icrc: Cell<u32>,
    /// What is behind them: pad and iCRC.
    tail: Cell<Tail>,
}

/// Most bytes of pad.
const PAD: usize = 3;

/// Pad and iCRC in one number, which is written and read at once: what is written in pieces has to reach the cache before it is read as a whole.
/// The iCRC is lowest, then come three bytes of pad, and how many of them there are, and one; 0 is the tail of no frame.
#[derive(Clone, Copy, Debug, Default)]
struct Tail(u64);

impl Tail {
    const ICRC_BITS: u32 = 8 * ICRC_LEN as u32;
    const COUNT_AT: u32 = 56;

    /// For what is longer or shorter than a frame's tail no sum is right.
    #[inline]
    fn new(bytes: &[u8]) -> Tail {
        let Some((pad, icrc)) = bytes.split_last_chunk::<ICRC_LEN>() else { return Tail(0) };
        if pad.len() > PAD {
            return Tail(0);
        }
        let pads = pad.iter().rev().fold(0, |pads, byte| pads << 8 | u64::from(*byte));
        let count = pad.len() as u64 + 1;
        Tail(count << Self::COUNT_AT | pads << Self::ICRC_BITS | u64::from(u32::from_le_bytes(*icrc)))
    }

    /// Whether the iCRC is right, given that of all before the tail. Mostly there is no pad, and nothing to compute.
    #[inline]
    fn agrees(self, mut icrc: Icrc) -> bool {
        let Some(pads) = (self.0 >> Self::COUNT_AT).checked_sub(1) else { return false };
        if pads > 0 {
            icrc.update(&(self.0 >> Self::ICRC_BITS).to_le_bytes()[..PAD.min(pads as usize)]);
        }
        icrc.to_wire() == (self.0 as u32).to_le_bytes()
    }
}

impl HostMemory {
    pub(crate) fn new(table: &Arc<Table>) -> HostMemory {
        HostMemory {
            table: Arc::clone(table),
            reader: table.enter(),
            not_sync: PhantomData,
            held: Held::default(),
        }
    }

    /// Says that no copy of this reader is under way. Call it between bursts: what was withdrawn meanwhile can then be
    /// freed. Costs a load when nothing was.
    #[inline]
    pub fn quiesce(&mut self) {
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

    /// The CRC-32 of the bytes of a span, given that of what came before: as they are while they are read, once.
    #[inline]
    pub fn sum(&self, span: Span, crc: u32) -> Result<u32, RegionGone> {
        let area = self.area(span.region()).ok_or(RegionGone)?;
        area.sum(span.offset(), span.len() as usize, crc).map_err(gone)
    }

    /// A region, for several copies from it.
    #[inline]
    pub fn region(&self, id: RegionId) -> Result<Region<'_>, RegionGone> {
        Ok(Region { id, area: self.area(id).ok_or(RegionGone)? })
    }

    /// Holds the payload of the packet at hand for [`Memory::write_held`], until [`let_go`](Self::let_go): `len` bytes from
    /// `start`. `icrc` is after what is before them in the packet, `tail` is what is behind them, to the end of its iCRC.
    ///
    /// # Safety
    /// A [`Lender`](crate::Lender) has lent them, and does not settle before they are let go.
    #[inline]
    pub unsafe fn hold(&self, start: NonNull<u8>, len: usize, icrc: Icrc, tail: &[u8]) {
        self.held.from.store(start.as_ptr(), Ordering::Relaxed);
        self.held.left.set(len);
        self.held.icrc.set(icrc.value());
        self.held.tail.set(Tail::new(tail));
    }

    /// Holds nothing any more.
    #[inline]
    pub fn let_go(&self) {
        self.held.left.set(0);
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
        // withdrawal. It cannot before this area is gone: that borrows the reader, which `quiesce` needs for itself alone. `start` and `len`
        // belong to the region, for the same reason: they change only after it was let go.
        Some(unsafe { Area::new(start, len) })
    }
}

/// A region as its reader found it: where it lies needs not be looked up again until the reader quiesces.
#[derive(Clone, Copy, Debug)]
pub struct Region<'a> {
    id: RegionId,
    area: Area<'a>,
}

impl<'a> Region<'a> {
    /// Which one it is.
    #[inline]
    pub fn id(&self) -> RegionId {
        self.id
    }

    /// The bytes of a span, to be copied out. A span of another region is [`RegionGone`].
    #[inline(always)]
    pub fn source(&self, src: Span) -> Result<Source<'a>, RegionGone> {
        if src.region() != self.id {
            return Err(RegionGone);
        }
        Source::of_area(self.area, src.offset(), src.len() as usize).map_err(gone)
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

    #[inline(always)]
    fn write(&self, dst: Span, src: &[u8]) -> Result<(), RegionGone> {
        debug_assert_eq!(dst.len() as usize, src.len());
        let len = src.len().min(dst.len() as usize);
        self.area(dst.region()).ok_or(RegionGone)?.write(dst.offset(), &src[..len]).map_err(gone)
    }

    #[inline]
    fn write_held(&self, dst: Span, follows: u32) -> Result<(), PlaceError> {
        let (held, len) = (&self.held, dst.len() as usize);
        let later = held.left.get().checked_sub(len).ok_or(RegionGone)?;
        let area = self.area(dst.region()).ok_or(RegionGone)?;
        let (from, crc) = (held.from.load(Ordering::Relaxed), held.icrc.get());
        if later > 0 {
            // SAFETY: `hold`'s caller promised that so many are lent.
            let crc = unsafe { area.write_summed(dst.offset(), from, len, crc) }.map_err(gone)?;
            held.icrc.set(crc);
            held.from.store(from.wrapping_add(len), Ordering::Relaxed);
            held.left.set(later);
            return Ok(());
        }
        let tail = held.tail.get();
        held.left.set(0);
        let is_right = |crc| tail.agrees(Icrc::after(crc));
        // SAFETY: as above.
        let right =
            unsafe { area.write_if(dst.offset(), from, len, crc, follows, is_right) }.map_err(gone)?;
        if right { Ok(()) } else { Err(PlaceError::Spoilt) }
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

#[cfg(test)]
mod tests {
    use super::*;

    /// A wrong answer would not show elsewhere: the peer sends a copy, which arrives.
    #[test]
    fn a_tail_is_right_with_its_pad_and_wrong_by_any_byte() {
        let before = Icrc::after(0x1234_5678);
        let agrees = |bytes: &[u8]| Tail::new(bytes).agrees(before);
        for pad in 0..=PAD {
            let mut bytes = vec![0xA5; pad];
            let mut icrc = before;
            icrc.update(&bytes);
            bytes.extend(icrc.to_wire());
            assert!(agrees(&bytes), "{pad} bytes of pad");
            for at in 0..bytes.len() {
                let mut wrong = bytes.clone();
                wrong[at] ^= 1;
                assert!(!agrees(&wrong), "{pad} bytes of pad, byte {at}");
            }
        }
        assert!(!agrees(&[0; ICRC_LEN - 1]) && !agrees(&[0; PAD + ICRC_LEN + 1]), "no tail of a frame");
    }
}
