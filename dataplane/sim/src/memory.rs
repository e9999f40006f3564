//! Registered memory as vectors.

use engine::{Extent, Memory, PersistError, RegionGone, RegionId, Span};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

/// Regions on the heap. Clones share them: the engines of an endpoint and the test see the same bytes.
#[derive(Clone, Debug, Default)]
pub struct VecMemory(Rc<RefCell<Vec<Option<Vec<u8>>>>>, Durable);

/// By slot: what would be left of a region after a loss of power; those that are not here cannot persist.
type Durable = Rc<RefCell<BTreeMap<u32, Vec<u8>>>>;

impl VecMemory {
    /// A new region with this content.
    pub fn add(&self, content: Vec<u8>) -> RegionId {
        let mut regions = self.0.borrow_mut();
        regions.push(Some(content));
        RegionId { slot: regions.len() as u32 - 1, generation: 0 }
    }

    /// Deregisters a region: engines find it gone from now on.
    pub fn remove(&self, region: RegionId) {
        self.0.borrow_mut()[region.slot as usize] = None;
    }

    /// The bytes of a region; none when it is gone.
    pub fn content(&self, region: RegionId) -> Vec<u8> {
        self.0.borrow()[region.slot as usize].clone().unwrap_or_default()
    }

    /// Some bytes of a region; none when it is gone.
    pub(crate) fn piece(&self, region: RegionId, range: std::ops::Range<usize>) -> Vec<u8> {
        let regions = self.0.borrow();
        let content = regions[region.slot as usize].as_deref().unwrap_or_default();
        content.get(range).unwrap_or_default().to_vec()
    }

    /// Makes a region one that can persist; as it is now, it has.
    pub fn make_durable(&self, region: RegionId) {
        self.1.borrow_mut().insert(region.slot, self.content(region));
    }

    /// What is left of a region after a loss of power: as of the last FLUSH of each byte. None of one that cannot persist.
    pub fn after_power_loss(&self, region: RegionId) -> Option<Vec<u8>> {
        self.1.borrow().get(&region.slot).cloned()
    }

    /// Writes as the application would, past the engine.
    pub fn set(&self, region: RegionId, offset: usize, bytes: &[u8]) {
        if let Some(content) = &mut self.0.borrow_mut()[region.slot as usize] {
            content[offset..offset + bytes.len()].copy_from_slice(bytes);
        }
    }

    /// The bytes of a span. One outside of its region would be the engine's mistake: it must fail the test loudly.
    fn at<R>(&self, span: Span, with: impl FnOnce(&mut [u8]) -> R) -> Result<R, RegionGone> {
        let mut regions = self.0.borrow_mut();
        let content = regions[span.region().slot as usize].as_mut().ok_or(RegionGone)?;
        let begin = span.offset() as usize;
        Ok(with(&mut content[begin..begin + span.len() as usize]))
    }

    fn change(&self, at: Span, new: impl FnOnce(u64) -> u64) -> Result<u64, RegionGone> {
        self.at(at, |bytes| {
            let old = u64::from_ne_bytes(bytes.try_into().expect("an atomic is eight bytes"));
            bytes.copy_from_slice(&new(old).to_ne_bytes());
            old
        })
    }
}

impl Memory for VecMemory {
    fn read(&self, src: Span, dst: &mut [u8]) -> Result<(), RegionGone> {
        self.at(src, |bytes| dst.copy_from_slice(bytes))
    }

    fn write(&self, dst: Span, src: &[u8]) -> Result<(), RegionGone> {
        self.at(dst, |bytes| bytes.copy_from_slice(src))
    }

    fn fetch_add(&self, at: Span, add: u64) -> Result<u64, RegionGone> {
        self.change(at, |old| old.wrapping_add(add))
    }

    fn compare_swap(&self, at: Span, compare: u64, swap: u64) -> Result<u64, RegionGone> {
        self.change(at, |old| if old == compare { swap } else { old })
    }

    fn store(&self, at: Span, bytes: [u8; 8]) -> Result<(), RegionGone> {
        self.change(at, |_| u64::from_ne_bytes(bytes)).map(|_| ())
    }

    fn make_visible(&self, what: Extent) -> Result<(), RegionGone> {
        let there = self.0.borrow()[what.region().slot as usize].is_some();
        if there { Ok(()) } else { Err(RegionGone) }
    }

    fn persist(&self, what: Extent) -> Result<(), PersistError> {
        self.make_visible(what)?;
        let content = self.content(what.region());
        let mut durable = self.1.borrow_mut();
        let copy = durable.get_mut(&what.region().slot).ok_or(PersistError::Volatile)?;
        let range = what.offset() as usize..(what.offset() + what.len()) as usize;
        copy[range.clone()].copy_from_slice(&content[range]);
        Ok(())
    }
}
