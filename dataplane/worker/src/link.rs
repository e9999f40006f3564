//! What the workers of one port share, among themselves and with other threads.

use crate::config::SetupError;
use crate::directory::{Directory, MAX_WORKERS};
use crate::doorbell::Bells;
use crate::handoff::{Answer, Parcel};
use crate::mad::Datagram;
use crate::waker::Waker;
use crossbeam_queue::ArrayQueue;
use dpdk::Mbuf;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use wire::Qpn;

/// Sizes of a port's shared rings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkConfig {
    /// Workers of the port, 1 to 254.
    pub workers: usize,
    /// QPs that may have rung for a worker and not been heard; when there are more, it looks at all that it has.
    pub bells: usize,
    /// Frames that may wait for the control thread.
    pub slow: usize,
    /// Management datagrams that may wait for the control thread.
    pub mads: usize,
    /// Frames of the control thread that may wait to be sent.
    pub inject: usize,
    /// Frames that may wait between two workers.
    pub handoff: usize,
    /// A QP whose frames keep arriving on another worker moves there after so many in a row.
    pub move_after: u32,
}

impl Default for LinkConfig {
    fn default() -> Self {
        LinkConfig {
            workers: 1,
            bells: 8192,
            slow: 512,
            mads: 2048,
            inject: 256,
            handoff: 1024,
            move_after: 64,
        }
    }
}

/// What the workers of one port share.
pub struct PortLink {
    config: LinkConfig,
    pub(crate) directory: Directory,
    posts: Box<[Post]>,
    /// Frames for the control thread.
    slow: ArrayQueue<Mbuf>,
    slow_waker: Waker,
    slow_lost: AtomicU64,
    /// Datagrams for queue pair 1.
    mads: ArrayQueue<Datagram>,
    /// Frames of the control thread.
    inject: ArrayQueue<Mbuf>,
}

/// How one worker is reached.
struct Post {
    /// Set when the worker is made.
    waker: OnceLock<Arc<Waker>>,
    bells: Bells,
    /// By sender: frames that are this worker's, and questions for QPs.
    parcels: Box<[ArrayQueue<Parcel>]>,
    /// By sender: answers to this worker's questions.
    answers: Box<[ArrayQueue<Answer>]>,
}

impl fmt::Debug for PortLink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PortLink").field("config", &self.config).finish_non_exhaustive()
    }
}

/// Answers that may be under way between two workers: more than can be asked for at a time.
const ANSWERS: usize = 64;

impl PortLink {
    /// The link of a port. Every ring has room for one at least. Fails when the process has no file descriptor left.
    pub fn new(config: LinkConfig) -> Result<Arc<PortLink>, SetupError> {
        let workers = config.workers.clamp(1, MAX_WORKERS);
        let ring = |capacity: usize| capacity.max(1);
        let post = |me| Post {
            waker: OnceLock::new(),
            bells: Bells::new(ring(config.bells)),
            parcels: (0..workers)
                .map(|other| ArrayQueue::new(if other == me { 1 } else { ring(config.handoff) }))
                .collect(),
            answers: (0..workers).map(|_| ArrayQueue::new(ANSWERS)).collect(),
        };
        Ok(Arc::new(PortLink {
            config: LinkConfig { workers, ..config },
            directory: Directory::new(),
            posts: (0..workers).map(post).collect(),
            slow: ArrayQueue::new(ring(config.slow)),
            slow_waker: Waker::new().map_err(SetupError::EventFd)?,
            slow_lost: AtomicU64::new(0),
            mads: ArrayQueue::new(ring(config.mads)),
            inject: ArrayQueue::new(ring(config.inject)),
        }))
    }

    /// What it was made with.
    pub fn config(&self) -> &LinkConfig {
        &self.config
    }

    /// The worker where a QP lives.
    pub fn home(&self, qpn: Qpn) -> Option<usize> {
        self.directory.get(qpn)
    }

    /// Rings for a QP: [`engine::QpShared::post_send`] said that it has to be. Wherever the QP is, or
    /// goes, it hears.
    pub fn ring(&self, qpn: Qpn) {
        // One worker has all of them. In the directory each QP has a page and a line of its own, far from all else of it.
        let home = if self.posts.len() == 1 { Some(0) } else { self.home(qpn) };
        if let Some(home) = home {
            self.posts[home].bells.ring(qpn);
            self.wake(home);
        }
    }

    /// Takes the oldest frame that was not RoCE for us: the control thread's side.
    pub fn take_slow(&self) -> Option<Mbuf> {
        self.slow.pop()
    }

    /// True when no frame waits for [`take_slow`](Self::take_slow).
    pub fn slow_is_empty(&self) -> bool {
        self.slow.is_empty()
    }

    /// Takes the oldest datagram for queue pair 1: the control thread's side.
    pub fn take_mad(&self) -> Option<Datagram> {
        self.mads.pop()
    }

    /// True when none waits for [`take_mad`](Self::take_mad).
    pub fn mads_is_empty(&self) -> bool {
        self.mads.is_empty()
    }

    /// What the control thread sleeps on: woken when a frame came for [`take_slow`](Self::take_slow) or a datagram for
    /// [`take_mad`](Self::take_mad).
    pub fn slow_waker(&self) -> &Waker {
        &self.slow_waker
    }

    /// Frames for the control thread that found the ring full.
    pub fn slow_lost(&self) -> u64 {
        self.slow_lost.load(Ordering::Relaxed)
    }

    /// Gives a frame to be sent by worker 0; gives it back when the ring is full.
    pub fn inject(&self, frame: Mbuf) -> Result<(), Mbuf> {
        self.inject.push(frame)?;
        self.wake(0);
        Ok(())
    }

    pub(crate) fn push_slow(&self, frame: Mbuf) -> bool {
        let taken = self.slow.push(frame).is_ok();
        if taken {
            self.slow_waker.wake();
        } else {
            self.slow_lost.fetch_add(1, Ordering::Relaxed);
        }
        taken
    }

    pub(crate) fn push_mad(&self, datagram: Datagram) -> bool {
        let taken = self.mads.push(datagram).is_ok();
        if taken {
            self.slow_waker.wake();
        }
        taken
    }

    pub(crate) fn injected(&self) -> &ArrayQueue<Mbuf> {
        &self.inject
    }

    pub(crate) fn bells(&self, worker: usize) -> &Bells {
        &self.posts[worker].bells
    }

    pub(crate) fn parcels(&self, from: usize, to: usize) -> &ArrayQueue<Parcel> {
        &self.posts[to].parcels[from]
    }

    pub(crate) fn answers(&self, from: usize, to: usize) -> &ArrayQueue<Answer> {
        &self.posts[to].answers[from]
    }

    /// A worker takes its place.
    pub(crate) fn enter(&self, worker: usize, waker: &Arc<Waker>) -> Result<(), SetupError> {
        let post = self
            .posts
            .get(worker)
            .ok_or(SetupError::Index { index: worker, workers: self.config.workers })?;
        post.waker.set(Arc::clone(waker)).map_err(|_| SetupError::Taken(worker))
    }

    #[inline]
    pub(crate) fn wake(&self, worker: usize) {
        if let Some(waker) = self.posts[worker].waker.get() {
            waker.wake();
        }
    }

    /// Whether something waits for this worker.
    pub(crate) fn is_quiet(&self, worker: usize) -> bool {
        let post = &self.posts[worker];
        post.bells.is_empty()
            && post.parcels.iter().all(ArrayQueue::is_empty)
            && post.answers.iter().all(ArrayQueue::is_empty)
            && (worker != 0 || self.inject.is_empty())
    }
}
