//! Connecting and disconnecting: what the application calls, and what follows from what the peer sends.
//!
//! Both sides' queue pairs are moved here: the passive one before its REP leaves, the active one when the REP has come and before
//! its RTU leaves (rocev2 facts, CM 11 and 12).

use super::error::{CmError, Unreachable};
use super::event::CmEventKind;
use super::id::{CmId, Inner, Place, State};
use super::moves;
use super::params::{ConnParam, UdParam};
use super::port::{self, Conn};
use super::{MAX_REJ_DATA, MAX_REP_DATA, MAX_REQ_DATA, MAX_SIDR_REP_DATA, MAX_SIDR_REQ_DATA};
use crate::endpoint::PortCore;
use ::cm::{ConnId, QpPlan, RepParams, ReqParams, SidrId, SidrRepParams, SidrReqParams};
use engine::{EventKind, QpType, limits};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use wire::mad::{IpAddressing, PortSpace, RejectReason, Rep, Req, ServiceId, SidrRep, SidrStatus, Transport};
use wire::{Addressing, QKey, Qpn};

impl CmId {
    /// Waits for peers, after `rdma_listen`: each that asks gives a [`ConnectRequest`](CmEventKind::ConnectRequest) event with
    /// an identifier of its own. `backlog` is how many may wait for an answer at a time; more are not heard until some have been
    /// answered.
    pub fn listen(&self, backlog: usize) -> Result<(), CmError> {
        let inner = &self.inner;
        let mut place = inner.lock();
        place.expect("listen", &[State::New, State::Bound], "new or bound")?;
        if place.state == State::New {
            inner.bind(&mut place, SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0))?;
            place.state = State::Bound;
        }
        let Some(at) = place.local else { return Ok(()) };
        inner.host().bindings().listen(inner.space, at, inner.key)?;
        let service = ServiceId::new(inner.space, at.port());
        for (index, port) in inner.host().ports.iter().enumerate() {
            if place.port.is_none_or(|own| own == index) {
                let key = port.cm_listen(service, inner, at.ip(), backlog.max(1))?;
                place.listens.push((index, key));
            }
        }
        place.state = State::Listening;
        Ok(())
    }

    /// Connects to the resolved destination, after `rdma_connect`, or for datagrams asks for its queue pair. One of these events
    /// follows: [`Established`](CmEventKind::Established), [`Rejected`](CmEventKind::Rejected),
    /// [`Unreachable`](CmEventKind::Unreachable), [`ConnectError`](CmEventKind::ConnectError); or
    /// [`ConnectResponse`](CmEventKind::ConnectResponse) where the queue pair is not attached.
    pub fn connect(&self, param: &ConnParam) -> Result<(), CmError> {
        let inner = &self.inner;
        let datagrams = inner.is_for_datagrams();
        check(param, if datagrams { MAX_SIDR_REQ_DATA } else { MAX_REQ_DATA })?;
        let mut place = inner.lock();
        place.expect("connect", &[State::AddrResolved, State::RouteResolved], "resolved")?;
        let port = inner.port(&place)?;
        let (Some(path), Some(local), Some(peer)) = (place.path, place.local, place.peer) else {
            return Err(CmError::NoQp);
        };
        let path = port.as_it_is_now(path);
        let service = ServiceId::new(inner.space, peer.port());
        let own = IpAddressing {
            source_port: local.port(),
            source: path.addressing.src.ip(),
            destination: path.addressing.dst.ip(),
        };
        let private_data = behind(&own, &param.private_data)?;
        // As Linux does it: connections between the same hosts spread over paths by their ports.
        let flow_label = wire::flow_label_of_ports(local.port(), peer.port());
        let way = Addressing { flow_label, ..path.addressing };
        let conn = if datagrams {
            let (path, timing) = (port::path_of(&way), Some(place.options.timing()));
            let question = SidrReqParams { path, service_id: service, private_data, timing };
            port.cm_ask(inner, &way, question)?
        } else {
            let (qpn, qp_type, srq) = whose_qp(&place, param)?;
            let mtu = place.options.path_mtu.unwrap_or(path.path_mtu).min(path.path_mtu);
            let rq_psn = crate::endpoint::starting_psn();
            let request = ReqParams {
                transport: if qp_type == QpType::Uc { Transport::Uc } else { Transport::Rc },
                responder_resources: param.responder_resources,
                initiator_depth: param.initiator_depth,
                flow_control: param.flow_control,
                retry_count: param.retry_count,
                rnr_retry_count: param.rnr_retry_count,
                srq,
                ack_timeout: place.options.ack_timeout,
                private_data,
                timing: Some(place.options.timing()),
                ..ReqParams::new(port::path_of(&way), service, qpn, rq_psn, mtu)
            };
            port.cm_connect(inner, &way, request)?
        };
        place.path = Some(path);
        place.conn = Some(conn);
        place.state = State::Connecting;
        Ok(())
    }

    /// Accepts a connect request, after `rdma_accept`. An attached queue pair is made ready to send and receive first;
    /// [`Established`](CmEventKind::Established) follows when the peer says that it is ready, too, or sends data. For datagrams
    /// the peer is told the queue pair, and that is all.
    pub fn accept(&self, param: &ConnParam) -> Result<(), CmError> {
        let conn = self.inner.lock().conn;
        match conn {
            Some(Conn::Question(question)) => self.accept_datagrams(question, param),
            _ => self.accept_connection(param),
        }
    }

    fn accept_connection(&self, param: &ConnParam) -> Result<(), CmError> {
        let inner = &self.inner;
        check(param, MAX_REP_DATA)?;
        let mut place = inner.lock();
        place.expect("accept", &[State::Requested], "waiting to be accepted or rejected")?;
        let (port, conn) = (inner.port(&place)?, inner.conn(&place)?);
        let Some(asked) = place.asked.clone() else { return Err(CmError::NoQp) };
        let (qpn, _, srq) = whose_qp(&place, param)?;
        let answer = RepParams {
            responder_resources: param.responder_resources,
            initiator_depth: param.initiator_depth,
            flow_control: param.flow_control,
            rnr_retry_count: param.rnr_retry_count,
            srq,
            private_data: param.private_data.clone(),
            ..RepParams::new(qpn, crate::endpoint::starting_psn())
        };
        place.state = State::Accepted;
        let (qp, options) = (place.qp.clone(), place.options.clone());
        drop(place);
        let moved = match (&qp, port.cm_plan_accept(conn, &answer)) {
            (Some(qp), Ok(plan)) => {
                qp.await_first_packet();
                moves::connect(qp, &plan, &asked.way, &options)
            }
            (_, planned) => planned.map(drop),
        };
        // The peer must not wait for an answer that never comes.
        let sent = moved.and_then(|()| port.cm_accept(conn, answer, options.timing())).inspect_err(|_| {
            port.cm_reject(conn, RejectReason::CONSUMER_DEFINED, &[]);
        });
        if sent.is_err() {
            inner.lock().state = State::Closed;
        }
        sent
    }

    fn accept_datagrams(&self, question: SidrId, param: &ConnParam) -> Result<(), CmError> {
        let inner = &self.inner;
        check(param, MAX_SIDR_REP_DATA)?;
        let mut place = inner.lock();
        place.expect("accept", &[State::Requested], "waiting to be accepted or rejected")?;
        let port = inner.port(&place)?;
        let (qpn, ..) = whose_qp(&place, param)?;
        let answer = SidrRepParams {
            status: SidrStatus::SUCCESS,
            qpn,
            qkey: place.options.qkey,
            info: Vec::new(),
            private_data: param.private_data.clone(),
        };
        port.cm_tell(question, &answer)?;
        place.state = State::Connected;
        place.conn = None;
        Ok(())
    }

    /// Rejects a connect request, after `rdma_reject`; the peer gets [`Rejected`](CmEventKind::Rejected) with the private data, up
    /// to [`MAX_REJ_DATA`] bytes, and the reason "consumer defined". A connection whose peer has answered, and that is not
    /// established, can be rejected, too.
    pub fn reject(&self, private_data: &[u8]) -> Result<(), CmError> {
        let inner = &self.inner;
        let most = if inner.is_for_datagrams() { MAX_SIDR_REP_DATA } else { MAX_REJ_DATA };
        if private_data.len() > most {
            return Err(CmError::PrivateData { given: private_data.len(), most });
        }
        let mut place = inner.lock();
        place.expect(
            "reject",
            &[State::Requested, State::Responded],
            "waiting to be accepted or rejected",
        )?;
        let port = inner.port(&place)?;
        place.state = State::Closed;
        let conn = place.conn;
        drop(place);
        match conn {
            Some(Conn::Connection(conn)) => {
                port.cm_reject(conn, RejectReason::CONSUMER_DEFINED, private_data)
            }
            Some(Conn::Question(question)) => {
                port.cm_tell(question, &refusal(SidrStatus::REJECTED, private_data))?;
            }
            None => {}
        }
        Ok(())
    }

    /// Closes the connection, after `rdma_disconnect`: its queue pair goes to ERROR, so that what is posted completes with a
    /// flush, and the peer is told. [`Disconnected`](CmEventKind::Disconnected) follows on both sides, here at the latest when
    /// the peer has not answered to any try.
    pub fn disconnect(&self) -> Result<(), CmError> {
        let inner = &self.inner;
        let place = inner.lock();
        place.expect("disconnect", &[State::Connected, State::Accepted, State::Closed], "connected")?;
        let (port, conn, qp) = (inner.port(&place)?, inner.conn(&place)?, place.qp.clone());
        drop(place);
        if let Some(qp) = qp {
            moves::fail(&qp);
        }
        port.cm_disconnect(conn);
        Ok(())
    }

    /// Says that the connection works, after `rdma_establish`: for an identifier whose queue pair is not attached, once that is
    /// ready. For a passive one: as if the peer had said so.
    pub fn establish(&self) -> Result<(), CmError> {
        let inner = &self.inner;
        let mut place = inner.lock();
        place.expect("establish", &[State::Responded, State::Accepted], "waiting to be established")?;
        let (port, conn) = (inner.port(&place)?, inner.conn(&place)?);
        if place.state == State::Responded {
            place.state = State::Connected;
            drop(place);
            port.cm_ready(conn)
        } else {
            drop(place);
            port.cm_establish(conn)
        }
    }

    /// Passes on an event of its queue pair, after `rdma_notify`: [`EventKind::CommEst`] establishes a passive connection whose
    /// peer's last word was lost. For attached queue pairs this happens by itself.
    pub fn notify(&self, event: EventKind) -> Result<(), CmError> {
        if event == EventKind::CommEst && self.state() == State::Accepted { self.establish() } else { Ok(()) }
    }
}

/// What came of connecting, for [`Inner::on_response`] and its like.
impl Inner {
    pub fn is_for_datagrams(&self) -> bool {
        matches!(self.space, PortSpace::Udp | PortSpace::Ipoib)
    }

    pub fn port(&self, place: &Place) -> Result<&Arc<PortCore>, CmError> {
        place.port.and_then(|index| self.host().ports.get(index)).ok_or(CmError::State {
            call: "this",
            wanted: "bound to a device",
            is: place.state,
        })
    }

    fn conn(&self, place: &Place) -> Result<ConnId, CmError> {
        match place.conn {
            Some(Conn::Connection(conn)) => Ok(conn),
            _ => Err(CmError::State { call: "this", wanted: "connected", is: place.state }),
        }
    }

    /// The peer has accepted: our queue pair is made ready, then it is told.
    pub fn on_response(self: &Arc<Inner>, port: &PortCore, conn: ConnId, rep: &Rep, plan: Option<QpPlan>) {
        let mut place = self.lock();
        let (State::Connecting, Some(plan), Some(path)) = (place.state, plan, place.path) else { return };
        let (qp, options) = (place.qp.clone(), place.options.clone());
        let param = answered(rep);
        let Some(qp) = qp else {
            place.state = State::Responded;
            drop(place);
            return self.report(CmEventKind::ConnectResponse { param });
        };
        drop(place);
        let moved = moves::connect(&qp, &plan, &path.addressing, &options);
        let ready = moved.and_then(|()| {
            self.lock().state = State::Connected;
            port.cm_ready(conn)
        });
        match ready {
            Ok(()) => self.report(CmEventKind::Established { param, ud: None }),
            Err(why) => {
                self.lock().state = State::Closed;
                port.cm_reject(conn, RejectReason::CONSUMER_DEFINED, &[]);
                self.report(CmEventKind::ConnectError(Arc::new(why)));
            }
        }
    }

    /// The peer's last word, or its first data.
    pub fn on_established(self: &Arc<Inner>) {
        let mut place = self.lock();
        if place.state != State::Accepted {
            return;
        }
        place.state = State::Connected;
        let param = place.asked.as_ref().map(|asked| asked.param.clone()).unwrap_or_default();
        drop(place);
        self.report(CmEventKind::Established {
            param: ConnParam { private_data: Vec::new(), ..param },
            ud: None,
        });
    }

    /// Datagrams: the peer told its queue pair, or that there is none.
    pub fn on_told(self: &Arc<Inner>, rep: &SidrRep) {
        if rep.status != SidrStatus::SUCCESS {
            return self.on_unreachable(Unreachable::Sidr(rep.status));
        }
        let mut place = self.lock();
        let Some(path) = place.path.filter(|_| place.state == State::Connecting) else { return };
        place.state = State::Connected;
        drop(place);
        let ud = UdParam { qpn: rep.qpn, qkey: rep.qkey, addressing: path.addressing };
        let private_data = rep.private_data.bytes().to_vec();
        let param = ConnParam { private_data, qp_num: Some(rep.qpn), ..ConnParam::default() };
        self.report(CmEventKind::Established { param, ud: Some(ud) });
    }

    pub fn on_rejected(self: &Arc<Inner>, reason: RejectReason, private_data: Vec<u8>) {
        self.end(CmEventKind::Rejected { reason, private_data });
    }

    pub fn on_unreachable(self: &Arc<Inner>, why: Unreachable) {
        self.end(CmEventKind::Unreachable(why));
    }

    pub fn on_disconnected(self: &Arc<Inner>) {
        self.end(CmEventKind::Disconnected);
    }

    /// There is no connection any more: the queue pair goes to ERROR before the application hears of it.
    fn end(self: &Arc<Inner>, kind: CmEventKind) {
        let mut place = self.lock();
        let before = std::mem::replace(&mut place.state, State::Closed);
        let qp = place.qp.clone().filter(|qp| qp.qp_type() != QpType::Ud);
        let channel = place.channel.upgrade();
        drop(place);
        let own = CmId { inner: Arc::clone(self) };
        // Nobody has heard that it began, so nobody is told that it ended: requests that are given up leave nothing behind.
        if before == State::Requested && channel.is_some_and(|channel| channel.withdraw(&own)) {
            return;
        }
        if let Some(qp) = qp {
            moves::fail(&qp);
        }
        self.report(kind);
    }
}

/// Number and type of the queue pair to name, and whether it has a shared receive queue.
fn whose_qp(place: &Place, param: &ConnParam) -> Result<(Qpn, QpType, bool), CmError> {
    match (&place.qp, param.qp_num) {
        (Some(qp), _) => Ok((qp.qpn(), qp.qp_type(), qp.srq().is_some())),
        (None, Some(qpn)) => Ok((qpn, QpType::Rc, param.srq)),
        (None, None) => Err(CmError::NoQp),
    }
}

fn check(param: &ConnParam, most: usize) -> Result<(), CmError> {
    let given = param.private_data.len();
    if given > most {
        return Err(CmError::PrivateData { given, most });
    }
    let limit = |what, given: u8, most: u8| {
        let refused = CmError::OutOfRange { what, given: given.into(), most: most.into() };
        if given > most { Err(refused) } else { Ok(()) }
    };
    limit("the number of responder resources", param.responder_resources, limits::MAX_RD_ATOMIC)?;
    limit("the initiator depth", param.initiator_depth, limits::MAX_RD_ATOMIC)?;
    limit("the retry count", param.retry_count, limits::MAX_RETRIES)?;
    limit("the RNR retry count", param.rnr_retry_count, limits::MAX_RETRIES)
}

/// What a request says, as this side would say it: depths cross over (rocev2 facts, CM 6).
pub(super) fn asked(req: &Req) -> ConnParam {
    ConnParam {
        private_data: Vec::new(),
        responder_resources: req.initiator_depth,
        initiator_depth: req.responder_resources,
        flow_control: req.flow_control,
        retry_count: req.retry_count,
        rnr_retry_count: req.rnr_retry_count,
        srq: req.srq,
        qp_num: Some(req.local_qpn),
    }
}

/// The answer to a question for datagrams that gives no queue pair.
pub(super) fn refusal(status: SidrStatus, private_data: &[u8]) -> SidrRepParams {
    let (qpn, qkey) = (Qpn::new(0), QKey::new(0));
    SidrRepParams { status, qpn, qkey, info: Vec::new(), private_data: private_data.to_vec() }
}

/// What a reply says, as this side would say it.
fn answered(rep: &Rep) -> ConnParam {
    ConnParam {
        private_data: rep.private_data.bytes().to_vec(),
        responder_resources: rep.initiator_depth,
        initiator_depth: rep.responder_resources,
        flow_control: rep.flow_control,
        rnr_retry_count: rep.rnr_retry_count,
        srq: rep.srq,
        qp_num: Some(rep.local_qpn),
        ..ConnParam::default()
    }
}

/// The private data of a request: the addresses, then the application's (rocev2 facts, CM 5).
fn behind(addresses: &IpAddressing, private_data: &[u8]) -> Result<Vec<u8>, CmError> {
    let header = addresses.to_bytes().ok_or(CmError::NoSuchAddress(addresses.source))?;
    Ok([&header[..], private_data].concat())
}
