//! The servers of all programs, on every port of an endpoint, in one thread.
//!
//! Requests of all connections of a port complete to one queue; their numbers begin with the connection's, which is never used again.
//! What peers can cause is bounded: connections, receives, memory for each. Whoever says what its program does not say, or nothing
//! for minutes, is disconnected.

mod conn;
mod perftest_session;
mod place;

use super::program::Program;
use super::{Messages, ProgramError};
use crate::cm::{CmEvent, CmEventKind, CmId, ConnParam, EventChannel};
use crate::endpoint::Endpoint;
use crate::perf::{Link, Shared};
use crate::verbs::Device;
use conn::{Conn, Talk};
use engine::Cqe;
use place::Place;
use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::{Duration, Instant};

/// Connections at a time, of all programs. More are rejected.
const MAX_CONNECTIONS: usize = 512;
/// Connections of a listener that may wait for an answer.
const BACKLOG: usize = 128;
/// How long a connection may say nothing.
const IDLE: Duration = Duration::from_secs(300);
/// How often idle connections are looked for.
const SWEEP: Duration = Duration::from_secs(5);
/// How long to wait for the next event when there are connections that may complete something, and when there are none.
const SHORT: Duration = Duration::from_micros(500);
const LONG: Duration = Duration::from_millis(20);

/// What to serve.
#[derive(Clone, Debug)]
pub struct ServiceOptions {
    /// The programs and their ports.
    pub programs: Vec<(Program, u16)>,
    /// What ucmatose's clients expect.
    pub messages: Messages,
}

impl Default for ServiceOptions {
    /// All, where they are looked for.
    fn default() -> Self {
        let programs = Program::ALL.map(|program| (program, program.port())).to_vec();
        ServiceOptions { programs, messages: Messages::default() }
    }
}

/// A connection that has come to its end.
#[derive(Clone, Debug)]
pub struct Served {
    /// Whose.
    pub program: Program,
    /// The port's name.
    pub port: String,
    /// The client.
    pub peer: SocketAddr,
    /// Rounds of rping; messages of the others.
    pub count: u64,
    /// Why it ended other than by the program's own end.
    pub broken: Option<String>,
}

/// Who hears of what is served. [`session`](Self::session) is given the line to each client of `rockhopper-perf`.
pub trait Hears {
    /// A connection has come to its end.
    fn served(&self, served: &Served);
    /// A client of `rockhopper-perf` is there. It must not be served on this thread.
    fn session(&self, link: Link, device: Device, peer: SocketAddr);
}

/// The servers.
pub struct Services {
    channel: EventChannel,
    listeners: Vec<(CmId, Program)>,
    options: ServiceOptions,
    places: Vec<Place>,
    conns: HashMap<u64, Conn>,
    next_tag: u64,
}

impl Services {
    /// Listens on all ports of an endpoint.
    pub fn open(endpoint: &Endpoint, options: &ServiceOptions) -> Result<Services, ProgramError> {
        let channel = EventChannel::new()?;
        let mut listeners = Vec::new();
        for &(program, port) in &options.programs {
            let id = endpoint.create_id(&channel, program.space());
            id.bind(SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), port))?;
            id.listen(BACKLOG)?;
            listeners.push((id, program));
        }
        let options = options.clone();
        Ok(Services { channel, listeners, options, places: Vec::new(), conns: HashMap::new(), next_tag: 0 })
    }

    /// Serves until `stop`.
    pub fn run(&mut self, stop: &Shared, hears: &impl Hears) {
        let mut sweep = Instant::now() + SWEEP;
        while !stop.is_stopped() {
            while let Some(event) = self.channel.poll() {
                self.on_event(event, hears);
            }
            if self.complete(hears) {
                continue;
            }
            let now = Instant::now();
            if now >= sweep {
                sweep = now + SWEEP;
                self.sweep(now, hears);
            }
            self.wait(hears);
        }
        let tags: Vec<u64> = self.conns.keys().copied().collect();
        tags.into_iter().for_each(|tag| self.end(tag, None, hears));
    }

    /// Takes the completions that are there; false when there were none.
    fn complete(&mut self, hears: &impl Hears) -> bool {
        let mut worked = false;
        for place in 0..self.places.len() {
            while let Some(cqe) = self.places[place].cq.poll_one() {
                worked = true;
                self.on_completion(&cqe, hears);
            }
            worked |= self.places[place].datagrams();
        }
        worked
    }

    fn wait(&mut self, hears: &impl Hears) {
        let is_busy = !self.conns.is_empty() || self.places.iter().any(Place::is_busy);
        match self.places.first() {
            // Completions are waited for where they are likely; events are found soon enough.
            Some(place) if is_busy && self.places.len() == 1 && !place.is_busy() => {
                if let Some(cqe) = place.cq.wait(SHORT) {
                    self.on_completion(&cqe, hears);
                }
            }
            _ => {
                if let Some(event) = self.channel.wait(if is_busy { SHORT } else { LONG }) {
                    self.on_event(event, hears);
                }
            }
        }
    }

    fn on_completion(&mut self, cqe: &Cqe, hears: &impl Hears) {
        let tag = cqe.wr_id >> 8;
        // What is flushed when a connection is gone is nobody's.
        let Some(conn) = self.conns.get_mut(&tag) else { return };
        if conn.is_closing {
            return;
        }
        conn.last = Instant::now();
        let done = match &mut conn.talk {
            Talk::PerftestWords(_) => self.on_word(tag, cqe),
            talk => talk.on_completion(cqe),
        };
        match done {
            Ok(false) => {}
            Ok(true) => self.close(tag),
            // A disconnected peer's receives are flushed: the event that tells of it follows.
            Err(ProgramError::Completion { status: engine::WcStatus::WrFlushErr, .. }) => {}
            Err(why) => self.end(tag, Some(why.to_string()), hears),
        }
    }

    /// Disconnects, and waits for the peer to do so.
    fn close(&mut self, tag: u64) {
        if let Some(conn) = self.conns.get_mut(&tag) {
            conn.is_closing = true;
            // Where the peer was faster there is nothing to do.
            let _ = conn.id.disconnect();
        }
    }

    /// Lets go of a connection.
    fn end(&mut self, tag: u64, broken: Option<String>, hears: &impl Hears) {
        if let Some(conn) = self.conns.remove(&tag) {
            let _ = conn.id.disconnect();
            hears.served(&conn.served(&self.places[conn.place].device, broken));
        }
    }

    fn sweep(&mut self, now: Instant, hears: &impl Hears) {
        let idle: Vec<u64> = self
            .conns
            .iter()
            .filter(|(_, conn)| now.saturating_duration_since(conn.last) > IDLE)
            .map(|(tag, _)| *tag)
            .collect();
        for tag in idle {
            self.end(tag, Some(format!("it said nothing for {IDLE:?}")), hears);
        }
    }

    fn tag_of(&self, id: &CmId) -> Option<u64> {
        self.conns.iter().find(|(_, conn)| conn.id == *id).map(|(tag, _)| *tag)
    }

    fn on_event(&mut self, event: CmEvent, hears: &impl Hears) {
        if let CmEventKind::ConnectRequest { param } = event.kind {
            let listener = event.listen_id.as_ref();
            let found = self.listeners.iter().find(|(id, _)| Some(id) == listener);
            if let Some(&(_, program)) = found {
                // To drop the identifier is to reject.
                let _ = self.on_request(program, event.id, &param);
            }
            return;
        }
        let Some(tag) = self.tag_of(&event.id) else { return };
        match event.kind {
            CmEventKind::Established { .. } => self.on_established(tag, hears),
            CmEventKind::Disconnected => self.end(tag, None, hears),
            CmEventKind::TimewaitExit => {}
            other => self.end(tag, Some(other.to_string()), hears),
        }
    }

    fn on_established(&mut self, tag: u64, hears: &impl Hears) {
        let Some(conn) = self.conns.get_mut(&tag) else { return };
        if let Talk::Perf(line) = &mut conn.talk {
            // From now on the connection is its session's.
            let (line, place, peer) = (line.take(), conn.place, conn.peer);
            self.conns.remove(&tag);
            if let Some(line) = line {
                hears.session(Link::cm(line), self.places[place].device.clone(), peer);
            }
            return;
        }
        match conn.talk.on_established() {
            Ok(false) => {}
            Ok(true) => self.close(tag),
            Err(why) => self.end(tag, Some(why.to_string()), hears),
        }
    }

    /// Accepts a client.
    fn on_request(&mut self, program: Program, id: CmId, param: &ConnParam) -> Result<(), ProgramError> {
        let Some(device) = id.device() else { return Ok(()) };
        let place = self.place(&device)?;
        let peer = id.peer_addr().unwrap_or(SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0));
        if program == Program::Udaddy {
            let qpn = self.places[place].datagram_qp()?;
            id.accept(&ConnParam { qp_num: Some(qpn), ..ConnParam::default() })?;
            return Ok(());
        }
        if self.conns.len() >= MAX_CONNECTIONS {
            return Ok(());
        }
        self.next_tag += 1;
        let tag = self.next_tag;
        let talk = self.talk(program, &id, place, peer, tag)?;
        let accept = ConnParam {
            responder_resources: param.responder_resources,
            initiator_depth: param.initiator_depth,
            ..ConnParam::default()
        };
        id.accept(&accept)?;
        let conn = Conn { id, program, talk, place, peer, last: Instant::now(), is_closing: false };
        self.conns.insert(tag, conn);
        Ok(())
    }

    /// Where a port's connections complete.
    fn place(&mut self, device: &Device) -> Result<usize, ProgramError> {
        if let Some(found) = self.places.iter().position(|place| place.device.name() == device.name()) {
            return Ok(found);
        }
        self.places.push(Place::new(device, MAX_CONNECTIONS)?);
        Ok(self.places.len() - 1)
    }
}
