//! The completion queue.

use crate::status::Cqe;
use crossbeam_queue::ArrayQueue;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};

/// What the next notification waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Arm {
    /// Any completion.
    Any = 1,
    /// A receive with the solicited bit, or any completion in error.
    Solicited = 2,
}

/// The CQ had no room: it is broken from now on, as in verbs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the completion queue is full")]
pub struct CqFull;

/// A completion queue: any number of QPs complete into it, any number of threads poll it.
pub struct CompletionQueue {
    id: u32,
    ring: ArrayQueue<Cqe>,
    overflowed: AtomicBool,
    armed: AtomicU8,
    notify: Box<dyn Fn() + Send + Sync>,
}

impl fmt::Debug for CompletionQueue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CompletionQueue").field("id", &self.id).field("waiting", &self.ring.len()).finish()
    }
}

impl CompletionQueue {
    /// A queue for `capacity` completions (at least one). `notify` runs on the completing core, once per arming, so it
    /// must be quick: it usually writes an event fd.
    pub fn new(id: u32, capacity: usize, notify: impl Fn() + Send + Sync + 'static) -> Self {
        CompletionQueue {
            id,
            ring: ArrayQueue::new(capacity.max(1)),
            overflowed: AtomicBool::new(false),
            armed: AtomicU8::new(0),
            notify: Box::new(notify),
        }
    }

    /// The id that async events name.
    pub fn id(&self) -> u32 {
        self.id
    }

    /// Takes the oldest completion.
    #[inline]
    pub fn poll(&self) -> Option<Cqe> {
        // Most polls find nothing, and two loads see that; a pop of an empty ring costs a fence.
        if self.ring.is_empty() { None } else { self.ring.pop() }
    }

    /// Moves up to `most` completions, the oldest first, to the end of `into`, and returns how many.
    #[inline]
    pub fn poll_into(&self, into: &mut Vec<Cqe>, most: usize) -> usize {
        let before = into.len();
        into.extend(std::iter::from_fn(|| self.poll()).take(most));
        into.len() - before
    }

    /// Completions waiting.
    pub fn len(&self) -> usize {
        self.ring.len()
    }

    /// True when none waits.
    pub fn is_empty(&self) -> bool {
        self.ring.is_empty()
    }

    /// Completions that fit.
    pub fn capacity(&self) -> usize {
        self.ring.capacity()
    }

    /// True once a completion did not fit.
    pub fn is_overflowed(&self) -> bool {
        self.overflowed.load(Ordering::Relaxed)
    }

    /// Asks for one notification. As in verbs: arm, then poll once more, for what came in between.
    pub fn arm(&self, what: Arm) {
        // An arming for any completion is not narrowed by a later one for solicited ones only.
        let _ = self.armed.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |now| {
            (now != Arm::Any as u8).then_some(what as u8)
        });
    }

    /// Adds a completion (the engine's side).
    pub fn push(&self, cqe: Cqe) -> Result<(), CqFull> {
        let mut completing = self.complete();
        let pushed = completing.push(cqe);
        completing.finish();
        pushed
    }

    /// Adds several, which notify together when they are [finished](Completing::finish): what threads have to agree on for that is
    /// agreed on once.
    #[inline]
    pub fn complete(&self) -> Completing<'_> {
        Completing { queue: self, any: false, rouses: false }
    }
}

/// Completions that are being added.
#[derive(Debug)]
#[must_use = "nobody is notified before they are finished"]
pub struct Completing<'a> {
    queue: &'a CompletionQueue,
    any: bool,
    /// One of them is such as a solicited arming waits for.
    rouses: bool,
}

impl Completing<'_> {
    /// Adds one. It can be polled from now on.
    #[inline]
    pub fn push(&mut self, cqe: Cqe) -> Result<(), CqFull> {
        if self.queue.ring.push(cqe).is_err() {
            self.queue.overflowed.store(true, Ordering::Relaxed);
            return Err(CqFull);
        }
        self.any = true;
        self.rouses |= cqe.solicited || !cqe.is_success();
        Ok(())
    }

    /// Notifies, if there are any and somebody has asked for that.
    #[inline]
    pub fn finish(self) {
        if !self.any {
            return;
        }
        // The pushes before and this load must not swap, or an arming in between sleeps through the completions.
        std::sync::atomic::fence(Ordering::SeqCst);
        let armed = self.queue.armed.load(Ordering::Relaxed);
        let wanted = armed == Arm::Any as u8 || (armed == Arm::Solicited as u8 && self.rouses);
        if wanted && self.queue.armed.swap(0, Ordering::SeqCst) != 0 {
            (self.queue.notify)();
        }
    }
}
