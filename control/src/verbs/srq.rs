//! A shared receive queue: receives that several queue pairs use.

use super::{Cq, Pd, RecvWr, Xrcd, last_handle, wr::MAX_SGE};
use crate::error::{CreateError, InUse, SrqError};
use engine::queue::PostError;
use engine::{RecvQueue, limits};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use wire::Srqn;
use worker::Command;

/// A shared receive queue. Clones are the same queue; any thread may post. Queue pairs of one device use it, on whatever
/// workers they live, each taking the oldest receive for its next message. It lives until its last handle and its last queue pair
/// have gone, or until [`destroy`](Self::destroy).
#[derive(Clone)]
pub struct Srq {
    inner: Arc<Inner>,
}

struct Inner {
    record: Arc<SrqRecord>,
    pd: Pd,
    /// XRC: what it depends on.
    _xrc: Option<(Xrcd, Cq)>,
}

/// What a port keeps of each of its SRQs.
pub(crate) struct SrqRecord {
    pub queue: Arc<RecvQueue>,
    /// Queue pairs that take receives from it.
    pub users: AtomicUsize,
}

/// What a shared receive queue is made from, after `ibv_srq_init_attr`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SrqOptions {
    /// Receives posted.
    pub max_wr: u32,
    /// Scatter/gather entries of a receive.
    pub max_sge: usize,
    /// As [`SrqAttr::limit`]; 0 for none.
    pub limit: u32,
}

impl Default for SrqOptions {
    /// 128 receives of 4 entries, and no limit.
    fn default() -> Self {
        SrqOptions { max_wr: 128, max_sge: 4, limit: 0 }
    }
}

/// Attributes of a shared receive queue, after `ibv_srq_attr`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SrqAttr {
    /// Receives posted: exactly so many fit.
    pub max_wr: u32,
    /// Scatter/gather entries of a receive.
    pub max_sge: usize,
    /// The armed limit. When a message leaves fewer receives than this, or finds none, an event
    /// [`SrqLimitReached`](engine::EventKind::SrqLimitReached) tells, and the limit is 0 until it is set again.
    pub limit: u32,
}

bitflags::bitflags! {
    /// Which attributes a modify sets. Bit values are those of verbs (`IBV_SRQ_*`).
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
    pub struct SrqAttrMask: u32 {
        /// `max_wr`
        const MAX_WR = 1;
        /// `limit`
        const LIMIT = 2;
    }
}

/// A list of receives of which not all were posted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{why} ({posted} receives of the list were posted)")]
pub struct PartlyPosted {
    /// So many of the list were posted, from its beginning.
    pub posted: usize,
    /// Why the next one was not.
    pub why: PostError,
}

impl std::fmt::Debug for Srq {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Srq").field("id", &self.id()).field("attr", &self.query()).finish_non_exhaustive()
    }
}

impl Srq {
    pub(super) fn new(pd: &Pd, options: &SrqOptions) -> Result<Srq, CreateError> {
        Srq::of(pd, options, None, |id, _| RecvQueue::shared(id, pd.id(), options.max_wr, options.max_sge))
    }

    pub(super) fn xrc(pd: &Pd, options: &SrqOptions, xrcd: &Xrcd, cq: &Cq) -> Result<Srq, CreateError> {
        for (device, what) in [(xrcd.device(), "XRC domain"), (cq.device(), "completion queue")] {
            if !Arc::ptr_eq(&device.port, &pd.device().port) {
                return Err(CreateError::OtherDevice(what));
            }
        }
        let names = Some((xrcd.clone(), cq.clone()));
        let srq = Srq::of(pd, options, names, |id, srqn| {
            let (cq, name) = (Arc::clone(cq.queue()), (srqn, xrcd.id()));
            RecvQueue::xrc(id, pd.id(), name, cq, options.max_wr, options.max_sge)
        })?;
        // On an error the half that was done is undone by the drop.
        let port = &pd.device().port;
        port.everywhere(|lane| Command::AddSrq { lane, srq: Arc::clone(srq.queue()) })?;
        Ok(srq)
    }

    fn of(
        pd: &Pd,
        options: &SrqOptions,
        xrc: Option<(Xrcd, Cq)>,
        make: impl FnOnce(u32, Srqn) -> RecvQueue,
    ) -> Result<Srq, CreateError> {
        check(options)?;
        let port = &pd.device().port;
        let mut names = port.names();
        let most = limits::MAX_SRQ as u64;
        if names.srqs.len() as u64 >= most {
            return Err(CreateError::Limit { what: "shared receive queues", asked: most + 1, most });
        }
        let id = names.id();
        let queue = Arc::new(make(id, names.srqn()));
        queue.arm_limit(options.limit);
        let record = Arc::new(SrqRecord { queue, users: AtomicUsize::new(0) });
        names.srqs.insert(id, Arc::clone(&record));
        Ok(Srq { inner: Arc::new(Inner { record, pd: pd.clone(), _xrc: xrc }) })
    }

    /// The number by which events name it.
    pub fn id(&self) -> u32 {
        self.queue().srq().unwrap_or_default()
    }

    /// Its number, when it is an XRC SRQ: what peers name it by.
    pub fn srqn(&self) -> Option<Srqn> {
        self.queue().srqn()
    }

    /// Its protection domain: the receives' memory belongs to it, whatever the queue pairs' domains are.
    pub fn pd(&self) -> &Pd {
        &self.inner.pd
    }

    /// Posts a receive. Never blocks.
    #[inline]
    pub fn post_recv(&self, wr: RecvWr) -> Result<(), PostError> {
        let wr = wr.build().map_err(|got| PostError::TooManySges { got, max: MAX_SGE })?;
        self.post_recv_raw(wr)
    }

    /// Posts a receive in the engine's form, which allocates nothing: for tight loops.
    #[inline]
    pub fn post_recv_raw(&self, wr: engine::RecvWr) -> Result<(), PostError> {
        self.queue().post(wr)
    }

    /// Posts receives in their order up to the first that is refused. The result is how many there were.
    pub fn post_recv_batch(&self, wrs: impl IntoIterator<Item = RecvWr>) -> Result<usize, PartlyPosted> {
        let mut posted = 0;
        for wr in wrs {
            self.post_recv(wr).map_err(|why| PartlyPosted { posted, why })?;
            posted += 1;
        }
        Ok(posted)
    }

    /// Changes the attributes that `mask` names, after `ibv_modify_srq`. On an error nothing changed. `limit` arms the event anew; a
    /// queue keeps its size, so another `max_wr` is refused.
    pub fn modify(&self, attr: &SrqAttr, mask: SrqAttrMask) -> Result<(), SrqError> {
        let depth = self.queue().depth();
        if mask.contains(SrqAttrMask::MAX_WR) && attr.max_wr != depth {
            return Err(SrqError::Resize { asked: attr.max_wr, has: depth });
        }
        if mask.contains(SrqAttrMask::LIMIT) {
            check_limit(attr.limit, depth)?;
            self.queue().arm_limit(attr.limit);
        }
        Ok(())
    }

    /// Arms the limit event: [`modify`](Self::modify) with nothing but the limit.
    pub fn arm_limit(&self, limit: u32) -> Result<(), SrqError> {
        self.modify(&SrqAttr { limit, ..SrqAttr::default() }, SrqAttrMask::LIMIT)
    }

    /// Its attributes as they are now, after `ibv_query_srq`.
    pub fn query(&self) -> SrqAttr {
        let queue = self.queue();
        SrqAttr { max_wr: queue.depth(), max_sge: queue.max_sge(), limit: queue.limit() }
    }

    /// Receives posted that no message has taken yet.
    pub fn posted(&self) -> usize {
        self.queue().len()
    }

    /// Queue pairs that take receives from it.
    pub fn queue_pairs(&self) -> usize {
        self.inner.record.users.load(Ordering::Acquire)
    }

    /// Destroys it, with the receives that are still posted. Refused, and the handle given back, while queue pairs use it or other
    /// handles of it exist. Without this it is destroyed when its last handle goes.
    pub fn destroy(self) -> Result<(), (Srq, InUse)> {
        let users = self.queue_pairs();
        if users > 0 {
            return Err((self, InUse::QueuePairs(users)));
        }
        last_handle::drop(self.inner).map_err(|(inner, why)| (Srq { inner }, why))
    }

    pub(super) fn queue(&self) -> &Arc<RecvQueue> {
        &self.inner.record.queue
    }

    /// A queue pair begins (or ends) to use it.
    pub(super) fn enter(&self) {
        self.inner.record.users.fetch_add(1, Ordering::AcqRel);
    }

    pub(super) fn leave(&self) {
        self.inner.record.users.fetch_sub(1, Ordering::AcqRel);
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        let (port, queue) = (&self.pd.device().port, &self.record.queue);
        if let Some(srqn) = queue.srqn() {
            // A worker that is gone knows none.
            let _ = port.everywhere(|lane| Command::RemoveSrq { lane, srqn });
        }
        if let Some(id) = queue.srq() {
            port.names().srqs.remove(&id);
        }
    }
}

fn check(options: &SrqOptions) -> Result<(), CreateError> {
    let SrqOptions { max_wr, max_sge, limit } = *options;
    let bounded = |what, asked: u64, least: u64, most: u64| {
        if (least..=most).contains(&asked) { Ok(()) } else { Err(CreateError::Limit { what, asked, most }) }
    };
    bounded("receives", max_wr.into(), 1, limits::MAX_QP_WR.into())?;
    bounded("scatter/gather entries", max_sge as u64, 0, limits::MAX_SGE as u64)?;
    check_limit(limit, max_wr)?;
    Ok(())
}

fn check_limit(asked: u32, most: u32) -> Result<(), SrqError> {
    if asked > most { Err(SrqError::Limit { asked, most }) } else { Ok(()) }
}
