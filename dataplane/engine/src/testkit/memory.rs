//! Memory on the heap, with a copy of what has persisted.

use crate::memory::{Extent, Memory, PersistError, PlaceError, RegionGone, RegionId, Span};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Memory on the heap. Clones share it, so a test keeps one and gives one to the engine.
#[derive(Clone, Debug, Default)]
pub struct HeapMemory {
    regions: Arc<Mutex<Vec<Option<Vec<u8>>>>>,
    published: Arc<AtomicU64>,
    made_visible: Arc<AtomicU64>,
    /// By slot: what would be left of a region after a loss of power; nothing of those that are not here.
    durable: Arc<Mutex<BTreeMap<u32, Vec<u8>>>>,
    storage_fails: Arc<AtomicBool>,
    held: Arc<Mutex<Held>>,
}

/// Bytes held for a packet.
#[derive(Debug, Default)]
struct Held {
    /// What is still to be placed.
    bytes: Vec<u8>,
    spoilt: bool,
    /// What was said to follow, piece by piece.
    follows: Vec<u32>,
}

impl HeapMemory {
    /// A new region with this content.
    pub fn add(&self, content: Vec<u8>) -> RegionId {
        let mut regions = self.regions();
        regions.push(Some(content));
        RegionId { slot: regions.len() as u32 - 1, generation: 0 }
    }

    /// Deregisters: what was in there is gone.
    pub fn remove(&self, region: RegionId) {
        self.regions()[region.slot as usize] = None;
    }

    /// The content of a region; empty when it is gone.
    pub fn content(&self, region: RegionId) -> Vec<u8> {
        self.regions()[region.slot as usize].clone().unwrap_or_default()
    }

    /// How often writes were published.
    pub fn published(&self) -> u64 {
        self.published.load(Ordering::Relaxed)
    }

    /// How often bytes were made visible by a FLUSH.
    pub fn made_visible(&self) -> u64 {
        self.made_visible.load(Ordering::Relaxed)
    }

    /// Makes a region one that can persist; as it is now, it has.
    pub fn make_durable(&self, region: RegionId) {
        let content = self.content(region);
        self.durable().insert(region.slot, content);
    }

    /// What is left of a region after a loss of power.
    pub fn after_power_loss(&self, region: RegionId) -> Vec<u8> {
        self.durable().get(&region.slot).cloned().unwrap_or_default()
    }

    /// Holds bytes for the next packet, which are what their sender summed or not.
    pub fn hold(&self, bytes: &[u8], spoilt: bool) {
        *self.held.lock().unwrap_or_else(PoisonError::into_inner) =
            Held { bytes: bytes.to_vec(), spoilt, follows: Vec::new() };
    }

    /// What was said to follow each piece of what was held last.
    pub fn follows(&self) -> Vec<u32> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner).follows.clone()
    }

    /// From now on the storage below fails, or works again.
    pub fn fail_storage(&self, fails: bool) {
        self.storage_fails.store(fails, Ordering::Relaxed);
    }

    fn durable(&self) -> MutexGuard<'_, BTreeMap<u32, Vec<u8>>> {
        self.durable.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Every region's content.
    pub fn snapshot(&self) -> Vec<Option<Vec<u8>>> {
        self.regions().clone()
    }

    fn regions(&self) -> MutexGuard<'_, Vec<Option<Vec<u8>>>> {
        self.regions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs `with` on the bytes of a span. A span outside of its region is the engine's mistake and fails the
    /// test.
    fn at<R>(&self, span: Span, with: impl FnOnce(&mut [u8]) -> R) -> Result<R, RegionGone> {
        let mut regions = self.regions();
        let region = regions[span.region().slot as usize].as_mut().ok_or(RegionGone)?;
        let from = span.offset() as usize;
        Ok(with(&mut region[from..from + span.len() as usize]))
    }

    fn change(&self, at: Span, new: impl FnOnce(u64) -> u64) -> Result<u64, RegionGone> {
        assert_eq!(at.len(), 8, "an atomic is eight bytes");
        self.at(at, |bytes| {
            let mut eight = [0; 8];
            eight.copy_from_slice(bytes);
            let old = u64::from_ne_bytes(eight);
            bytes.copy_from_slice(&new(old).to_ne_bytes());
            old
        })
    }
}

impl Memory for HeapMemory {
    fn read(&self, src: Span, dst: &mut [u8]) -> Result<(), RegionGone> {
        self.at(src, |bytes| dst.copy_from_slice(bytes))
    }

    fn write(&self, dst: Span, src: &[u8]) -> Result<(), RegionGone> {
        self.at(dst, |bytes| bytes.copy_from_slice(src))
    }

    fn write_held(&self, dst: Span, follows: u32) -> Result<(), PlaceError> {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        held.follows.push(follows);
        let later = held.bytes.split_off(dst.len() as usize);
        let now = std::mem::replace(&mut held.bytes, later);
        let spoilt = held.spoilt && held.bytes.is_empty();
        let kept = now.len() - usize::from(spoilt);
        self.at(dst, |bytes| bytes[..kept].copy_from_slice(&now[..kept]))?;
        if spoilt { Err(PlaceError::Spoilt) } else { Ok(()) }
    }

    fn fetch_add(&self, at: Span, add: u64) -> Result<u64, RegionGone> {
        self.change(at, |old| old.wrapping_add(add))
    }

    fn compare_swap(&self, at: Span, compare: u64, swap: u64) -> Result<u64, RegionGone> {
        self.change(at, |old| if old == compare { swap } else { old })
    }

    fn store(&self, at: Span, bytes: [u8; 8]) -> Result<(), RegionGone> {
        assert_eq!(at.offset() % 8, 0, "an ATOMIC WRITE goes to an aligned word");
        self.change(at, |_| u64::from_ne_bytes(bytes)).map(|_| ())
    }

    fn make_visible(&self, what: Extent) -> Result<(), RegionGone> {
        self.made_visible.fetch_add(1, Ordering::Relaxed);
        let there = self.regions()[what.region().slot as usize].is_some();
        if there { Ok(()) } else { Err(RegionGone) }
    }

    fn persist(&self, what: Extent) -> Result<(), PersistError> {
        let content = self.regions()[what.region().slot as usize].clone().ok_or(RegionGone)?;
        let mut durable = self.durable();
        let copy = durable.get_mut(&what.region().slot).ok_or(PersistError::Volatile)?;
        if self.storage_fails.load(Ordering::Relaxed) {
            return Err(PersistError::Failed);
        }
        let range = what.offset() as usize..(what.offset() + what.len()) as usize;
        copy[range.clone()].copy_from_slice(&content[range]);
        Ok(())
    }

    fn publish(&self) {
        self.published.fetch_add(1, Ordering::Relaxed);
    }
}
