//! Registered memory as vectors.

use engine::{Memory, RegionGone, RegionId, Span};
use std::cell::RefCell;
use std::rc::Rc;

/// Regions on the heap. Clones share them: the engines of an endpoint and the test see the same bytes.
#[derive(Clone, Debug, Default)]
pub struct VecMemory(Rc<RefCell<Vec<Option<Vec<u8>>>>>);

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
}
