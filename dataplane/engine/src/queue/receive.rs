//! The receive queue, of one QP or shared (SRQ).

use crate::wr::RecvWr;
use crossbeam_queue::ArrayQueue;

/// Posted receives, taken by responders in order.
#[derive(Debug)]
pub struct RecvQueue {
    ring: ArrayQueue<RecvWr>,
    max_sge: usize,
    srq: Option<u32>,
}

impl RecvQueue {
    /// The receive queue of one QP.
    pub fn new(depth: u32, max_sge: usize) -> Self {
        RecvQueue { ring: ArrayQueue::new((depth as usize).max(1)), max_sge, srq: None }
    }

    /// A receive queue that several QPs share.
    pub fn shared(id: u32, depth: u32, max_sge: usize) -> Self {
        RecvQueue { srq: Some(id), ..Self::new(depth, max_sge) }
    }

    /// The SRQ's id when it is one.
    pub fn srq(&self) -> Option<u32> {
        self.srq
    }

    /// Most SGEs of one receive.
    pub fn max_sge(&self) -> usize {
        self.max_sge
    }

    /// Adds a receive; gives it back when the queue is full.
    #[expect(
        clippy::result_large_err,
        reason = "the receive itself: boxing it would cost every full queue an allocation"
    )]
    pub fn push(&self, wr: RecvWr) -> Result<(), RecvWr> {
        self.ring.push(wr)
    }

    /// Takes the oldest receive (the engine's side).
    pub fn pop(&self) -> Option<RecvWr> {
        self.ring.pop()
    }

    /// Receives waiting.
    pub fn len(&self) -> usize {
        self.ring.len()
    }

    /// True when none waits.
    pub fn is_empty(&self) -> bool {
        self.ring.is_empty()
    }
}
