//! A queue pair.

use super::wr::MAX_SGE;
use super::{Cq, Mw, MwBind, Pd, QpCaps, QpOptions, RecvWr, SendWr, Srq, Xrcd};
use crate::error::{BindMwError, CreateError, QpError};
use engine::queue::PostError;
use engine::{Counters, QpAttr, QpAttrMask, QpInit, QpShared, QpState, QpType, RecvQueue, SendQueue, limits};
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use wire::{Psn, Qpn, RKey, Srqn};
use worker::{CallError, Command, Reply};

/// A queue pair. Clones are the same one; any thread may post. It is destroyed when the last handle goes: requests under
/// way vanish without completions.
#[derive(Clone)]
pub struct Qp {
    inner: Arc<Inner>,
    /// The same as in there: a post finds its queue by one look less.
    shared: Arc<QpShared>,
}

/// No GID was chosen so far.
const NO_INDEX: usize = usize::MAX;

struct Inner {
    shared: Arc<QpShared>,
    first_psn: Psn,
    /// Index of the GID that the peer was told, or that its packets come from; [`NO_INDEX`] before that.
    sgid_index: AtomicUsize,
    pd: Pd,
    send_cq: Cq,
    recv_cq: Cq,
    srq: Option<Srq>,
    _xrcd: Option<Xrcd>,
}

impl std::fmt::Debug for Qp {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Qp").field("qpn", &self.qpn()).field("state", &self.state()).finish_non_exhaustive()
    }
}

/// A queue pair as it is.
#[derive(Clone, Debug)]
pub struct QpQuery {
    /// Attributes, with the present state.
    pub attr: QpAttr,
    /// What it counted.
    pub counters: Counters,
}

impl Qp {
    pub(super) fn new(pd: &Pd, options: &QpOptions, xrcd: Option<&Xrcd>) -> Result<Qp, CreateError> {
        check(pd, options, xrcd)?;
        let device = pd.device();
        let QpCaps { max_send_wr, max_recv_wr, max_send_sge, max_recv_sge, max_inline_data } = options.caps;
        let sq = SendQueue::new(max_send_wr, max_send_sge, max_inline_data);
        let rq = match (options.qp_type, &options.srq, xrcd) {
            (_, _, Some(xrcd)) => Arc::new(RecvQueue::xrc_target(xrcd.id())),
            (QpType::XrcIni, ..) => Arc::new(RecvQueue::xrc_initiator()),
            (_, Some(srq), _) => Arc::clone(srq.queue()),
            _ => Arc::new(RecvQueue::new(max_recv_wr, max_recv_sge)),
        };
        let most = device.port.facts.max_qps;
        let qpn = device.port.names().qpn(options.qp_type, most);
        let (asked, most) = (most as u64 + 1, most as u64);
        let qpn = qpn.ok_or(CreateError::Limit { what: "queue pairs", asked, most })?;
        let shared = Arc::new(QpShared::new(qpn, options.qp_type, sq, rq));
        let init = QpInit {
            shared: Arc::clone(&shared),
            pd: pd.id(),
            send_cq: Arc::clone(options.send_cq.queue()),
            recv_cq: Arc::clone(options.recv_cq.queue()),
            sq_sig_all: options.sq_sig_all,
            port_mtu: device.path_mtu(),
        };
        let home = device.port.choose_home();
        let created = home.worker.call(Command::CreateQp { lane: home.lane, init: Box::new(init) });
        if let Err(error) = created {
            device.port.names().free_qpn(qpn);
            return Err(error.into());
        }
        let inner = Inner {
            shared,
            first_psn: crate::endpoint::starting_psn(),
            sgid_index: AtomicUsize::new(NO_INDEX),
            pd: pd.clone(),
            send_cq: options.send_cq.clone(),
            recv_cq: options.recv_cq.clone(),
            srq: options.srq.clone(),
            _xrcd: xrcd.cloned(),
        };
        inner.srq.iter().for_each(Srq::enter);
        let shared = Arc::clone(&inner.shared);
        Ok(Qp { inner: Arc::new(inner), shared })
    }

    /// Its number.
    pub fn qpn(&self) -> Qpn {
        self.shared.qpn()
    }

    /// Its service type.
    pub fn qp_type(&self) -> QpType {
        self.shared.qp_type()
    }

    /// Its state, as of its last change.
    pub fn state(&self) -> QpState {
        self.shared.state()
    }

    /// Its protection domain.
    pub fn pd(&self) -> &Pd {
        &self.inner.pd
    }

    /// Where its sends complete.
    pub fn send_cq(&self) -> &Cq {
        &self.inner.send_cq
    }

    /// Where its receives complete.
    pub fn recv_cq(&self) -> &Cq {
        &self.inner.recv_cq
    }

    /// Where its receives come from, if that is a shared queue.
    pub fn srq(&self) -> Option<&Srq> {
        self.inner.srq.as_ref()
    }

    /// The PSN that [`connect`](Self::connect) begins to send with: unpredictable, chosen when the QP was made.
    pub fn first_psn(&self) -> Psn {
        self.inner.first_psn
    }

    /// Index of the GID that the peer was told of, or that a path was found from.
    pub(super) fn sgid_index(&self) -> Option<usize> {
        Some(self.inner.sgid_index.load(Ordering::Relaxed)).filter(|&index| index != NO_INDEX)
    }

    pub(super) fn set_sgid_index(&self, index: usize) {
        self.inner.sgid_index.store(index, Ordering::Relaxed);
    }

    /// Asks for what a post of `count` sends will need, to be on its way from memory while something else is done. Worth it for a program
    /// that knows some of its next posts, to different ones of hundreds of queue pairs.
    #[inline]
    pub fn fetch_sends(&self, count: u32) {
        self.shared.fetch_sends(count);
        engine::fetch(&*self.inner);
    }

    /// Posts a send request. From RTS on; before, the state is refused. Never blocks.
    #[inline]
    pub fn post_send(&self, wr: SendWr) -> Result<(), PostError> {
        let pieces = wr.pieces();
        let refused = || match pieces {
            Some(got) => PostError::TooManySges { got, max: MAX_SGE },
            None => PostError::Inline,
        };
        match wr.srqn() {
            None => self.post_send_raw(wr.build().ok_or_else(refused)?),
            Some(srqn) => self.post_send_xrc_raw(wr.build().ok_or_else(refused)?, srqn),
        }
    }

    /// XRC initiator: posts a send request for an SRQ of the peer, in the engine's form, which allocates nothing.
    #[inline]
    pub fn post_send_xrc_raw(&self, wr: engine::SendWr, srqn: Srqn) -> Result<(), PostError> {
        if self.shared.post_send_xrc(wr, srqn)? {
            self.ring();
        }
        Ok(())
    }

    /// Posts a send request in the engine's form, which allocates nothing: for tight loops.
    #[inline]
    pub fn post_send_raw(&self, wr: engine::SendWr) -> Result<(), PostError> {
        if self.shared.post_send(wr)? {
            self.ring();
        }
        Ok(())
    }

    /// Posts several send requests in the engine's form with one doorbell and one synchronization of threads: cheaper than one by
    /// one. `fill` pushes them; it must not post to this queue pair otherwise, and other threads that do wait for it. What `fill`
    /// pushed before an error is posted all the same, as by `ibv_post_send` of a list. Not for XRC initiators.
    #[inline]
    pub fn post_send_list<R>(
        &self,
        fill: impl FnOnce(&mut engine::queue::SendList<'_>) -> R,
    ) -> Result<R, PostError> {
        let mut list = self.shared.send_list()?;
        let result = fill(&mut list);
        if list.post() {
            self.ring();
        }
        Ok(result)
    }

    /// Binds a memory window of type 1 to a piece of a region, or to nothing, which unbinds it; after `ibv_bind_mw`. The result is
    /// its key from then on: each bind changes it, and the one before dies. The request completes like a send, with
    /// `MwBindErr` (and the queue pair in ERROR) where the region does not allow it.
    pub fn bind_mw(&self, wr_id: u64, mw: &Mw, to: Option<&MwBind>) -> Result<RKey, BindMwError> {
        mw.check_type_1(self.pd(), to)?;
        let (key, bind) = mw.bind_next(to);
        let op = engine::SendOp::BindMw(bind);
        let data = engine::WrData::Inline(Default::default());
        self.post_send_raw(engine::SendWr { wr_id, op, data, flags: engine::SendFlags::SIGNALED })?;
        Ok(key)
    }

    /// Asks for what a post of `count` receives will need, as [`fetch_sends`](Self::fetch_sends) does for sends.
    #[inline]
    pub fn fetch_receives(&self, count: u32) {
        self.shared.fetch_receives(count);
    }

    /// Posts a receive. From INIT on. Never blocks.
    #[inline]
    pub fn post_recv(&self, wr: RecvWr) -> Result<(), PostError> {
        let wr = wr.build().map_err(|got| PostError::TooManySges { got, max: MAX_SGE })?;
        self.post_recv_raw(wr)
    }

    /// Posts a receive in the engine's form, which allocates nothing: for tight loops.
    #[inline]
    pub fn post_recv_raw(&self, wr: engine::RecvWr) -> Result<(), PostError> {
        if self.shared.post_recv(wr)? {
            self.ring();
        }
        Ok(())
    }

    /// Posts several receives as [`post_send_list`](Self::post_send_list) does sends.
    #[inline]
    pub fn post_recv_list<R>(
        &self,
        fill: impl FnOnce(&mut engine::queue::RecvList<'_>) -> R,
    ) -> Result<R, PostError> {
        let mut list = self.shared.recv_list()?;
        let result = fill(&mut list);
        if list.post() {
            self.ring();
        }
        Ok(result)
    }

    /// Bytes of its rings: sends, and receives unless an SRQ holds them.
    pub fn ring_bytes(&self) -> usize {
        self.shared.ring_bytes()
    }

    /// Send requests posted and not completed.
    pub fn outstanding(&self) -> u32 {
        self.shared.sq().outstanding()
    }

    /// Changes the attributes that `mask` names, after `ibv_modify_qp`; the result is the new state. On an error nothing
    /// changed.
    pub fn modify(&self, attr: &QpAttr, mask: QpAttrMask) -> Result<QpState, QpError> {
        let qpn = self.qpn();
        let modify = |lane| Command::ModifyQp { lane, qpn, attr: Box::new(attr.clone()), mask };
        match self.port().at_home(qpn, modify)? {
            Reply::State(state) => {
                self.port().note_peer(qpn, attr, mask);
                Ok(state)
            }
            _ => Err(CallError::Stopped.into()),
        }
    }

    /// The first packet that it receives is told of by an event, whatever its state.
    pub(crate) fn await_first_packet(&self) {
        self.shared.await_first_packet();
    }

    /// Makes several changes in a row, in one command. The first that is refused is the error, and those before it stay.
    pub(crate) fn walk(&self, steps: Vec<(QpAttr, QpAttrMask)>) -> Result<(), QpError> {
        let (qpn, steps) = (self.qpn(), steps.into_boxed_slice());
        self.port().at_home(qpn, |lane| Command::WalkQp { lane, qpn, steps: steps.clone() })?;
        steps.iter().for_each(|(attr, mask)| self.port().note_peer(qpn, attr, *mask));
        Ok(())
    }

    /// Attaches a UD queue pair to a multicast group, IPv4 or IPv6, on the port's own link: from now on it receives what is sent there, by others and
    /// by this port itself. The port joins the group with its first member. RoCE has no LIDs, so `_mlid` has no effect.
    /// Attaching twice is attaching once.
    pub fn attach_mcast(&self, group: IpAddr, _mlid: u16) -> Result<(), QpError> {
        self.attach_mcast_on(self.port().facts.vlan, group)
    }

    /// Attaches it to a group on the link of a VLAN (`None`: untagged), where another group of the same address is another
    /// group.
    pub fn attach_mcast_on(&self, vlan: Option<u16>, group: IpAddr) -> Result<(), QpError> {
        if self.qp_type() != QpType::Ud {
            return Err(QpError::GroupType(self.qp_type()));
        }
        self.port().attach_mcast(self.qpn(), vlan, group.into())
    }

    /// Detaches it. What the queue pair is attached to when it goes, it is detached from.
    pub fn detach_mcast(&self, group: IpAddr, _mlid: u16) -> Result<(), QpError> {
        self.detach_mcast_on(self.port().facts.vlan, group)
    }

    /// Detaches it from a group on the link of a VLAN.
    pub fn detach_mcast_on(&self, vlan: Option<u16>, group: IpAddr) -> Result<(), QpError> {
        self.port().detach_mcast(self.qpn(), vlan, group.into())
    }

    /// Attributes and counters, after `ibv_query_qp`.
    pub fn query(&self) -> Result<QpQuery, QpError> {
        let qpn = self.qpn();
        match self.port().at_home(qpn, |lane| Command::QueryQp { lane, qpn })? {
            Reply::Qp(snapshot) => Ok(QpQuery { attr: snapshot.attr, counters: snapshot.counters }),
            _ => Err(CallError::Stopped.into()),
        }
    }

    /// What it counted, by mlx5's names where those exist.
    pub fn counters(&self) -> Result<Counters, QpError> {
        Ok(self.query()?.counters)
    }

    fn ring(&self) {
        self.port().link.ring(self.qpn());
    }

    fn port(&self) -> &crate::endpoint::PortCore {
        &self.inner.pd.device().port
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        let (port, qpn) = (&self.pd.device().port, self.shared.qpn());
        port.detach_from_all(qpn);
        // A worker that is gone has no QP any more.
        let _ = port.at_home(qpn, |lane| Command::DestroyQp { lane, qpn });
        port.peers.forget(qpn);
        port.names().free_qpn(qpn);
        self.srq.iter().for_each(Srq::leave);
    }
}

fn check(pd: &Pd, options: &QpOptions, xrcd: Option<&Xrcd>) -> Result<(), CreateError> {
    if options.qp_type == QpType::XrcTgt && xrcd.is_none() {
        return Err(CreateError::Target);
    }
    let caps = options.caps;
    let limit = |what, asked: u64, most: u64| {
        if asked > most { Err(CreateError::Limit { what, asked, most }) } else { Ok(()) }
    };
    limit("send requests", caps.max_send_wr.into(), limits::MAX_QP_WR.into())?;
    limit("receives", caps.max_recv_wr.into(), limits::MAX_QP_WR.into())?;
    limit("scatter/gather entries", caps.max_send_sge.max(caps.max_recv_sge) as u64, limits::MAX_SGE as u64)?;
    limit("bytes of inline data", caps.max_inline_data as u64, limits::MAX_INLINE as u64)?;
    for cq in [&options.send_cq, &options.recv_cq] {
        if !Arc::ptr_eq(&cq.device().port, &pd.device().port) {
            return Err(CreateError::OtherDevice("completion queue"));
        }
    }
    if options.srq.as_ref().is_some_and(|srq| options.qp_type == QpType::XrcIni || srq.srqn().is_some()) {
        return Err(CreateError::XrcSrq);
    }
    let srq = options.srq.as_ref().map(|srq| srq.pd().device());
    if srq.is_some_and(|device| !Arc::ptr_eq(&device.port, &pd.device().port)) {
        return Err(CreateError::OtherDevice("shared receive queue"));
    }
    Ok(())
}
