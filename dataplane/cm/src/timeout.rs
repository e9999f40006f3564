//! Deadlines that pass: again, or enough.

use crate::slab::Handle;
use crate::{Cm, DisconnectCause, Event, State};
use wire::mad::Answered;

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
                self.give_up(now, handle, Event::Expired { conn: id });
            }
            _ if conn.tries_left > 0 => self.again(now, handle),
            State::ReqSent | State::MraReqRcvd => {
                self.give_up(now, handle, Event::Unreachable { conn: id, message: Answered::Req });
            }
            State::RepSent | State::MraRepRcvd => {
                self.give_up(now, handle, Event::Unreachable { conn: id, message: Answered::Rep });
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
    fn give_up(&mut self, now: u64, handle: Handle, event: Event) {
        let Some(conn) = self.conns.get(handle) else { return };
        let (path, mad) = (conn.path, self.timeout_rej(conn));
        self.transmit(path, &mad);
        self.tell(handle, event);
        self.enter_timewait(now, handle, Some(mad));
    }
}
