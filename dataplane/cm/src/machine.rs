//! The tables of a port, and what every role does with them: send, tell, arm, change state, forget.

use crate::conn::Conn;
use crate::index::{Index, Peer};
use crate::listen::Listeners;
use crate::random::Random;
use crate::sidr::Questions;
use crate::slab::{Handle, Slab};
use crate::timers::{Timed, Timers, timeout_ns};
use crate::{
    CmError, Config, ConnId, Counters, Event, Path, QpPlan, RepParams, SidrId, State, Timing, Usage,
};
use std::collections::VecDeque;
use wire::mad::{CmMad, CommId, MAD_LEN, MessageKind};

/// A MAD to send from QP 1 to QP 1, with Q_Key 0x80010000.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transmit {
    /// Where to.
    pub path: Path,
    /// Which message it is.
    pub kind: MessageKind,
    /// Its bytes.
    pub mad: [u8; MAD_LEN],
}

/// Connection management of a port: see the crate's page.
#[derive(Debug)]
pub struct Cm {
    pub(crate) config: Config,
    pub(crate) conns: Slab<Conn>,
    pub(crate) index: Index,
    pub(crate) listeners: Listeners,
    pub(crate) questions: Questions,
    pub(crate) timers: Timers,
    pub(crate) random: Random,
    pub(crate) counters: Counters,
    /// Connections in timewait, by the time that they entered it. Those that left are taken out when they come to the front.
    timewait: VecDeque<Handle>,
    in_timewait: usize,
    transmits: VecDeque<Transmit>,
    events: VecDeque<Event>,
}

impl Cm {
    /// Nothing yet: no listener, no connection.
    pub fn new(config: Config) -> Cm {
        Cm {
            config,
            conns: Slab::default(),
            index: Index::default(),
            listeners: Listeners::default(),
            questions: Questions::default(),
            timers: Timers::default(),
            random: Random::new(config.seed),
            counters: Counters::default(),
            timewait: VecDeque::new(),
            in_timewait: 0,
            transmits: VecDeque::new(),
            events: VecDeque::new(),
        }
    }

    /// The next MAD to send.
    pub fn poll_transmit(&mut self) -> Option<Transmit> {
        self.transmits.pop_front()
    }

    /// The next thing that the application should know.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// When [`Cm::on_timeout`] has something to do; `None` while nothing waits.
    pub fn next_timeout(&self) -> Option<u64> {
        self.timers.next()
    }

    /// Does what is due at `now`.
    pub fn on_timeout(&mut self, now: u64) {
        while let Some(timed) = self.timers.take_due(now) {
            match timed {
                Timed::Conn(handle) => self.on_conn_timeout(now, handle),
                Timed::Sidr(handle) => self.on_question_timeout(now, handle),
            }
        }
    }

    /// Numbers since creation.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// What is there now.
    pub fn usage(&self) -> Usage {
        Usage {
            connections: self.conns.len() - self.in_timewait,
            timewait: self.in_timewait,
            half_open: self.index.half_open_in_all(),
            sidr: self.questions.len(),
            listeners: self.listeners.len(),
            keys: self.index.keys(),
        }
    }

    /// Where a connection stands.
    pub fn state(&self, conn: ConnId) -> Result<State, CmError> {
        self.conns.get(conn.0).map(|conn| conn.state).ok_or(CmError::UnknownId)
    }

    /// How messages of a connection that begin from now on are repeated. Until then it is as its request said, or the
    /// configuration.
    pub fn set_timing(&mut self, conn: ConnId, timing: Timing) -> Result<(), CmError> {
        self.conns.get_mut(conn.0).ok_or(CmError::UnknownId)?.timing = timing;
        Ok(())
    }

    /// Attributes for the QP of the active side, once the REP is here.
    pub fn plan(&self, conn: ConnId) -> Result<QpPlan, CmError> {
        let conn = self.conns.get(conn.0).ok_or(CmError::UnknownId)?;
        let both = conn.req.as_ref().zip(conn.rep.as_ref());
        both.and_then(|(req, rep)| QpPlan::active(&conn.path, req, rep, conn.ack_timeout))
            .ok_or(CmError::WrongState(conn.state))
    }

    /// Attributes for the QP of the passive side, if the request is accepted so. The QP is in RTS before the REP leaves.
    pub fn plan_accept(&self, conn: ConnId, params: &RepParams) -> Result<QpPlan, CmError> {
        let conn = self.conns.get(conn.0).ok_or(CmError::UnknownId)?;
        let req = conn.req.as_ref().filter(|_| conn.state.is_half_open());
        req.and_then(|req| QpPlan::passive(&conn.path, req, params)).ok_or(CmError::WrongState(conn.state))
    }

    pub(crate) fn transmit(&mut self, path: Path, mad: &CmMad) {
        self.counters.count_sent(&mad.message);
        self.transmits.push_back(Transmit { path, kind: mad.message.kind(), mad: mad.to_bytes() });
    }

    /// Sends what the connection keeps for repeating.
    pub(crate) fn transmit_repeat(&mut self, handle: Handle) {
        if let Some((path, Some(mad))) = self.conns.get(handle).map(|conn| (conn.path, conn.repeat.clone())) {
            self.transmit(path, &mad);
        }
    }

    /// Tells the application, unless it does not want to know of this connection any more.
    pub(crate) fn tell(&mut self, handle: Handle, event: Event) {
        if self.conns.get(handle).is_some_and(|conn| !conn.silent) {
            self.events.push_back(event);
        }
    }

    /// Tells the application, whoever it is about.
    pub(crate) fn report(&mut self, event: Event) {
        self.events.push_back(event);
    }

    /// Takes back what was not polled yet.
    pub(crate) fn forget_sidr_events(&mut self, sidr: SidrId) {
        self.events.retain(|event| event.sidr() != Some(sidr));
    }

    /// Takes back what was not polled yet, but for the end of timewait.
    pub(crate) fn forget_events(&mut self, conn: ConnId) {
        self.events.retain(|event| event.conn() != Some(conn) || matches!(event, Event::TimewaitExit { .. }));
    }

    pub(crate) fn arm(&mut self, handle: Handle, deadline: Option<u64>) {
        if let Some(conn) = self.conns.get_mut(handle) {
            self.timers.change(Timed::Conn(handle), conn.deadline, deadline);
            conn.deadline = deadline;
        }
    }

    /// An ID that nobody has.
    pub(crate) fn fresh_comm_id(&mut self) -> CommId {
        loop {
            let id = CommId(self.random.next_id());
            if !self.index.by_local.contains_key(&id) {
                return id;
            }
        }
    }

    /// Adds a connection that `make` makes of its handle, when there is room.
    pub(crate) fn insert(&mut self, make: impl FnOnce(ConnId) -> Conn) -> Result<Handle, CmError> {
        if self.usage().connections >= self.config.limits.connections {
            return Err(CmError::Full);
        }
        let handle = self.conns.insert_with(|handle| make(ConnId(handle)));
        let conn = &self.conns.get(handle).expect("it was just inserted");
        self.index.by_local.insert(conn.local_id, handle);
        if conn.state.is_half_open() {
            self.index.open_half(conn.path.remote);
        }
        Ok(handle)
    }

    /// The peer has told its ID and its QP: from now on it can be found by them.
    pub(crate) fn know_remote(&mut self, handle: Handle) {
        if let Some(conn) = self.conns.get(handle) {
            let peer = Peer::new(&conn.path, conn.remote_ca_guid);
            self.index.by_remote.insert((peer, conn.remote_id), handle);
            self.index.by_qpn.insert((peer, conn.remote_qpn), handle);
        }
    }

    /// Changes the state, and what is counted by state.
    pub(crate) fn set_state(&mut self, handle: Handle, state: State) {
        let Some(conn) = self.conns.get_mut(handle) else { return };
        let old = std::mem::replace(&mut conn.state, state);
        let answered = old.is_asked() && !state.is_asked();
        if let Some(listener) = conn.listener.take_if(|_| answered) {
            self.listeners.answered(listener);
        }
        if old.is_half_open() && !state.is_half_open() {
            self.index.close_half(conn.path.remote);
        }
        if state == State::Timewait {
            let key = (Peer::new(&conn.path, conn.remote_ca_guid), conn.remote_qpn);
            Index::forget(&mut self.index.by_qpn, &key, handle);
            (conn.req, conn.rep) = (None, None);
            self.in_timewait += 1;
        }
    }

    /// The connection is over. For the time of its ACK timeout its numbers rest, and a peer that goes on is told `farewell`
    /// (rocev2 facts, CM 10 and 14.8).
    pub(crate) fn enter_timewait(&mut self, now: u64, handle: Handle, farewell: Option<CmMad>) {
        let Some(conn) = self.conns.get_mut(handle) else { return };
        conn.repeat = farewell.map(Box::new);
        let (shortest, longest) = self.config.timewait_ns;
        let wait_ns = timeout_ns(conn.ack_timeout).clamp(shortest, longest.max(shortest));
        self.set_state(handle, State::Timewait);
        self.arm(handle, Some(now.saturating_add(wait_ns)));
        self.timewait.push_back(handle);
        self.cut_timewait();
    }

    fn cut_timewait(&mut self) {
        while let Some(&oldest) = self.timewait.front() {
            let there = self.conns.get(oldest).is_some();
            if there && self.in_timewait <= self.config.limits.timewait {
                return;
            }
            self.timewait.pop_front();
            if there {
                self.counters.timewait_cut += 1;
                self.finish(oldest);
            }
        }
    }

    /// Timewait is over: nothing is left.
    pub(crate) fn finish(&mut self, handle: Handle) {
        self.arm(handle, None);
        let Some(conn) = self.conns.remove(handle) else { return };
        self.in_timewait -= 1;
        let key = (Peer::new(&conn.path, conn.remote_ca_guid), conn.remote_id);
        Index::forget(&mut self.index.by_local, &conn.local_id, handle);
        Index::forget(&mut self.index.by_remote, &key, handle);
        self.events.push_back(Event::TimewaitExit { conn: conn.id, qpn: conn.local_qpn });
    }
}
