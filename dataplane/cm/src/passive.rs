//! The passive side: a REQ, the application's answer, REP, RTU (rocev2 facts, CM 11 and 14).

use crate::build::{area, rej_of_req};
use crate::conn::Conn;
use crate::index::Peer;
use crate::plan::accepted_depths;
use crate::receive::Taken;
use crate::slab::Handle;
use crate::timers::timeout_ns;
use crate::{Cm, CmError, ConnId, DropReason, Event, ListenerId, Path, RepParams, State};
use wire::mad::{Answered, Area, CmMad, CmMessage, CommId, RejectReason, Rep, Req, Rtu, Transport};

/// However soon a peer says that it answers: a REP is not repeated faster than this.
const SHORTEST_INTERVAL_NS: u64 = 10_000_000;

impl Cm {
    pub(crate) fn on_req(&mut self, now: u64, path: &Path, tid: u64, req: Req) -> Taken {
        if req.local_id == CommId(0) {
            return Err(DropReason::NoId);
        }
        let peer = Peer::new(path, req.local_ca_guid);
        if let Some(&known) = self.index.by_remote.get(&(peer, req.local_id)) {
            return self.on_repeated_req(path, tid, &req, known);
        }
        if let Some((reason, ari)) = self.objection(path, &req) {
            self.transmit(*path, &rej_of_req(tid, &req, reason, &ari));
            return Ok(());
        }
        if let Some(&old) = self.index.by_qpn.get(&(peer, req.local_qpn)) {
            return self.reject_stale_req(now, path, tid, &req, old);
        }
        let Some(listener) = self.listeners.find(req.service_id, path) else {
            self.transmit(*path, &rej_of_req(tid, &req, RejectReason::INVALID_SERVICE_ID, &[]));
            return Ok(());
        };
        // Silence: the peer asks again, and there may be room then.
        if self.index.half_open_of(path.remote) >= self.config.limits.half_open_per_peer {
            return Err(DropReason::PeerLimit);
        }
        if !self.listeners.ask(listener) {
            return Err(DropReason::Backlog);
        }
        self.take_req(now, path, tid, req, listener);
        Ok(())
    }

    /// What is wrong with a request in itself, and what would be right.
    fn objection(&self, path: &Path, req: &Req) -> Option<(RejectReason, Vec<u8>)> {
        if !matches!(req.transport, Transport::Rc | Transport::Uc) {
            return Some((RejectReason::INVALID_TRANSPORT, Vec::new()));
        }
        // Nobody is connected to a third address on somebody's word.
        if (req.primary.local_gid, req.primary.remote_gid) != (path.remote, path.local) {
            return Some((RejectReason::INVALID_GID, path.local.octets().to_vec()));
        }
        if req.mtu().is_none_or(|mtu| mtu > self.config.mtu) {
            return Some((RejectReason::INVALID_MTU, vec![self.config.mtu.code()]));
        }
        if !self.config.pkey.matches(req.pkey) {
            return Some((RejectReason::UNSUPPORTED_REQUEST, Vec::new()));
        }
        None
    }

    fn take_req(&mut self, now: u64, path: &Path, tid: u64, req: Req, listener: ListenerId) {
        let local_id = self.fresh_comm_id();
        let expires = now.saturating_add(self.config.think_ns);
        // Half of the time that the peer gives us: then it is told that we need more.
        let mra_at = now.saturating_add(timeout_ns(req.remote_cm_timeout) / 2);
        let timing = self.config.timing;
        let inserted = self.insert(|id| Conn {
            id,
            state: State::ReqRcvd,
            path: *path,
            local_id,
            remote_id: req.local_id,
            remote_ca_guid: req.local_ca_guid,
            remote_qpn: req.local_qpn,
            local_qpn: None,
            transaction_id: tid,
            req: Some(Box::new(req.clone())),
            rep: None,
            ack_timeout: req.primary.ack_timeout,
            repeat: None,
            tries_left: 0,
            interval_ns: 0,
            timing,
            deadline: None,
            expires,
            listener: Some(listener),
            silent: false,
        });
        let Ok(handle) = inserted else {
            self.listeners.answered(listener);
            self.counters.refused_full += 1;
            self.transmit(*path, &rej_of_req(tid, &req, RejectReason::NO_RESOURCES, &[]));
            return;
        };
        self.know_remote(handle);
        self.arm(handle, Some(expires.min(mra_at)));
        let req = Box::new(req);
        self.tell(handle, Event::ReqReceived { conn: ConnId(handle), listener, path: *path, req });
    }

    /// The REQ was taken before: our answer to it was lost, or is still being thought of.
    fn on_repeated_req(&mut self, path: &Path, tid: u64, req: &Req, known: Handle) -> Taken {
        let Some(conn) = self.conns.get(known) else { return Err(DropReason::UnknownId) };
        match conn.state {
            State::ReqRcvd | State::MraReqSent => self.ask_for_time(known),
            State::RepSent => self.transmit_repeat(known),
            State::Timewait => {
                let refused =
                    |mad: &CmMad| matches!(&mad.message, CmMessage::Rej(rej) if rej.message == Answered::Req);
                if conn.repeat.as_deref().is_some_and(refused) {
                    self.transmit_repeat(known);
                } else {
                    self.transmit(*path, &rej_of_req(tid, req, RejectReason::STALE_CONNECTION, &[]));
                }
            }
            _ => {}
        }
        Err(DropReason::Duplicate)
    }

    /// Accepts a request: the QP is in RTS. [`Event::Established`] follows, or [`Event::Unreachable`].
    pub fn send_rep(&mut self, now: u64, conn: ConnId, params: &RepParams) -> Result<(), CmError> {
        let private_data = area(&params.private_data)?;
        let (handle, ca_guid) = (conn.0, self.config.ca_guid);
        let conn = self.conns.get_mut(handle).ok_or(CmError::UnknownId)?;
        let Some(req) = conn.req.as_ref().filter(|_| conn.state.is_asked()) else {
            return Err(CmError::WrongState(conn.state));
        };
        let (responder_resources, initiator_depth) = accepted_depths(req, params);
        let rep = Rep {
            local_id: conn.local_id,
            remote_id: conn.remote_id,
            local_qpn: params.qpn,
            starting_psn: params.rq_psn,
            responder_resources,
            initiator_depth,
            target_ack_delay: params.target_ack_delay,
            flow_control: params.flow_control,
            rnr_retry_count: params.rnr_retry_count,
            srq: params.srq,
            local_ca_guid: ca_guid,
            private_data,
            ..Rep::default()
        };
        let announced_ns = timeout_ns(req.local_cm_timeout).max(SHORTEST_INTERVAL_NS);
        conn.interval_ns = announced_ns.min(conn.timing.interval_ns);
        conn.tries_left = conn.timing.tries.saturating_sub(1).min(u32::from(req.max_cm_retries));
        conn.local_qpn = Some(params.qpn);
        conn.repeat = Some(Box::new(CmMad::new(conn.transaction_id, rep)));
        let deadline = now.saturating_add(conn.interval_ns);
        self.set_state(handle, State::RepSent);
        self.arm(handle, Some(deadline));
        self.transmit_repeat(handle);
        Ok(())
    }

    pub(crate) fn on_rtu(&mut self, path: &Path, rtu: Rtu) -> Taken {
        let handle = self.find(path, rtu.local_id, rtu.remote_id)?;
        let Some(conn) = self.conns.get(handle) else { return Err(DropReason::UnknownId) };
        match conn.state {
            State::RepSent | State::MraRepRcvd => {
                self.become_established(handle, Some(rtu.private_data));
                Ok(())
            }
            State::Timewait => {
                // We gave up on a peer that is there after all.
                self.transmit_repeat(handle);
                Err(DropReason::Unexpected)
            }
            State::Established | State::DreqSent => Err(DropReason::Duplicate),
            _ => Err(DropReason::Unexpected),
        }
    }

    /// Data came on the QP: the RTU was lost, but the peer is ready (rocev2 facts, CM 11). Does nothing when the connection is
    /// established already.
    pub fn establish(&mut self, _now: u64, conn: ConnId) -> Result<(), CmError> {
        match self.state(conn)? {
            State::RepSent | State::MraRepRcvd => {
                self.become_established(conn.0, None);
                Ok(())
            }
            State::Established => Ok(()),
            other => Err(CmError::WrongState(other)),
        }
    }

    fn become_established(&mut self, handle: Handle, private_data: Option<Area<224>>) {
        self.set_state(handle, State::Established);
        self.arm(handle, None);
        if let Some(conn) = self.conns.get_mut(handle) {
            conn.repeat = None;
        }
        self.tell(handle, Event::Established { conn: ConnId(handle), private_data });
    }
}
