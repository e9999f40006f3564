//! A completion queue.

use super::{CompChannel, Device};
use crate::error::CreateError;
use engine::queue::Arm;
use engine::{CompletionQueue, Cqe, limits};
use std::sync::Arc;
use std::time::{Duration, Instant};
use worker::Waker;

/// A completion queue. Clones are the same queue; any thread may poll.
#[derive(Clone)]
pub struct Cq {
    inner: Arc<Inner>,
}

struct Inner {
    queue: Arc<CompletionQueue>,
    /// What [`Cq::wait`] sleeps on.
    waker: Arc<Waker>,
    device: Device,
}

impl std::fmt::Debug for Cq {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.inner.queue.fmt(f)
    }
}

/// How long a waiter looks before it sleeps.
const LOOK: Duration = Duration::from_micros(20);
/// The longest sleep: a second waiter on the same queue may have to find out by itself.
const SLEEP: Duration = Duration::from_millis(10);

impl Cq {
    pub(super) fn new(device: Device, depth: u32, channel: Option<&CompChannel>) -> Result<Cq, CreateError> {
        if !(1..=limits::MAX_CQE).contains(&depth) {
            return Err(CreateError::Limit {
                what: "completions",
                asked: depth.into(),
                most: limits::MAX_CQE.into(),
            });
        }
        let id = device.port.names().id();
        let waker = Arc::new(Waker::new()?);
        let (sleeper, channel) = (Arc::clone(&waker), channel.cloned());
        let queue = CompletionQueue::new(id, depth as usize, move || {
            sleeper.wake();
            if let Some(channel) = &channel {
                channel.report(id);
            }
        });
        Ok(Cq { inner: Arc::new(Inner { queue: Arc::new(queue), waker, device }) })
    }

    /// The number by which channels and events name it.
    pub fn id(&self) -> u32 {
        self.inner.queue.id()
    }

    /// The oldest completion.
    #[inline]
    pub fn poll_one(&self) -> Option<Cqe> {
        self.inner.queue.poll()
    }

    /// Moves up to `most` completions to the end of `into`, and returns how many: cheaper than one by one.
    #[inline]
    pub fn poll(&self, into: &mut Vec<Cqe>, most: usize) -> usize {
        self.inner.queue.poll_into(into, most)
    }

    /// The oldest completion, waiting up to `timeout` for one. Where the caller drives the workers, this drives them.
    pub fn wait(&self, timeout: Duration) -> Option<Cqe> {
        let begin = Instant::now();
        loop {
            if let Some(cqe) = self.poll_one() {
                return Some(cqe);
            }
            let waited = begin.elapsed();
            if waited >= timeout {
                return None;
            }
            if self.inner.device.drive() {
                continue;
            }
            if waited < LOOK {
                std::hint::spin_loop();
                continue;
            }
            self.inner.queue.arm(Arm::Any);
            self.inner.waker.sleep(SLEEP.min(timeout - waited), || self.inner.queue.is_empty());
        }
    }

    /// Asks for one report on the queue's channel: at the next completion, or with `solicited_only` at the next receive that
    /// the peer marked or the next error. As in verbs: arm, then poll once more, for what came in between.
    pub fn arm(&self, solicited_only: bool) {
        self.inner.queue.arm(if solicited_only { Arm::Solicited } else { Arm::Any });
    }

    /// Completions that wait.
    pub fn len(&self) -> usize {
        self.inner.queue.len()
    }

    /// True when none waits.
    pub fn is_empty(&self) -> bool {
        self.inner.queue.is_empty()
    }

    /// Completions that fit.
    pub fn depth(&self) -> usize {
        self.inner.queue.capacity()
    }

    /// True once a completion did not fit: the queue is broken, its queue pairs are in error.
    pub fn is_overflowed(&self) -> bool {
        self.inner.queue.is_overflowed()
    }

    pub(super) fn queue(&self) -> &Arc<CompletionQueue> {
        &self.inner.queue
    }

    pub(super) fn device(&self) -> &Device {
        &self.inner.device
    }
}
