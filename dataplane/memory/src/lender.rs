//! A reader that lends bytes out: they stay where they are until it is told that all came back.
//!
//! To the table it is a reader like any other (see `regions.rs`), whose burst lasts until then.

use crate::host::HostMemory;
use engine::{RegionGone, Span};
use std::cell::Cell;
use std::mem::ManuallyDrop;
use std::ptr::NonNull;

/// Lends out bytes of registered memory.
///
/// Dropped while something is lent, it stays in the table for good: no memory that is withdrawn afterwards is let go,
/// rather than one byte too early.
#[derive(Debug)]
pub struct Lender {
    memory: ManuallyDrop<HostMemory>,
    lent: Cell<bool>,
}

impl Lender {
    /// A lender of the table that `memory` reads.
    pub fn new(memory: &HostMemory) -> Lender {
        Lender { memory: ManuallyDrop::new(memory.clone()), lent: Cell::new(false) }
    }

    /// The first of the bytes of a span. All of them stay readable until [`settle`](Self::settle), and for good if that is
    /// not called again; others may write them.
    #[inline]
    pub fn lend(&self, span: Span) -> Result<NonNull<u8>, RegionGone> {
        let start = self.memory.locate(span)?;
        self.lent.set(true);
        Ok(start)
    }

    /// Something was withdrawn since the last [`settle`](Self::settle), so that memory may wait for the next.
    #[inline]
    pub fn is_awaited(&self) -> bool {
        self.memory.is_awaited()
    }

    /// Lets go of what was withdrawn.
    ///
    /// # Safety
    /// Whatever was lent is not read any more.
    #[inline]
    pub unsafe fn settle(&mut self) {
        self.lent.set(false);
        self.memory.quiesce();
    }
}

impl Drop for Lender {
    fn drop(&mut self) {
        if !self.lent.get() {
            // SAFETY: it is not used afterwards.
            unsafe { ManuallyDrop::drop(&mut self.memory) };
        }
    }
}
