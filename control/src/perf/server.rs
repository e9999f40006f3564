//! The side that does what clients ask for, one client at a time per line.

use super::Op;
use super::drive::{Drive, thread_caches};
use super::error::RunError;
use super::layout::Layout;
use super::link::{Link, LinkError};
use super::outcome::{EndReport, Outcome};
use super::params::Params;
use super::protocol::{Message, VERSION};
use super::session::{Run, SETUP, gid_towards, hear, hello};
use super::side::Side;
use super::watch::Shared;
use crate::verbs::Device;
use std::net::IpAddr;
use std::time::Duration;

/// How long a client may think between two runs.
const BETWEEN_RUNS: Duration = Duration::from_secs(60);

/// How a server uses its port.
#[derive(Clone, Debug, Default)]
pub struct ServerOptions {
    /// Use the GID with this index; by default the first of the client's family.
    pub gid_index: Option<usize>,
    /// Serve only this test; by default every one.
    pub only: Option<Op>,
}

/// Serves one client until it says goodbye. `ended` is told of each run.
pub fn serve(
    link: Link,
    device: &Device,
    options: &ServerOptions,
    shared: &Shared,
    mut ended: impl FnMut(&Outcome),
) -> Result<(), RunError> {
    let _caches = thread_caches(device);
    let mut session = Session { link, device, options, shared };
    session.talk(&mut ended).inspect_err(|why| {
        if !matches!(why, RunError::Peer(_) | RunError::Link(_)) {
            // Best effort: the peer would find out by itself.
            let _ = session.link.send(&Message::Abort { reason: why.to_string() });
        }
    })
}

struct Session<'a> {
    link: Link,
    device: &'a Device,
    options: &'a ServerOptions,
    shared: &'a Shared,
}

impl Session<'_> {
    fn talk(&mut self, ended: &mut impl FnMut(&Outcome)) -> Result<(), RunError> {
        match self.hear(SETUP)? {
            Message::Hello { version: VERSION, .. } => self.link.send(&hello())?,
            Message::Hello { version, .. } => {
                // The client learns our version and says what to do.
                self.link.send(&hello())?;
                return Err(RunError::Version(version));
            }
            other => return Err(RunError::unexpected("connecting", &other)),
        }
        loop {
            match self.hear(BETWEEN_RUNS) {
                Ok(Message::Run { params, gid }) => {
                    if let Some(outcome) = self.run(params, gid)? {
                        ended(&outcome);
                    }
                }
                Ok(Message::Bye) | Err(RunError::Link(LinkError::Closed)) => return Ok(()),
                Ok(other) => return Err(RunError::unexpected("a run", &other)),
                Err(why) => return Err(why),
            }
        }
    }

    /// Does a run, or refuses it (`None`).
    fn run(&mut self, mut params: Params, gid: IpAddr) -> Result<Option<Outcome>, RunError> {
        params.mtu = params.mtu.min(self.device.path_mtu().bytes());
        let side = match self.prepare(&params, gid) {
            Ok(side) => side,
            Err(why) => {
                self.link.send(&Message::Refuse { reason: why.to_string() })?;
                return Ok(None);
            }
        };
        self.link.send(&Message::Offer { mtu: params.mtu, end: side.end() })?;
        let theirs = match self.hear(SETUP)? {
            Message::Connect { end } => end,
            other => return Err(RunError::unexpected("an offer", &other)),
        };
        let peers = side.connect(&theirs)?;
        let run = Run { params: &params, side: &side, peers, is_client: false, tamper: None };
        let receiver = run.receiver()?;
        let mut drive = Drive::new(self.device, self.shared);
        let ran = run.execute(receiver, &mut self.link, &mut drive, self.shared)?;
        let server = EndReport { sent: ran.sent, received: ran.received, counters: side.counters() };
        self.link.send(&Message::Result {
            sent: server.sent.clone(),
            received: server.received.clone(),
            counters: server.counters.clone(),
        })?;
        let client = EndReport { sent: ran.theirs, ..EndReport::default() };
        let window = Layout::of(&params).window;
        let interrupted = self.shared.is_stopped();
        Ok(Some(Outcome { params, window, client, server, latency: None, interrupted }))
    }

    fn prepare(&self, params: &Params, gid: IpAddr) -> Result<Side, RunError> {
        params.check()?;
        if let Some(only) = self.options.only.filter(|&only| only != params.op) {
            return Err(RunError::Only { only, asked: params.op });
        }
        let index = gid_towards(self.device, self.options.gid_index, gid)?;
        Side::new(self.device, params, index, true)
    }

    fn hear(&mut self, timeout: Duration) -> Result<Message, RunError> {
        hear(&mut self.link, timeout, &mut Drive::new(self.device, self.shared))
    }
}
