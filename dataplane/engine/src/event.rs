//! Asynchronous events: what happens to an object rather than to a work request.

use crossbeam_queue::ArrayQueue;
use std::sync::atomic::{AtomicU64, Ordering};
use wire::Qpn;

/// What happened. Values are those of verbs (`IBV_EVENT_*`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum EventKind {
    /// A CQ overflowed.
    CqErr = 0,
    /// The QP failed inside.
    QpFatal = 1,
    /// Invalid request, or a local work queue error.
    QpReqErr = 2,
    /// Local access violation.
    QpAccessErr = 3,
    /// First packet arrived in RTR.
    CommEst = 4,
    /// The send queue is drained (SQD).
    SqDrained = 5,
    /// Link up.
    PortActive = 9,
    /// Link down.
    PortErr = 10,
    /// The SRQ failed.
    SrqErr = 14,
    /// The SRQ fell below its limit.
    SrqLimitReached = 15,
    /// No more receive completions will come from a QP on an SRQ.
    QpLastWqeReached = 16,
    /// The GID table changed.
    GidChange = 18,
}

/// What an event is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EventSource {
    /// A queue pair.
    Qp(Qpn),
    /// A completion queue, by its id.
    Cq(u32),
    /// A shared receive queue, by its id.
    Srq(u32),
    /// A port, by its number.
    Port(u16),
    /// A GID.
    Gid {
        /// The port's number.
        port: u16,
        /// Index in its table.
        index: u16,
    },
}

/// One asynchronous event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct AsyncEvent {
    /// What happened.
    pub kind: EventKind,
    /// To what.
    pub source: EventSource,
}

/// A bounded queue of events from the workers to the control thread. What does not fit is counted.
#[derive(Debug)]
pub struct EventQueue {
    ring: ArrayQueue<AsyncEvent>,
    lost: AtomicU64,
}

impl EventQueue {
    /// A queue for `capacity` events that nobody has read yet (at least one).
    pub fn new(capacity: usize) -> Self {
        EventQueue { ring: ArrayQueue::new(capacity.max(1)), lost: AtomicU64::new(0) }
    }

    /// Adds an event, or counts it as lost when the queue is full.
    pub fn raise(&self, kind: EventKind, source: EventSource) {
        if self.ring.push(AsyncEvent { kind, source }).is_err() {
            self.lost.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Takes the oldest event.
    pub fn poll(&self) -> Option<AsyncEvent> {
        self.ring.pop()
    }

    /// Events that found the queue full.
    pub fn lost(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }
}
