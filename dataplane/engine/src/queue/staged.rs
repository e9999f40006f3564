//! Completions on their way to their queue: those of a burst go there together, since each addition costs what threads have to agree
//! on, and a fence.

use super::CompletionQueue;
use crate::event::{EventKind, EventQueue, EventSource};
use crate::status::Cqe;
use arrayvec::ArrayVec;
use std::sync::Arc;
use wire::Qpn;

/// Completions that wait, at most: those of a receive burst.
const MOST: usize = 32;

/// Completions for one queue, until another one's turn comes or [`flush`](Self::flush) is asked for.
#[derive(Debug, Default)]
pub(crate) struct Staged {
    queue: Option<Arc<CompletionQueue>>,
    cqes: ArrayVec<Cqe, MOST>,
    /// The QPs of those that found no room.
    refused: ArrayVec<Qpn, MOST>,
}

impl Staged {
    /// Adds a completion. False when its queue is known to have no room for it.
    #[inline]
    pub fn add(&mut self, queue: &Arc<CompletionQueue>, cqe: Cqe, events: &EventQueue) -> bool {
        let is_same = self.queue.as_ref().is_some_and(|staged| Arc::ptr_eq(staged, queue));
        if !is_same || self.cqes.is_full() {
            self.flush(events);
            if !is_same {
                self.queue = Some(Arc::clone(queue));
            }
        }
        if !self.refused.is_empty() {
            // Nobody has heard of these yet. Until then no others may come to them, so that there is room for all.
            return push(queue, &[cqe], events) == 1;
        }
        self.cqes.push(cqe);
        true
    }

    /// From now on all can be polled, but those that find no room: see [`take_refused`](Self::take_refused).
    #[inline]
    pub fn flush(&mut self, events: &EventQueue) {
        if let Some(queue) = &self.queue
            && !self.cqes.is_empty()
        {
            let pushed = push(queue, &self.cqes, events);
            // None were there before, or nothing would have been staged.
            self.refused.extend(self.cqes[pushed..].iter().map(|cqe| cqe.qpn));
            self.cqes.clear();
        }
    }

    /// Flushes now, for who has to know: how many completions of a QP found no room.
    pub fn flush_for(&mut self, qpn: Qpn, events: &EventQueue) -> u32 {
        self.flush(events);
        let before = self.refused.len();
        self.refused.retain(|refused| *refused != qpn);
        (before - self.refused.len()) as u32
    }

    /// The QPs whose completions found no room, one for each.
    #[inline]
    pub fn take_refused(&mut self) -> Option<impl Iterator<Item = Qpn> + use<>> {
        (!self.refused.is_empty()).then(|| std::mem::take(&mut self.refused).into_iter())
    }

    /// Flushes, and holds on to no queue.
    pub fn let_go(&mut self, events: &EventQueue) {
        self.flush(events);
        self.queue = None;
    }
}

/// How many of these found room. The first time that one does not is told by an event.
fn push(queue: &CompletionQueue, cqes: &[Cqe], events: &EventQueue) -> usize {
    let was_broken = queue.is_overflowed();
    let pushed = queue.push_all(cqes);
    if pushed < cqes.len() && !was_broken {
        events.raise(EventKind::CqErr, EventSource::Cq(queue.id()));
    }
    pushed
}
