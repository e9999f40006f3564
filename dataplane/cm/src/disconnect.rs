//! The end of an established connection: DREQ and DREP (rocev2 facts, CM 11).

use crate::build::area;
use crate::receive::Taken;
use crate::slab::Handle;
use crate::{Cm, CmError, ConnId, DisconnectCause, DropReason, Event, Path, State};
use wire::mad::{Area, CmMad, Drep, Dreq};

impl Cm {
    /// Ends a connection. [`Event::Disconnected`] follows within the patience of its timing: see [`Cm::set_timing`].
    pub fn send_dreq(&mut self, now: u64, conn: ConnId, private_data: &[u8]) -> Result<(), CmError> {
        let private_data = area(private_data)?;
        let state = self.state(conn)?;
        if state != State::Established && !state.is_replying() {
            return Err(CmError::WrongState(state));
        }
        self.begin_dreq(now, conn.0, private_data);
        Ok(())
    }

    pub(crate) fn begin_dreq(&mut self, now: u64, handle: Handle, private_data: Area<220>) {
        let transaction_id = self.random.next();
        let Some(conn) = self.conns.get_mut(handle) else { return };
        let timing = conn.timing;
        conn.repeat = Some(Box::new(conn.dreq(transaction_id, private_data)));
        (conn.interval_ns, conn.tries_left) = (timing.interval_ns, timing.tries.saturating_sub(1));
        self.set_state(handle, State::DreqSent);
        self.arm(handle, Some(now.saturating_add(timing.interval_ns)));
        self.transmit_repeat(handle);
    }

    pub(crate) fn on_dreq(&mut self, now: u64, path: &Path, tid: u64, dreq: Dreq) -> Taken {
        let drep = Drep { local_id: dreq.remote_id, remote_id: dreq.local_id, private_data: Area::EMPTY };
        let drep = CmMad::new(tid, drep);
        let handle = match self.find(path, dreq.local_id, dreq.remote_id) {
            Ok(handle) => handle,
            Err(reason) => {
                // rocev2 facts, CM 14.6: who asks for the end of what we know nothing of gets it.
                self.transmit(*path, &drep);
                return Err(reason);
            }
        };
        let Some(conn) = self.conns.get(handle) else { return Err(DropReason::UnknownId) };
        // rocev2 facts, CM 14.7.
        if conn.local_qpn != Some(dreq.remote_qpn) {
            return Err(DropReason::WrongQpn);
        }
        let id = conn.id;
        match conn.state {
            State::Timewait => {
                self.transmit(*path, &drep);
                Err(DropReason::Duplicate)
            }
            State::Established
            | State::DreqSent
            | State::RepSent
            | State::MraRepRcvd
            | State::RepRcvd
            | State::MraRepSent => {
                self.transmit(*path, &drep);
                let cause = DisconnectCause::Peer(Box::new(dreq.private_data));
                self.tell(handle, Event::Disconnected { conn: id, cause });
                self.enter_timewait(now, handle, None);
                Ok(())
            }
            State::ReqSent | State::MraReqRcvd | State::ReqRcvd | State::MraReqSent => {
                Err(DropReason::Unexpected)
            }
        }
    }

    pub(crate) fn on_drep(&mut self, now: u64, path: &Path, drep: Drep) -> Taken {
        let handle = self.find(path, drep.local_id, drep.remote_id)?;
        match self.conns.get(handle) {
            Some(conn) if conn.state == State::DreqSent => {
                let cause = DisconnectCause::Answered(Box::new(drep.private_data));
                self.tell(handle, Event::Disconnected { conn: ConnId(handle), cause });
                self.enter_timewait(now, handle, None);
                Ok(())
            }
            Some(conn) if conn.state == State::Timewait => Err(DropReason::Duplicate),
            _ => Err(DropReason::Unexpected),
        }
    }
}
