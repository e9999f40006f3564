//! The receive queue, of one QP or shared (SRQ).

use super::PostError;
use super::level::Level;
use crate::event::{EventKind, EventQueue, EventSource};
use crate::mr::PdId;
use crate::wr::RecvWr;
use crossbeam_queue::ArrayQueue;

/// Posted receives, taken by responders in order.
#[derive(Debug)]
pub struct RecvQueue {
    ring: ArrayQueue<RecvWr>,
    max_sge: usize,
    owner: Owner,
}

/// Whose receives these are.
#[derive(Debug)]
enum Owner {
    /// One QP's.
    Qp,
    /// Those of every QP that was made with the SRQ, on whatever worker.
    Shared { id: u32, pd: PdId, level: Level },
}

impl RecvQueue {
    /// The receive queue of one QP.
    pub fn new(depth: u32, max_sge: usize) -> Self {
        Self::of(Owner::Qp, depth, max_sge)
    }

    /// A receive queue that several QPs share (SRQ). Events name it by `id`; the keys of its receives are those of `pd`.
    pub fn shared(id: u32, pd: PdId, depth: u32, max_sge: usize) -> Self {
        Self::of(Owner::Shared { id, pd, level: Level::new(0) }, depth, max_sge)
    }

    fn of(owner: Owner, depth: u32, max_sge: usize) -> Self {
        RecvQueue { ring: ArrayQueue::new((depth as usize).max(1)), max_sge, owner }
    }

    /// The SRQ's id when it is one.
    pub fn srq(&self) -> Option<u32> {
        match self.owner {
            Owner::Shared { id, .. } => Some(id),
            Owner::Qp => None,
        }
    }

    /// The protection domain whose keys the receives of a QP in `qp_pd` have.
    ///
    /// rocev2 facts, transport 17: that of the SRQ [?]; rxe uses the QP's.
    pub(crate) fn pd(&self, qp_pd: PdId) -> PdId {
        match self.owner {
            Owner::Shared { pd, .. } => pd,
            Owner::Qp => qp_pd,
        }
    }

    /// Most SGEs of one receive.
    pub fn max_sge(&self) -> usize {
        self.max_sge
    }

    /// Receives that fit.
    pub fn depth(&self) -> u32 {
        // Made from a `u32`.
        self.ring.capacity() as u32
    }

    /// SRQ: one event [`SrqLimitReached`](EventKind::SrqLimitReached) when a message leaves fewer receives than `limit`, or finds
    /// none; then the limit is 0 until it is set again. 0 asks for no event. Nothing for the queue of a QP.
    pub fn arm_limit(&self, limit: u32) {
        if let Owner::Shared { level, .. } = &self.owner {
            level.arm(limit);
        }
    }

    /// SRQ: the armed limit, 0 when none is.
    pub fn limit(&self) -> u32 {
        match &self.owner {
            Owner::Shared { level, .. } => level.limit(),
            Owner::Qp => 0,
        }
    }

    /// Posts a receive: to an SRQ, whoever uses it; to a QP's queue by [`QpShared::post_recv`](super::QpShared::post_recv), which looks
    /// at the QP's state first.
    pub fn post(&self, wr: RecvWr) -> Result<(), PostError> {
        let (got, max) = (wr.sges.len(), self.max_sge);
        if got > max {
            return Err(PostError::TooManySges { got, max });
        }
        self.push(wr).map_err(|_| PostError::Full)
    }

    /// Adds a receive; gives it back when the queue is full.
    #[expect(
        clippy::result_large_err,
        reason = "the receive itself: boxing it would cost every full queue an allocation"
    )]
    pub fn push(&self, wr: RecvWr) -> Result<(), RecvWr> {
        match &self.owner {
            Owner::Shared { level, .. } if !level.reserve(self.depth()) => Err(wr),
            _ => self.ring.push(wr),
        }
    }

    /// Takes the oldest receive (the engine's side), and says so if an SRQ's limit is reached by that.
    pub fn take(&self, events: &EventQueue) -> Option<RecvWr> {
        let wr = self.ring.pop();
        if let Owner::Shared { id, level, .. } = &self.owner {
            let reached = if wr.is_some() { level.taken() } else { level.wanted() };
            if reached {
                events.raise(EventKind::SrqLimitReached, EventSource::Srq(*id));
            }
        }
        wr
    }

    /// Takes the oldest receive of a QP's own queue, to flush or forget it. Those of an SRQ belong to others too and stay.
    pub fn pop(&self) -> Option<RecvWr> {
        match self.owner {
            Owner::Qp => self.ring.pop(),
            Owner::Shared { .. } => None,
        }
    }

    /// Receives waiting.
    pub fn len(&self) -> usize {
        match &self.owner {
            Owner::Shared { level, .. } => level.posted() as usize,
            Owner::Qp => self.ring.len(),
        }
    }

    /// True when none waits.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}
