//! MRA: an answer that takes longer than announced (rocev2 facts, CM 7 and 10).

use crate::receive::Taken;
use crate::slab::Handle;
use crate::timers::{timeout_code, timeout_ns};
use crate::{Cm, CmError, ConnId, DropReason, Event, Path, State};
use wire::mad::{Answered, CommId, Mra};

impl Cm {
    /// Tells the peer that the application needs up to `service_ns` more to answer a request or a reply; so long it is not
    /// taken as refused. Without this call the peer is told by itself, when half of the time that it gave has passed.
    pub fn send_mra(&mut self, now: u64, conn: ConnId, service_ns: u64) -> Result<(), CmError> {
        let state = self.state(conn)?;
        let handle = conn.0;
        if !state.is_asked() && !state.is_replied() {
            return Err(CmError::WrongState(state));
        }
        if let Some(conn) = self.conns.get_mut(handle) {
            conn.expires = conn.expires.max(now.saturating_add(service_ns));
            let expires = conn.expires;
            self.arm(handle, Some(expires));
        }
        self.transmit_mra(handle, service_ns);
        Ok(())
    }

    /// Asks the peer for all the time that the application has.
    pub(crate) fn ask_for_time(&mut self, handle: Handle) {
        let Some(conn) = self.conns.get(handle) else { return };
        let expires = conn.expires;
        self.arm(handle, Some(expires));
        self.transmit_mra(handle, self.config.think_ns);
    }

    fn transmit_mra(&mut self, handle: Handle, service_ns: u64) {
        let Some(conn) = self.conns.get(handle) else { return };
        let message = conn.rejects();
        let state = if message == Answered::Req { State::MraReqSent } else { State::MraRepSent };
        let (path, mra) = (conn.path, conn.mra(message, timeout_code(service_ns)));
        self.set_state(handle, state);
        self.transmit(path, &mra);
    }

    pub(crate) fn on_mra(&mut self, now: u64, path: &Path, mra: Mra) -> Taken {
        if mra.local_id == CommId(0) {
            return Err(DropReason::NoId);
        }
        let handle = self.find_ours(path, mra.remote_id)?;
        let Some(conn) = self.conns.get_mut(handle) else { return Err(DropReason::UnknownId) };
        if conn.remote_id != CommId(0) && conn.remote_id != mra.local_id {
            return Err(DropReason::UnknownId);
        }
        let state = match (conn.state, mra.message) {
            (State::ReqSent, Answered::Req) => State::MraReqRcvd,
            (State::RepSent, Answered::Rep) => State::MraRepRcvd,
            // As Linux: one MRA for each sending of ours, or a peer could hold us for ever.
            (State::MraReqRcvd, Answered::Req) | (State::MraRepRcvd, Answered::Rep) => {
                return Err(DropReason::Duplicate);
            }
            _ => return Err(DropReason::Unexpected),
        };
        let wait_ns =
            timeout_ns(mra.service_timeout).saturating_add(conn.interval_ns).min(self.config.mra_max_ns);
        self.set_state(handle, state);
        self.arm(handle, Some(now.saturating_add(wait_ns)));
        self.tell(handle, Event::MraReceived { conn: ConnId(handle), message: mra.message, wait_ns });
        Ok(())
    }
}
