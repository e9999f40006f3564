//! Doorbells: QPs to which something was posted.

use crate::lane::Lane;
use arrayvec::ArrayVec;
use crossbeam_queue::ArrayQueue;
use engine::Nanos;
use std::sync::atomic::{AtomicBool, Ordering};
use wire::Qpn;

/// Doorbells on their way to a worker. None is lost: what does not fit becomes a bell for everybody.
pub(crate) struct Bells {
    ring: ArrayQueue<Qpn>,
    all: AtomicBool,
}

impl Bells {
    pub fn new(capacity: usize) -> Bells {
        Bells { ring: ArrayQueue::new(capacity), all: AtomicBool::new(false) }
    }

    #[inline]
    pub fn ring(&self, qpn: Qpn) {
        if self.ring.push(qpn).is_err() {
            self.all.store(true, Ordering::Release);
        }
    }

    #[inline]
    pub fn is_empty(&self) -> bool {
        self.ring.is_empty() && !self.all.load(Ordering::Relaxed)
    }
}

/// Doorbells answered per poll, so that posters cannot keep a worker from its receive queue.
const PER_POLL: usize = 64;

impl Lane {
    /// Tells the engine about posted requests. True when there were any.
    pub(crate) fn answer_doorbells(&mut self, now: Nanos) -> bool {
        if self.bells().is_empty() {
            return false;
        }
        let mut rung = ArrayVec::<Qpn, PER_POLL>::new();
        while !rung.is_full()
            && let Some(qpn) = self.bells().ring.pop()
        {
            rung.push(qpn);
        }
        self.engine.on_doorbells(now, &rung);
        if self.bells().all.swap(false, Ordering::AcqRel) {
            self.engine.on_all_doorbells(now);
        }
        true
    }

    fn bells(&self) -> &Bells {
        self.link.bells(self.index)
    }
}
