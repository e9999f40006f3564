//! The completion queue.

use crate::status::Cqe;
use ring::Exchange;
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
    ring: Exchange<Cqe>,
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
            ring: Exchange::new(capacity),
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
        let mut oldest = None;
        self.ring.take(1, |cqe| oldest = Some(cqe));
        oldest
    }

    /// Moves up to `most` completions, the oldest first, to the end of `into`, and returns how many.
    #[inline]
    pub fn poll_into(&self, into: &mut Vec<Cqe>, most: usize) -> usize {
        let mut taken = 0;
        while taken < most {
            if into.len() == into.capacity() {
                into.reserve(self.len().clamp(1, most - taken));
            }
            // Others wait for who has claimed completions, so the room for them is there before: nothing is allocated meanwhile.
            let room = into.capacity() - into.len();
            let take = |cqe| {
                debug_assert!(into.len() < into.capacity(), "no completion waits for an allocation");
                into.push(cqe);
            };
            match self.ring.take(room.min(most - taken), take) {
                0 => break,
                count => taken += count,
            }
        }
        taken
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
        if self.push_all(&[cqe]) == 1 { Ok(()) } else { Err(CqFull) }
    }

    /// Adds completions, as far as there is room, and notifies if somebody has asked for that; returns how many. What threads have to
    /// agree on for that is agreed on once.
    pub fn push_all(&self, cqes: &[Cqe]) -> usize {
        let mut pushed = 0;
        while let Some(rest) = cqes.get(pushed..).filter(|rest| !rest.is_empty()) {
            match self.ring.add(rest) {
                0 => {
                    self.overflowed.store(true, Ordering::Relaxed);
                    break;
                }
                count => pushed += count,
            }
        }
        if pushed > 0 {
            self.tell(&cqes[..pushed]);
        }
        pushed
    }

    /// Notifies of these, which can be polled by now.
    #[inline]
    fn tell(&self, cqes: &[Cqe]) {
        // The completions and this load must not swap, or an arming in between sleeps through them.
        std::sync::atomic::fence(Ordering::SeqCst);
        let armed = self.armed.load(Ordering::Relaxed);
        if armed == 0 {
            return;
        }
        let rouses = || cqes.iter().any(|cqe| cqe.solicited || !cqe.is_success());
        let wanted = armed == Arm::Any as u8 || rouses();
        if wanted && self.armed.swap(0, Ordering::SeqCst) != 0 {
            (self.notify)();
        }
    }
}
