//! Deadlines that pass: again, or enough.

use crate::slab::Handle;
use crate::{Cm, DisconnectCause, Event, State};
use wire::mad::{Answered, RejectReason};

impl Cm {
    pub(crate) fn on_conn_timeout(&mut self, now: u64, handle: Handle) {
        let Some(conn) = self.conns.get_mut(handle) else { return };
        // It was taken out of the timers already.
        conn.deadline = None;
        let (id, state, expired) = (conn.id, conn.state, now >= conn.expires);
        match state {
            State::Timewait => self.finish(handle),
            State::Established => {}
            State::ReqRcvd | State::MraReqSent | State::RepRcvd | State::MraRepSent if !expired => {
                self.ask_for_time(handle);
            }
            State::ReqRcvd | State::MraReqSent | State::RepRcvd | State::MraRepSent => {
                // The peer knows us by its own ID only, which a timeout's REJ does not name to Linux.
                self.give_up(now, handle, RejectReason::CONSUMER_DEFINED, Event::Expired { conn: id });
            }
            _ if conn.tries_left > 0 => self.again(now, handle),
            State::ReqSent | State::MraReqRcvd => {
                let event = Event::Unreachable { conn: id, message: Answered::Req };
                self.give_up(now, handle, RejectReason::TIMEOUT, event);
            }
            State::RepSent | State::MraRepRcvd => {
                let event = Event::Unreachable { conn: id, message: Answered::Rep };
                self.give_up(now, handle, RejectReason::TIMEOUT, event);
            }
            State::DreqSent => {
                self.tell(handle, Event::Disconnected { conn: id, cause: DisconnectCause::Unanswered });
                self.enter_timewait(now, handle, None);
            }
        }
    }

    fn again(&mut self, now: u64, handle: Handle) {
        let Some(conn) = self.conns.get_mut(handle) else { return };
        conn.tries_left -= 1;
        let deadline = now.saturating_add(conn.interval_ns);
        // What an MRA has granted is used up.
        let state = match conn.state {
            State::MraReqRcvd => State::ReqSent,
            State::MraRepRcvd => State::RepSent,
            other => other,
        };
        self.counters.retries += 1;
        self.set_state(handle, state);
        self.arm(handle, Some(deadline));
        self.transmit_repeat(handle);
    }

    /// The peer is told once now, and again whenever it goes on.
    fn give_up(&mut self, now: u64, handle: Handle, reason: RejectReason, event: Event) {
        self.tell(handle, event);
        self.abandon(now, handle, reason);
    }
}
