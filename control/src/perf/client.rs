//! The side that asks for runs.

use super::drive::{Drive, thread_caches};
use super::error::RunError;
use super::layout::Layout;
use super::link::Link;
use super::outcome::{EndReport, Outcome};
use super::params::Params;
use super::protocol::{Message, VERSION};
use super::session::{Run, SETUP, choose_gid, hear, hello};
use super::side::Side;
use super::watch::Shared;
use crate::verbs::Device;
use dpdk::eal::RegisteredThread;
use std::net::IpAddr;
use std::sync::Arc;

/// How a client uses its port.
#[derive(Clone, Debug, Default)]
pub struct ClientOptions {
    /// Use the GID with this index; by default the first of the wanted family.
    pub gid_index: Option<usize>,
    /// Use IPv6, unless a GID index says otherwise.
    pub ipv6: bool,
    /// The path MTU asked for is the one to use: do not go down to what both ports carry.
    pub exact_mtu: bool,
    /// Spoil this message (of the first QP), so that the check of a verified run must fail: to see that it
    /// can.
    pub tamper: Option<u64>,
}

/// A client of a perf server: one line to it, any number of runs, all on the thread that made it.
pub struct Client {
    link: Link,
    device: Device,
    shared: Arc<Shared>,
    options: ClientOptions,
    gid_index: usize,
    gid: IpAddr,
    /// Buffers of its own for the thread that drives the workers.
    _caches: Option<RegisteredThread>,
}

impl Client {
    /// Greets the server at the other end of the line. `shared` is what other threads stop and watch the runs
    /// by.
    pub fn new(
        link: Link,
        device: &Device,
        options: ClientOptions,
        shared: &Arc<Shared>,
    ) -> Result<Client, RunError> {
        let (gid_index, gid) = choose_gid(device, options.gid_index, options.ipv6)?;
        let (device, shared) = (device.clone(), Arc::clone(shared));
        let _caches = thread_caches(&device);
        let mut client = Client { link, device, shared, options, gid_index, gid, _caches };
        client.link.send(&hello())?;
        match client.hear()? {
            Message::Hello { version: VERSION, .. } => Ok(client),
            Message::Hello { version, .. } => Err(RunError::Version(version)),
            other => Err(RunError::unexpected("hello", &other)),
        }
    }

    /// Does one run. When it cannot be done the server is told, and the line is of no more use unless the
    /// server only [refused](RunError::Refused).
    pub fn run(&mut self, params: &Params) -> Result<Outcome, RunError> {
        params.check()?;
        self.try_run(params).inspect_err(|why| {
            if !matches!(why, RunError::Refused(_) | RunError::Peer(_) | RunError::Link(_)) {
                // Best effort: the peer would find out by itself.
                let _ = self.link.send(&Message::Abort { reason: why.to_string() });
            }
        })
    }

    fn try_run(&mut self, asked: &Params) -> Result<Outcome, RunError> {
        let mut params = asked.clone();
        params.mtu = self.carried(asked.mtu, self.device.path_mtu().bytes())?;
        self.link.send(&Message::Run { params: params.clone(), gid: self.gid })?;
        let (mtu, theirs) = match self.hear()? {
            Message::Offer { mtu, end } => (mtu, end),
            other => return Err(RunError::unexpected("run", &other)),
        };
        params.mtu = self.carried(params.mtu, mtu)?;
        params.check()?;
        let side = Side::new(&self.device, &params, self.gid_index, false)?;
        let peers = side.connect(&theirs)?;
        let run = Run { params: &params, side: &side, peers, is_client: true, tamper: self.options.tamper };
        let receiver = run.receiver()?;
        self.link.send(&Message::Connect { end: side.end() })?;
        match self.hear()? {
            Message::Ready => {}
            other => return Err(RunError::unexpected("connect", &other)),
        }
        let mut drive = Drive::new(&self.device, &self.shared);
        let ran = run.execute(receiver, &mut self.link, &mut drive, &self.shared)?;
        let window = Layout::of(&params).window;
        let client = EndReport { sent: ran.sent, received: ran.received, counters: side.counters() };
        let server =
            EndReport { sent: ran.peer.sent, received: ran.peer.received, counters: ran.peer.counters };
        let interrupted = self.shared.is_stopped();
        Ok(Outcome { params, window, client, server, latency: ran.latency, interrupted })
    }

    /// Says goodbye.
    pub fn finish(mut self) {
        // The server notices a closed line as well.
        let _ = self.link.send(&Message::Bye);
    }

    /// The path MTU to use where `most` is what a port carries.
    fn carried(&self, asked: u32, most: u32) -> Result<u32, RunError> {
        if asked > most && self.options.exact_mtu {
            return Err(RunError::Mtu { asked, most });
        }
        Ok(asked.min(most))
    }

    fn hear(&mut self) -> Result<Message, RunError> {
        hear(&mut self.link, SETUP, &mut Drive::new(&self.device, &self.shared))
    }
}
