//! The receive queue, of one QP or shared (SRQ, XRC SRQ).

use super::level::Level;
use super::{CompletionQueue, PostError};
use crate::event::{EventKind, EventQueue, EventSource};
use crate::mr::PdId;
use crate::wr::RecvWr;
use crossbeam_queue::ArrayQueue;
use std::sync::Arc;
use wire::Srqn;

/// An XRC domain: which XRC SRQs the targets of a program reach.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct XrcdId(pub u32);

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
    Shared { id: u32, pd: PdId, level: Level, xrc: Option<XrcSrq> },
    /// Nobody's: an XRC target takes its receives from the SRQs of its domain, each request from the one that it names.
    Target(XrcdId),
    /// Nobody's: an XRC initiator receives nothing.
    Initiator,
}

/// What an XRC SRQ has more than an SRQ.
#[derive(Debug)]
struct XrcSrq {
    srqn: Srqn,
    domain: XrcdId,
    /// Where its receives complete, whichever QP they came by.
    cq: Arc<CompletionQueue>,
}

impl RecvQueue {
    /// The receive queue of one QP.
    pub fn new(depth: u32, max_sge: usize) -> Self {
        Self::of(Owner::Qp, depth, max_sge)
    }

    /// A receive queue that several QPs share (SRQ). Events name it by `id`; the keys of its receives are those of `pd`.
    pub fn shared(id: u32, pd: PdId, depth: u32, max_sge: usize) -> Self {
        Self::of(Owner::Shared { id, pd, level: Level::new(0), xrc: None }, depth, max_sge)
    }

    /// A shared queue that requests name by `srqn`, whatever target of `domain` they come to. Its receives complete to `cq`.
    pub fn xrc(
        id: u32,
        pd: PdId,
        (srqn, domain): (Srqn, XrcdId),
        cq: Arc<CompletionQueue>,
        depth: u32,
        max_sge: usize,
    ) -> Self {
        let xrc = Some(XrcSrq { srqn, domain, cq });
        Self::of(Owner::Shared { id, pd, level: Level::new(0), xrc }, depth, max_sge)
    }

    /// What an XRC target has instead of a queue: the SRQs of its domain.
    pub fn xrc_target(domain: XrcdId) -> Self {
        Self::of(Owner::Target(domain), 0, 0)
    }

    /// What an XRC initiator has instead of a queue: none.
    pub fn xrc_initiator() -> Self {
        Self::of(Owner::Initiator, 0, 0)
    }

    fn of(owner: Owner, depth: u32, max_sge: usize) -> Self {
        RecvQueue { ring: ArrayQueue::new((depth as usize).max(1)), max_sge, owner }
    }

    /// The SRQ's id when it is one.
    pub fn srq(&self) -> Option<u32> {
        match self.owner {
            Owner::Shared { id, .. } => Some(id),
            _ => None,
        }
    }

    /// Its number when it is an XRC SRQ.
    pub fn srqn(&self) -> Option<Srqn> {
        Some(self.as_xrc()?.srqn)
    }

    /// The domain of an XRC SRQ, or of an XRC target.
    pub(crate) fn domain(&self) -> Option<XrcdId> {
        match self.owner {
            Owner::Target(domain) => Some(domain),
            _ => Some(self.as_xrc()?.domain),
        }
    }

    /// Where the receives of an XRC SRQ complete.
    pub(crate) fn completions(&self) -> Option<&CompletionQueue> {
        Some(&self.as_xrc()?.cq)
    }

    fn as_xrc(&self) -> Option<&XrcSrq> {
        match &self.owner {
            Owner::Shared { xrc, .. } => xrc.as_ref(),
            _ => None,
        }
    }

    /// Whether a QP with this queue uses receives that others use too.
    pub(crate) fn is_shared(&self) -> bool {
        matches!(self.owner, Owner::Shared { .. } | Owner::Target(_))
    }

    /// Why no receive can be posted through a QP with this queue, if none can.
    pub(crate) fn refusal(&self) -> Option<PostError> {
        match self.owner {
            Owner::Qp => None,
            Owner::Shared { .. } | Owner::Target(_) => Some(PostError::Srq),
            Owner::Initiator => Some(PostError::NoReceives),
        }
    }

    /// The protection domain whose keys the receives of a QP in `qp_pd` have.
    ///
    /// rocev2 facts, transport 17: that of the SRQ [?]; rxe uses the QP's.
    pub(crate) fn pd(&self, qp_pd: PdId) -> PdId {
        match self.owner {
            Owner::Shared { pd, .. } => pd,
            _ => qp_pd,
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
            _ => 0,
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
            _ => None,
        }
    }

    /// Receives waiting.
    pub fn len(&self) -> usize {
        match &self.owner {
            Owner::Shared { level, .. } => level.posted() as usize,
            _ => self.ring.len(),
        }
    }

    /// True when none waits.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}
