//! IDs that their application gives up, in whatever state: what the peer has to be told happens in the background.

use crate::slab::Handle;
use crate::{Cm, ConnId, State};
use wire::mad::{Area, RejectReason};

impl Cm {
    /// Gives a connection up. Nothing is reported of it any more but [`Event::TimewaitExit`](crate::Event::TimewaitExit), when
    /// its QPN may be used again. Does nothing to a connection that is gone already.
    pub fn destroy(&mut self, now: u64, conn: ConnId) {
        self.forget_events(conn);
        let handle = conn.0;
        let Some(conn) = self.conns.get_mut(handle) else { return };
        conn.silent = true;
        match conn.state {
            // rocev2 facts, CM 7: the peer may have an ID that we do not know yet.
            State::ReqSent | State::MraReqRcvd => self.abandon(now, handle, RejectReason::TIMEOUT),
            State::ReqRcvd
            | State::MraReqSent
            | State::RepRcvd
            | State::MraRepSent
            | State::RepSent
            | State::MraRepRcvd => self.abandon(now, handle, RejectReason::CONSUMER_DEFINED),
            State::Established => self.begin_dreq(now, handle, Area::EMPTY),
            State::DreqSent | State::Timewait => {}
        }
    }

    /// Refuses what is under way, for this reason, and goes to timewait.
    pub(crate) fn abandon(&mut self, now: u64, handle: Handle, reason: RejectReason) {
        let Some(conn) = self.conns.get(handle) else { return };
        let mad = match reason {
            RejectReason::TIMEOUT => self.timeout_rej(conn),
            other => conn.rej(conn.rejects(), other, &[]),
        };
        let path = conn.path;
        self.transmit(path, &mad);
        self.enter_timewait(now, handle, Some(mad));
    }
}
