//! The receive queue, of one QP or shared (SRQ, XRC SRQ).
//!
//! A QP's own receives lie in a ring that only its engine takes from. Those of an SRQ are taken by QPs on several workers, and go
//! through a queue that moves them.

use super::level::Level;
use super::recv_wqe::{RecvWqe, room_bytes};
use super::{CompletionQueue, PostError};
use crate::event::{EventKind, EventQueue, EventSource};
use crate::mr::PdId;
use crate::wr::RecvWr;
use crossbeam_queue::ArrayQueue;
use ring::{Posting, Ring, Taker};
use std::sync::Arc;
use wire::Srqn;

/// An XRC domain: which XRC SRQs the targets of a program reach.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct XrcdId(pub u32);

/// Posted receives, taken by responders in order.
#[derive(Debug)]
pub struct RecvQueue {
    posted: Receives,
    max_sge: usize,
    owner: Owner,
}

/// Where receives lie.
#[derive(Debug)]
enum Receives {
    /// One QP's. The ring's bell is always rung, but in ERROR: see [`RecvQueue::await_flush`].
    Own(Arc<Ring<RecvWqe>>),
    /// Those of many, or of nobody.
    Common(Box<ArrayQueue<RecvWr>>),
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
        let posted = match owner {
            Owner::Qp => {
                let ring = Ring::new(depth, || RecvWqe::empty(max_sge));
                ring.ring();
                Receives::Own(Arc::new(ring))
            }
            _ => Receives::Common(Box::new(ArrayQueue::new((depth as usize).max(1)))),
        };
        RecvQueue { posted, max_sge, owner }
    }

    /// Bytes of the ring of receives and of what each of its places has apart, where it is one QP's own.
    pub(super) fn ring_bytes(&self) -> usize {
        match &self.posted {
            Receives::Own(ring) => ring.bytes() + ring.places() * room_bytes(self.max_sge),
            Receives::Common(_) => 0,
        }
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
    pub(crate) fn completions(&self) -> Option<&Arc<CompletionQueue>> {
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
        match &self.posted {
            Receives::Own(ring) => ring.depth(),
            // Made from a `u32`.
            Receives::Common(queue) => queue.capacity() as u32,
        }
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

    /// The engine's side of a QP's own queue; `None` while there is one already, and of any other queue.
    pub fn taker(&self) -> Option<Taker<RecvWqe>> {
        match &self.posted {
            Receives::Own(ring) => Taker::new(ring),
            Receives::Common(_) => None,
        }
    }

    /// In ERROR, before the queue is emptied: whoever posts later is told that somebody has to flush it. Out of ERROR nobody is.
    pub(crate) fn await_flush(&self, awaited: bool) {
        match &self.posted {
            Receives::Own(ring) if awaited => ring.answer(),
            Receives::Own(ring) => drop(ring.ring()),
            Receives::Common(_) => {}
        }
    }

    /// Posts a receive: to an SRQ, whoever uses it; to a QP's queue by [`QpShared::post_recv`](super::QpShared::post_recv), which looks
    /// at the QP's state first.
    pub fn post(&self, wr: RecvWr) -> Result<(), PostError> {
        self.put(&wr).map(|_| ())
    }

    /// [`post`](Self::post); true when the QP is in ERROR, so that somebody has to flush the receive.
    #[inline]
    pub(crate) fn put(&self, wr: &RecvWr) -> Result<bool, PostError> {
        self.check(wr.sges.len())?;
        self.push(wr).ok_or(PostError::Full)
    }

    /// Whether a receive may have so many SGEs.
    #[inline]
    pub(super) fn check(&self, got: usize) -> Result<(), PostError> {
        let max = self.max_sge;
        if got > max { Err(PostError::TooManySges { got, max }) } else { Ok(()) }
    }

    /// Adds a receive; `None` when the queue is full, and true when somebody has to flush it.
    #[inline]
    fn push(&self, wr: &RecvWr) -> Option<bool> {
        match &self.posted {
            Receives::Own(ring) => {
                let mut posting = ring.post();
                posting.place()?.fill(wr.wr_id, &wr.sges);
                Some(posting.publish())
            }
            Receives::Common(queue) => {
                if let Owner::Shared { level, .. } = &self.owner
                    && !level.reserve(self.depth())
                {
                    return None;
                }
                queue.push(wr.clone()).ok().map(|()| false)
            }
        }
    }

    /// Asks for what a post of `count` receives to a QP's own queue needs.
    #[inline]
    pub(super) fn fetch_posting(&self, count: u32) {
        if let Receives::Own(ring) = &self.posted {
            ring.fetch_posting(count);
        }
    }

    /// A turn at a QP's own queue; `None` of any other.
    pub(super) fn turn(&self) -> Option<Posting<'_, RecvWqe>> {
        match &self.posted {
            Receives::Own(ring) => Some(ring.post()),
            Receives::Common(_) => None,
        }
    }

    /// Takes the oldest receive of an SRQ (the engine's side), and says so if its limit is reached by that.
    pub fn take(&self, events: &EventQueue) -> Option<RecvWr> {
        let Receives::Common(queue) = &self.posted else { return None };
        let wr = queue.pop();
        if let Owner::Shared { id, level, .. } = &self.owner {
            let reached = if wr.is_some() { level.taken() } else { level.wanted() };
            if reached {
                events.raise(EventKind::SrqLimitReached, EventSource::Srq(*id));
            }
        }
        wr
    }

    /// Receives waiting.
    pub fn len(&self) -> usize {
        match (&self.owner, &self.posted) {
            (Owner::Shared { level, .. }, _) => level.posted() as usize,
            (_, Receives::Own(ring)) => ring.waiting() as usize,
            (_, Receives::Common(queue)) => queue.len(),
        }
    }

    /// True when none waits.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}
