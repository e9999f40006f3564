//! The send queue of a QP, and what a QP shares with its posters.

use super::wqe::{Wqe, room_bytes};
use super::{RecvList, RecvQueue, SendList};
use crate::limits::MAX_MESSAGE;
use crate::qp::{QpState, QpType};
use crate::wr::{RecvWr, SendOp, SendWr, Sge, WrData};
use ring::{Ring, Taker};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use wire::{Qpn, Srqn};

/// Why a post was refused. Nothing was posted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PostError {
    /// The queue has no room: poll completions first.
    #[error("the work queue is full: poll completions first")]
    Full,
    /// The QP's state takes no posts of this kind.
    #[error("a QP in state {0:?} takes no such request")]
    State(QpState),
    /// More SGEs than the QP was created for.
    #[error("{got} scatter/gather entries; the QP was created for {max}")]
    TooManySges {
        /// Entries asked.
        got: usize,
        /// Entries allowed.
        max: usize,
    },
    /// More inline bytes than the QP was created for, or inline data on an operation that returns data.
    #[error("this request cannot carry its data inline")]
    Inline,
    /// The QP takes its receives from an SRQ.
    #[error("this QP takes its receives from a shared receive queue: post them there")]
    Srq,
    /// An XRC initiator receives nothing.
    #[error("an XRC initiator receives nothing: post receives to an XRC SRQ, for its targets")]
    NoReceives,
    /// An XRC request that does not say where to.
    #[error("a request of an XRC initiator names the SRQ of the peer that it is for: give its number")]
    NoSrqn,
    /// The QP's type has no such operation.
    #[error("a {0:?} QP has no such operation")]
    Operation(QpType),
    /// The message is longer than 2^31 bytes.
    #[error("a message has at most 2^31 bytes")]
    TooLong,
}

/// Posted send requests, until they are complete.
#[derive(Debug)]
pub struct SendQueue {
    ring: Arc<Ring<Wqe>>,
    max_sge: usize,
    max_inline: usize,
}

impl SendQueue {
    /// A queue for `depth` requests, from post to completion.
    pub fn new(depth: u32, max_sge: usize, max_inline: usize) -> Self {
        let ring = Ring::new(depth, || Wqe::empty(max_sge, max_inline));
        SendQueue { ring: Arc::new(ring), max_sge, max_inline }
    }

    /// Requests that fit.
    pub fn depth(&self) -> u32 {
        self.ring.depth()
    }

    /// Posted and not completed.
    pub fn outstanding(&self) -> u32 {
        self.ring.outstanding()
    }

    /// Requests that the engine has not taken.
    pub fn waiting(&self) -> usize {
        self.ring.waiting() as usize
    }

    /// Bytes that it takes: the ring, and what each of its places has apart.
    fn bytes(&self) -> usize {
        self.ring.bytes() + self.ring.places() * room_bytes(self.max_sge, self.max_inline)
    }

    /// The engine's side of the queue; `None` while there is one already.
    pub(crate) fn taker(&self) -> Option<Taker<Wqe>> {
        Taker::new(&self.ring)
    }

    /// Adds a request, which is `wr` without what it holds on to from then on; true when the worker has to be told.
    #[inline]
    pub(crate) fn push(&self, wr: &mut SendWr, srqn: Srqn) -> Result<bool, PostError> {
        let mut posting = self.ring.post();
        posting.place().ok_or(PostError::Full)?.fill(wr, srqn);
        Ok(posting.publish())
    }
}

/// What a QP shares with the threads that post to it: all of it in one cache line.
#[derive(Debug)]
#[repr(align(64))]
pub struct QpShared {
    qpn: Qpn,
    qp_type: QpType,
    state: AtomicU8,
    /// Somebody wants to know of the first packet, whatever the state.
    first_awaited: AtomicBool,
    sq: SendQueue,
    rq: Arc<RecvQueue>,
}

impl QpShared {
    /// The shared side of a new QP, in RESET.
    pub fn new(qpn: Qpn, qp_type: QpType, sq: SendQueue, rq: Arc<RecvQueue>) -> Self {
        QpShared {
            qpn,
            qp_type,
            state: AtomicU8::new(QpState::Reset as u8),
            first_awaited: AtomicBool::new(false),
            sq,
            rq,
        }
    }

    /// The QP's number.
    pub fn qpn(&self) -> Qpn {
        self.qpn
    }

    /// The service type.
    pub fn qp_type(&self) -> QpType {
        self.qp_type
    }

    /// The send queue.
    pub fn sq(&self) -> &SendQueue {
        &self.sq
    }

    /// The receive queue.
    pub fn rq(&self) -> &Arc<RecvQueue> {
        &self.rq
    }

    /// The state as posters see it.
    pub fn state(&self) -> QpState {
        QpState::from_u8(self.state.load(Ordering::Acquire))
    }

    /// From now on the first packet that the QP takes raises COMM_EST in RTS, too: connection management moves a passive QP there
    /// before its peer knows, and data is as good as the peer's last word (rocev2 facts, CM 11). Call it before the QP is in
    /// RTR.
    pub fn await_first_packet(&self) {
        self.first_awaited.store(true, Ordering::Release);
    }

    pub(crate) fn is_first_awaited(&self) -> bool {
        self.first_awaited.load(Ordering::Acquire)
    }

    pub(crate) fn set_state(&self, state: QpState) {
        self.state.store(state as u8, Ordering::Release);
    }

    /// Asks for what a post of `count` sends needs, to be on its way from memory meanwhile.
    #[inline]
    pub fn fetch_sends(&self, count: u32) {
        self.sq.ring.fetch_posting(count);
    }

    /// Asks for what a post of `count` receives needs.
    #[inline]
    pub fn fetch_receives(&self, count: u32) {
        self.rq.fetch_posting(count);
    }

    /// Posts a send request. `Ok(true)`: the caller must ring the worker's doorbell for this QP; `Ok(false)`: one is
    /// already on its way.
    #[inline]
    pub fn post_send(&self, mut wr: SendWr) -> Result<bool, PostError> {
        if self.qp_type == QpType::XrcIni && !wr.op.stays_local() {
            return Err(PostError::NoSrqn);
        }
        self.post(&mut wr, Srqn::default())
    }

    /// XRC initiator: posts a send request for an SRQ of the peer. The result is as for [`post_send`](Self::post_send).
    pub fn post_send_xrc(&self, mut wr: SendWr, srqn: Srqn) -> Result<bool, PostError> {
        if self.qp_type != QpType::XrcIni {
            return Err(PostError::Operation(self.qp_type));
        }
        self.post(&mut wr, srqn)
    }

    fn post(&self, wr: &mut SendWr, srqn: Srqn) -> Result<bool, PostError> {
        self.takes_sends()?;
        self.check_send(wr)?;
        self.sq.push(wr, srqn)
    }

    /// Posts several send requests, one after the other: [`SendList::push`] takes them, [`SendList::post`] gives all of them to the
    /// engine. What threads have to agree on is agreed on once. Threads that post to this QP meanwhile wait, so one that has a list
    /// must not post to it otherwise.
    ///
    /// Errors: the state takes no sends; or the QP is an XRC initiator, whose requests each name an SRQ.
    pub fn send_list(&self) -> Result<SendList<'_>, PostError> {
        if self.qp_type == QpType::XrcIni {
            return Err(PostError::NoSrqn);
        }
        self.takes_sends()?;
        Ok(SendList::new(self, self.sq.ring.post()))
    }

    #[inline]
    fn takes_sends(&self) -> Result<(), PostError> {
        match self.state() {
            state @ (QpState::Reset | QpState::Init | QpState::Rtr) => Err(PostError::State(state)),
            _ => Ok(()),
        }
    }

    /// Posts a receive. The result is as for [`post_send`](Self::post_send); a doorbell is needed only in ERR, where
    /// the engine flushes the request.
    #[inline]
    pub fn post_recv(&self, wr: RecvWr) -> Result<bool, PostError> {
        self.takes_receives()?;
        // What comes too late for a flush of the queue, whatever the state was a moment ago, is told of by the queue itself.
        Ok(self.rq.put(&wr)? && self.ring())
    }

    /// Posts several receives, one after the other, as [`send_list`](Self::send_list) does sends. Errors: the state takes no receives, or
    /// they are not the QP's own.
    pub fn recv_list(&self) -> Result<RecvList<'_>, PostError> {
        self.takes_receives()?;
        let posting = self.rq.turn().ok_or(PostError::Srq)?;
        Ok(RecvList::new(self, posting))
    }

    #[inline]
    fn takes_receives(&self) -> Result<(), PostError> {
        if let Some(why) = self.rq.refusal() {
            return Err(why);
        }
        match self.state() {
            state @ QpState::Reset => Err(PostError::State(state)),
            _ => Ok(()),
        }
    }

    #[inline]
    pub(super) fn check_send(&self, wr: &SendWr) -> Result<(), PostError> {
        match &wr.data {
            WrData::Sges(sges) if sges.len() > self.sq.max_sge => {
                return Err(PostError::TooManySges { got: sges.len(), max: self.sq.max_sge });
            }
            WrData::Inline(bytes) if bytes.len() > self.sq.max_inline => return Err(PostError::Inline),
            WrData::Inline(_) if wr.op.returns_data() => return Err(PostError::Inline),
            _ => {}
        }
        if !self.qp_type.supports(&wr.op) {
            return Err(PostError::Operation(self.qp_type));
        }
        wr.data.len().filter(|&len| len <= MAX_MESSAGE).map(|_| ()).ok_or(PostError::TooLong)
    }

    /// The same checks for a request of one piece.
    #[inline(always)]
    pub(super) fn check_piece(&self, op: &SendOp, piece: &Sge) -> Result<(), PostError> {
        if self.sq.max_sge == 0 {
            return Err(PostError::TooManySges { got: 1, max: 0 });
        }
        if !self.qp_type.supports(op) {
            return Err(PostError::Operation(self.qp_type));
        }
        if piece.len > MAX_MESSAGE { Err(PostError::TooLong) } else { Ok(()) }
    }

    /// Whether the kind of its QP and its queue let in SENDs and WRITEs of one piece.
    #[inline(always)]
    pub(super) fn takes_pieces(&self) -> bool {
        self.sq.max_sge > 0 && self.qp_type.supports(&SendOp::Send)
    }

    /// Bytes of its rings.
    pub fn ring_bytes(&self) -> usize {
        self.sq.bytes() + self.rq.ring_bytes()
    }

    /// Marks a doorbell as under way; true when the caller has to send it.
    pub fn ring(&self) -> bool {
        self.sq.ring.ring()
    }

    /// The worker took the doorbell. Called before it looks at the queues.
    pub fn answer(&self) {
        self.sq.ring.answer();
    }
}

impl SendOp {
    /// Nothing goes on the wire.
    pub fn stays_local(&self) -> bool {
        matches!(self, SendOp::LocalInv(_) | SendOp::RegMr(_) | SendOp::BindMw(_))
    }

    /// READ and atomics bring data back into the local buffers.
    pub fn returns_data(&self) -> bool {
        matches!(self, SendOp::Read(_) | SendOp::CompareSwap { .. } | SendOp::FetchAdd { .. })
    }

    /// It completes by a response of its own, which no ACK stands for, and occupies a READ/atomic slot of the peer until then.
    pub fn awaits_response(&self) -> bool {
        self.returns_data() || matches!(self, SendOp::Flush { .. } | SendOp::AtomicWrite(_))
    }
}
