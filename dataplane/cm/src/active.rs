//! The active side: REQ, what answers it, RTU (rocev2 facts, CM 10 and 11).

use crate::build::{area, stateless_rej};
use crate::conn::Conn;
use crate::index::Peer;
use crate::params::{PEERS_LONGEST, ack_timeout};
use crate::receive::Taken;
use crate::slab::Handle;
use crate::timers::timeout_code;
use crate::{Cm, CmError, ConnId, DropReason, Event, Path, ReqParams, State};
use wire::Qpn;
use wire::mad::{Answered, CmMad, CommId, RejectReason, Rep, Req, Rtu, Transport};

/// What Linux announces: how often messages of the connection may be sent again.
const MAX_CM_RETRIES: u8 = 15;

impl Cm {
    /// Asks for a connection. The first event is [`Event::RepReceived`], [`Event::Rejected`] or [`Event::Unreachable`], the
    /// last within the patience of the request's timing, unless the peer asks for time by MRA.
    pub fn send_req(&mut self, now: u64, params: &ReqParams) -> Result<ConnId, CmError> {
        if !matches!(params.transport, Transport::Rc | Transport::Uc) {
            return Err(CmError::UnsupportedTransport);
        }
        let private_data = area(&params.private_data)?;
        let timing = params.timing.unwrap_or(self.config.timing);
        let (local_id, transaction_id) = (self.fresh_comm_id(), self.random.next());
        let timeout = timeout_code(timing.interval_ns);
        let req = Req {
            local_id,
            local_ca_guid: self.config.ca_guid,
            remote_cm_timeout: timeout,
            local_cm_timeout: timeout,
            pkey: self.config.pkey,
            max_cm_retries: MAX_CM_RETRIES,
            private_data,
            ..params.message()
        };
        let mad = CmMad::new(transaction_id, req.clone());
        let handle = self.insert(|id| Conn {
            id,
            state: State::ReqSent,
            path: params.path,
            local_id,
            remote_id: CommId(0),
            remote_ca_guid: 0,
            remote_qpn: Qpn::default(),
            local_qpn: Some(params.qpn),
            transaction_id,
            req: Some(Box::new(req)),
            rep: None,
            ack_timeout: params.ack_timeout,
            repeat: Some(Box::new(mad)),
            tries_left: timing.tries.saturating_sub(1),
            interval_ns: timing.interval_ns,
            timing,
            deadline: None,
            expires: 0,
            listener: None,
            silent: false,
        })?;
        self.transmit_repeat(handle);
        self.arm(handle, Some(now.saturating_add(timing.interval_ns)));
        Ok(ConnId(handle))
    }

    pub(crate) fn on_rep(&mut self, now: u64, path: &Path, tid: u64, rep: Rep) -> Taken {
        if rep.local_id == CommId(0) {
            return Err(DropReason::NoId);
        }
        let handle = match self.find_ours(path, rep.remote_id) {
            Ok(handle) => handle,
            Err(DropReason::UnknownId) => {
                // The peer believes in a request that we know nothing of: it need not wait for its own timeout. Linux looks
                // for both IDs that its REP had.
                let ids = (rep.remote_id, rep.local_id);
                let reason = RejectReason::INVALID_COMM_ID;
                self.transmit(*path, &stateless_rej(tid, ids, Answered::Rep, reason, &[]));
                return Err(DropReason::UnknownId);
            }
            Err(other) => return Err(other),
        };
        let Some(conn) = self.conns.get_mut(handle) else { return Err(DropReason::UnknownId) };
        if conn.remote_id != CommId(0) && conn.remote_id != rep.local_id {
            return Err(DropReason::UnknownId);
        }
        match conn.state {
            State::ReqSent | State::MraReqRcvd => self.take_rep(now, handle, rep),
            _ => self.on_repeated_rep(handle),
        }
    }

    fn take_rep(&mut self, now: u64, handle: Handle, rep: Rep) -> Taken {
        let Some(conn) = self.conns.get_mut(handle) else { return Err(DropReason::UnknownId) };
        let peer = Peer::new(&conn.path, rep.local_ca_guid);
        (conn.remote_id, conn.remote_ca_guid, conn.remote_qpn) =
            (rep.local_id, rep.local_ca_guid, rep.local_qpn);
        if let Some(&old) = self.index.by_qpn.get(&(peer, rep.local_qpn)) {
            return self.reject_stale_rep(now, handle, old);
        }
        conn.rep = Some(Box::new(rep.clone()));
        // rocev2 facts, CM 10: now it is known what the peer needs.
        conn.ack_timeout = ack_timeout(conn.ack_timeout, rep.target_ack_delay.min(PEERS_LONGEST));
        conn.repeat = None;
        conn.expires = now.saturating_add(self.config.think_ns);
        let (id, think_until) = (conn.id, conn.expires.min(now.saturating_add(conn.interval_ns / 2)));
        self.know_remote(handle);
        self.set_state(handle, State::RepRcvd);
        self.arm(handle, Some(think_until));
        self.tell(handle, Event::RepReceived { conn: id, rep: Box::new(rep) });
        Ok(())
    }

    /// The REP was taken before: our answer to it was lost, or is still being thought of.
    fn on_repeated_rep(&mut self, handle: Handle) -> Taken {
        let Some(conn) = self.conns.get(handle) else { return Err(DropReason::UnknownId) };
        match conn.state {
            State::RepRcvd | State::MraRepSent => self.ask_for_time(handle),
            // RTU again; in timewait, what the peer has to be told.
            State::Established | State::Timewait => self.transmit_repeat(handle),
            _ => {}
        }
        Err(DropReason::Duplicate)
    }

    /// Answers the REP: the QP is in RTS. The connection is established; there is no event.
    pub fn send_rtu(&mut self, _now: u64, conn: ConnId, private_data: &[u8]) -> Result<(), CmError> {
        let private_data = area(private_data)?;
        let handle = conn.0;
        let conn = self.conns.get_mut(handle).ok_or(CmError::UnknownId)?;
        if !conn.state.is_replied() {
            return Err(CmError::WrongState(conn.state));
        }
        let rtu = Rtu { local_id: conn.local_id, remote_id: conn.remote_id, private_data };
        conn.repeat = Some(Box::new(CmMad::new(conn.transaction_id, rtu)));
        self.set_state(handle, State::Established);
        self.arm(handle, None);
        self.transmit_repeat(handle);
        Ok(())
    }
}
