//! Completions on their way to their queues: those of a burst go there together, since each addition costs what threads have to agree
//! on, and a fence.

use super::CompletionQueue;
use crate::event::{EventKind, EventQueue, EventSource};
use crate::status::Cqe;
use arrayvec::ArrayVec;
use std::sync::Arc;
use wire::Qpn;

/// Completions that wait for a queue, at most: those of a receive burst.
const MOST: usize = 32;

/// Queues that completions wait for: sends and receives of two programs that each have a queue of their own for both.
const QUEUES: usize = 4;

/// Completions that wait until [`flush`](Self::flush) is asked for, or others need their room. The queues stay when it was done: to
/// take hold of one, and to let go of it, costs an atomic operation each on a line that pollers read.
#[derive(Debug, Default)]
pub(crate) struct Staged {
    batches: [Batch; QUEUES],
    /// The batch that was added to last: most come for the same queue as the one before.
    latest: usize,
    /// The batch that gives way to another queue next.
    oldest: usize,
    /// All that wait.
    waiting: usize,
    /// The QPs of those that found no room.
    refused: ArrayVec<Qpn, { MOST * QUEUES }>,
}

/// Those for one queue.
#[derive(Debug, Default)]
struct Batch {
    queue: Option<Arc<CompletionQueue>>,
    cqes: ArrayVec<Cqe, MOST>,
}

impl Batch {
    #[inline]
    fn is_for(&self, queue: &Arc<CompletionQueue>) -> bool {
        self.queue.as_ref().is_some_and(|mine| Arc::ptr_eq(mine, queue))
    }
}

/// Completions that are added in a row.
#[derive(Debug)]
pub(crate) struct Row<'a> {
    cqes: &'a mut ArrayVec<Cqe, MOST>,
    waiting: &'a mut usize,
}

impl Row<'_> {
    /// How many can be added.
    #[inline(always)]
    pub fn room(&self) -> usize {
        self.cqes.remaining_capacity()
    }

    /// Adds one, put together where it lies.
    ///
    /// # Panics
    /// When there is no [`room`](Self::room).
    #[inline(always)]
    pub fn add(&mut self, make: impl Fn() -> Cqe) {
        self.cqes.push(make());
        *self.waiting += 1;
    }
}

impl Staged {
    /// Adds a completion. False when its queue is known to have no room for it.
    // Inlined, and made only here, so that a completion is put together where it lies: a copy of what was written in pieces would wait
    // for them.
    #[inline(always)]
    pub fn add(&mut self, queue: &Arc<CompletionQueue>, make: impl Fn() -> Cqe, events: &EventQueue) -> bool {
        let batch = &mut self.batches[self.latest];
        if !batch.is_for(queue) || batch.cqes.is_full() || !self.refused.is_empty() {
            return self.add_elsewhere(queue, make(), events);
        }
        batch.cqes.push(make());
        self.waiting += 1;
        true
    }

    /// What room there is for completions of one queue in a row. `None` when each is to be added by itself, since somebody has to hear of
    /// a full queue first, or another batch was added to last.
    #[inline(always)]
    pub fn row(&mut self, queue: &Arc<CompletionQueue>) -> Option<Row<'_>> {
        let Staged { batches, latest, waiting, refused, .. } = self;
        let batch = &mut batches[*latest];
        let is_usual = batch.is_for(queue) && refused.is_empty();
        is_usual.then_some(Row { cqes: &mut batch.cqes, waiting })
    }

    /// The same where the batch that was added to last is another's, or has no room, or somebody has to hear of a full queue first.
    #[inline(never)]
    fn add_elsewhere(&mut self, queue: &Arc<CompletionQueue>, cqe: Cqe, events: &EventQueue) -> bool {
        let at = match self.batches.iter().position(|batch| batch.is_for(queue)) {
            Some(at) => at,
            None => self.begin(queue, events),
        };
        self.latest = at;
        if self.batches[at].cqes.is_full() {
            self.flush_batch(at, events);
        }
        if !self.refused.is_empty() {
            // Nobody has heard of these yet. Until then no others may come to them, so that there is room for all; this one goes
            // behind what waits for its queue.
            self.flush(events);
            return push(queue, &[cqe], events) == 1;
        }
        self.batches[at].cqes.push(cqe);
        self.waiting += 1;
        true
    }

    /// The batch of a queue that has none: another's, which is told what it waits for.
    fn begin(&mut self, queue: &Arc<CompletionQueue>, events: &EventQueue) -> usize {
        let at = self.oldest;
        self.oldest = (at + 1) % QUEUES;
        self.flush_batch(at, events);
        self.batches[at].queue = Some(Arc::clone(queue));
        at
    }

    /// From now on all can be polled, but those that find no room: see [`take_refused`](Self::take_refused).
    #[inline]
    pub fn flush(&mut self, events: &EventQueue) {
        if self.waiting > 0 {
            (0..QUEUES).for_each(|at| self.flush_batch(at, events));
        }
    }

    #[inline]
    fn flush_batch(&mut self, at: usize, events: &EventQueue) {
        let Batch { queue, cqes } = &mut self.batches[at];
        if let Some(queue) = queue
            && !cqes.is_empty()
        {
            let pushed = push(queue, cqes, events);
            // Since the first of these nothing was staged, so all that was fits.
            self.refused.extend(cqes[pushed..].iter().map(|cqe| cqe.qpn));
            self.waiting -= cqes.len();
            cqes.clear();
        }
    }

    /// Flushes what waits for a queue now, for who has to know: how many completions of a QP found no room.
    #[inline]
    pub fn flush_for(&mut self, queue: &Arc<CompletionQueue>, qpn: Qpn, events: &EventQueue) -> u32 {
        if let Some(at) = self.batches.iter().position(|batch| batch.is_for(queue)) {
            self.flush_batch(at, events);
        }
        if self.refused.is_empty() {
            return 0;
        }
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
        self.batches.iter_mut().for_each(|batch| batch.queue = None);
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::status::{WcOpcode, WcStatus};

    fn cqe(wr_id: u64) -> Cqe {
        Cqe::new(wr_id, WcStatus::Success, WcOpcode::Recv, Qpn::new(wr_id as u32))
    }

    fn queues(count: u32, capacity: usize) -> Vec<Arc<CompletionQueue>> {
        (0..count).map(|id| Arc::new(CompletionQueue::new(id, capacity, || {}))).collect()
    }

    fn polled(queue: &CompletionQueue) -> Vec<u64> {
        std::iter::from_fn(|| queue.poll()).map(|cqe| cqe.wr_id).collect()
    }

    #[test]
    fn queues_by_turns_are_told_once() {
        let (mut staged, events) = (Staged::default(), EventQueue::new(4));
        let queues = queues(QUEUES as u32, 64);
        for wr_id in 0..40 {
            assert!(staged.add(&queues[wr_id as usize % QUEUES], || cqe(wr_id), &events));
        }
        assert!(queues.iter().all(|queue| queue.is_empty()), "the burst goes on");
        staged.flush(&events);
        for (first, queue) in (0..).zip(&queues) {
            assert_eq!(polled(queue), (0..10).map(|n| first + n * QUEUES as u64).collect::<Vec<_>>());
        }
    }

    #[test]
    fn with_more_queues_than_are_kept_each_has_its_own_in_order() {
        let (mut staged, events) = (Staged::default(), EventQueue::new(4));
        let queues = queues(7, 64);
        for wr_id in 0..70 {
            assert!(staged.add(&queues[wr_id as usize % 7], || cqe(wr_id), &events));
        }
        staged.flush(&events);
        for (first, queue) in (0..).zip(&queues) {
            assert_eq!(polled(queue), (0..10).map(|n| first + n * 7).collect::<Vec<_>>());
        }
    }

    /// One queue is full long before the burst ends. What another one waits for keeps its order, and all that found no room are
    /// told of, once.
    #[test]
    fn a_full_queue_does_not_change_the_order_of_another() {
        let (mut staged, events) = (Staged::default(), EventQueue::new(4));
        let queues = queues(2, 64);
        let full = Arc::new(CompletionQueue::new(9, 1, || {}));
        for wr_id in 0..30 {
            assert!(staged.add(&queues[wr_id as usize % 2], || cqe(wr_id), &events));
        }
        let mut refused = 0;
        for wr_id in 100..100 + MOST as u64 + 3 {
            refused += u64::from(!staged.add(&full, || cqe(wr_id), &events));
        }
        for wr_id in 30..40 {
            assert!(staged.add(&queues[wr_id as usize % 2], || cqe(wr_id), &events));
        }
        staged.flush(&events);
        for (first, queue) in (0..).zip(&queues) {
            assert_eq!(polled(queue), (0..20).map(|n| first + 2 * n).collect::<Vec<_>>());
        }
        assert_eq!(polled(&full), [100]);
        let told: Vec<Qpn> = staged.take_refused().into_iter().flatten().collect();
        assert_eq!(told, (101..100 + MOST as u32).map(Qpn::new).collect::<Vec<_>>());
        assert_eq!((refused, told.len()), (3, MOST - 1), "the others were told when they came");
        assert!(staged.take_refused().is_none());
    }

    #[test]
    fn a_row_stands_behind_what_waits_and_has_room_for_as_many_as_fit() {
        let (mut staged, events) = (Staged::default(), EventQueue::new(4));
        let queues = queues(2, 64);
        assert!(staged.row(&queues[0]).is_none(), "nothing was added before");
        for wr_id in 0..10 {
            assert!(staged.add(&queues[0], || cqe(wr_id), &events));
        }
        assert!(staged.row(&queues[1]).is_none(), "that is another's");
        let mut row = staged.row(&queues[0]).expect("it was added to last");
        assert_eq!(row.room(), MOST - 10);
        (10..MOST as u64).for_each(|wr_id| row.add(|| cqe(wr_id)));
        assert_eq!(row.room(), 0);
        assert!(queues[0].is_empty(), "the burst goes on");
        assert!(staged.add(&queues[0], || cqe(MOST as u64), &events));
        assert_eq!(queues[0].len(), MOST, "what had waited gave room");
        staged.flush(&events);
        assert_eq!(polled(&queues[0]), (0..=MOST as u64).collect::<Vec<_>>());
    }

    #[test]
    fn there_is_no_row_where_somebody_has_to_hear_of_a_full_queue() {
        let (mut staged, events) = (Staged::default(), EventQueue::new(4));
        let queues = queues(1, 1);
        (0..MOST as u64).for_each(|wr_id| assert!(staged.add(&queues[0], || cqe(wr_id), &events)));
        assert!(!staged.add(&queues[0], || cqe(99), &events));
        assert!(staged.row(&queues[0]).is_none());
    }

    #[test]
    fn what_waits_for_others_is_not_told_of_for_one() {
        let (mut staged, events) = (Staged::default(), EventQueue::new(4));
        let queues = queues(2, 1);
        for wr_id in 0..4 {
            assert!(staged.add(&queues[wr_id as usize % 2], || cqe(wr_id), &events));
        }
        assert_eq!(staged.flush_for(&queues[0], Qpn::new(2), &events), 1, "the second of two");
        assert_eq!((queues[0].len(), queues[1].len()), (1, 0));
        staged.let_go(&events);
        assert_eq!(queues[1].len(), 1);
        assert_eq!(staged.take_refused().into_iter().flatten().collect::<Vec<_>>(), [Qpn::new(3)]);
        assert!(queues.iter().all(|queue| Arc::strong_count(queue) == 1), "no queue is held");
    }
}
