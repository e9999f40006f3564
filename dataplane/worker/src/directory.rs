//! Where each QP lives: queue pair number → worker, for frames and doorbells that meet the wrong worker.
//!
//! A byte for every number there can be, in pages made when a number in them is first used. So a look-up is exact, one
//! or two loads, and safe beside any change: there is nothing to resize, rehash or free. A worker looks here only for
//! a QP that it does not have itself.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU8, Ordering};
use wire::Qpn;

/// Numbers are random, so that most pages come to hold one QP: small ones, whose pointers take a MiB.
const PAGE: usize = 256;
const PAGES: usize = (1 << 24) / PAGE;

/// Workers of one port that the directory can tell apart.
pub(crate) const MAX_WORKERS: usize = 254;

type Page = Box<[AtomicU8; PAGE]>;

/// Which worker of the port has which QP.
pub(crate) struct Directory {
    pages: Box<[OnceLock<Page>]>,
}

impl Directory {
    pub fn new() -> Directory {
        Directory { pages: (0..PAGES).map(|_| OnceLock::new()).collect() }
    }

    /// The worker that has the QP.
    #[inline]
    pub fn get(&self, qpn: Qpn) -> Option<usize> {
        let page = self.pages[qpn.value() as usize / PAGE].get()?;
        let entry = page[qpn.value() as usize % PAGE].load(Ordering::Acquire);
        usize::from(entry).checked_sub(1)
    }

    /// The QP lives here now.
    pub fn set(&self, qpn: Qpn, worker: usize) {
        self.entry(qpn).store(code(worker), Ordering::Release);
    }

    /// The QP has gone from one worker to another, if nothing has changed since.
    pub fn moved(&self, qpn: Qpn, from: usize, to: usize) {
        let _ = self.entry(qpn).compare_exchange(code(from), code(to), Ordering::AcqRel, Ordering::Relaxed);
    }

    /// The QP is gone.
    pub fn clear(&self, qpn: Qpn) {
        self.entry(qpn).store(0, Ordering::Release);
    }

    fn entry(&self, qpn: Qpn) -> &AtomicU8 {
        let page = self.pages[qpn.value() as usize / PAGE]
            .get_or_init(|| Box::new([const { AtomicU8::new(0) }; PAGE]));
        &page[qpn.value() as usize % PAGE]
    }
}

fn code(worker: usize) -> u8 {
    debug_assert!(worker < MAX_WORKERS);
    worker as u8 + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_exact_and_a_late_move_changes_nothing() {
        let directory = Directory::new();
        let (low, high) = (Qpn::new(1), Qpn::new(0xFF_FFFF));
        assert_eq!(directory.get(low), None);
        directory.set(low, 0);
        directory.set(high, 253);
        assert_eq!((directory.get(low), directory.get(high)), (Some(0), Some(253)));
        assert_eq!(directory.get(Qpn::new(2)), None);
        directory.moved(low, 0, 3);
        assert_eq!(directory.get(low), Some(3));
        directory.moved(low, 0, 5);
        assert_eq!(directory.get(low), Some(3), "it did not come from there");
        directory.clear(low);
        directory.moved(low, 3, 4);
        assert_eq!(directory.get(low), None, "a QP that is gone does not come back");
    }
}
