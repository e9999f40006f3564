//! Where held frames wait: bounded, for buffers of any kind.

use crate::{Hold, Nanos};
use std::cmp::Ordering;
use std::collections::BinaryHeap;

/// A frame that waits for others to pass waits no longer when none has passed for so long.
pub const QUIET_NS: Nanos = 1_000_000;

/// Frames that are held on one way, each until its time or its number of further frames.
#[derive(Debug)]
pub struct Shelf<T> {
    capacity: usize,
    by_time: BinaryHeap<Held<T>>,
    by_count: BinaryHeap<Held<T>>,
    /// Frames that passed.
    passed: u64,
    /// When the last one did, or was held to wait for others.
    quiet_since: Nanos,
    /// Frames of one time leave in the order in which they came.
    order: u64,
}

#[derive(Debug)]
struct Held<T> {
    due: u64,
    order: u64,
    frame: T,
}

impl<T> Shelf<T> {
    /// A shelf with room for so many frames, all of which is taken now.
    pub fn with_capacity(capacity: usize) -> Shelf<T> {
        Shelf {
            capacity,
            by_time: BinaryHeap::with_capacity(capacity),
            by_count: BinaryHeap::with_capacity(capacity),
            passed: 0,
            quiet_since: 0,
            order: 0,
        }
    }

    /// Holds a frame, or gives it back when the shelf is full.
    pub fn hold(&mut self, now: Nanos, hold: Hold, frame: T) -> Result<(), T> {
        if self.len() == self.capacity {
            return Err(frame);
        }
        let (heap, due) = match hold {
            Hold::Until(time) => (&mut self.by_time, time),
            Hold::Frames(count) => {
                self.quiet_since = now;
                (&mut self.by_count, self.passed + u64::from(count))
            }
        };
        heap.push(Held { due, order: self.order, frame });
        self.order += 1;
        Ok(())
    }

    /// A frame has passed that was not held.
    pub fn frame_passed(&mut self, now: Nanos) {
        self.passed += 1;
        self.quiet_since = now;
    }

    /// Takes the next frame whose time has come: to be asked until it gives none, after every frame that passed and when
    /// [`next_due`](Self::next_due) is reached.
    pub fn pop(&mut self, now: Nanos) -> Option<T> {
        let quiet = now >= self.quiet_since + QUIET_NS;
        let counted = take_if(&mut self.by_count, |due| quiet || due <= self.passed);
        counted.or_else(|| take_if(&mut self.by_time, |due| due <= now))
    }

    /// When the next frame leaves if none passes before.
    pub fn next_due(&self) -> Option<Nanos> {
        let timed = self.by_time.peek().map(|held| held.due);
        let counted = (!self.by_count.is_empty()).then_some(self.quiet_since + QUIET_NS);
        timed.into_iter().chain(counted).min()
    }

    /// Frames held.
    pub fn len(&self) -> usize {
        self.by_time.len() + self.by_count.len()
    }

    /// Holds none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Takes all frames, due or not, in no order.
    pub fn drain(&mut self) -> impl Iterator<Item = T> + '_ {
        self.by_count.drain().chain(self.by_time.drain()).map(|held| held.frame)
    }
}

fn take_if<T>(heap: &mut BinaryHeap<Held<T>>, is_due: impl FnOnce(u64) -> bool) -> Option<T> {
    if heap.peek().is_some_and(|held| is_due(held.due)) { heap.pop().map(|held| held.frame) } else { None }
}

// The heap's greatest is the first to leave.
impl<T> Ord for Held<T> {
    fn cmp(&self, other: &Self) -> Ordering {
        (other.due, other.order).cmp(&(self.due, self.order))
    }
}

impl<T> PartialOrd for Held<T> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<T> PartialEq for Held<T> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl<T> Eq for Held<T> {}
