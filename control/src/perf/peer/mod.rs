//! The other end is a Linux program: perftest's `ib_*_bw` and `ib_*_lat`, or libibverbs' `ibv_*_pingpong`.
//!
//! Each has a TCP exchange of its own for QP numbers, PSNs, keys and addresses, which is spoken here, as client and as server; perftest
//! can have it over a connection of rdma_cm, which then connects the QPs, too (`-R` there). Its
//! form was observed on the wire between two Linux programs (perftest 4.5, libibverbs 44); it is in no specification.
//!
//! | question | file |
//! | --- | --- |
//! | what is said on the TCP line, in which order | `perftest.rs`, `pingpong.rs` |
//! | how a record of a QP is written | `record.rs` |
//! | memory, QPs and how they are connected | `ends.rs` |
//! | who sends, who receives | `stream.rs` (bandwidth), `turns.rs` (latency and ping-pong) |
//! | which bytes arrived, and which the peer has to have | `content.rs` |
//!
//! What the peer's memory holds is seen only on its machine: [`Piece`] tells what has to be where, and [`PeerOptions::hold`] keeps the
//! peer from ending until somebody has looked.

mod content;
mod ends;
mod perftest;
mod pingpong;
mod record;
mod stream;
mod turns;

pub use content::Piece;
pub(crate) use perftest::VERSION as PERFTEST_VERSION;
pub(crate) use record::{PERFTEST_CM_BYTES, Record};

use super::drive::{Drive, thread_caches};
use super::error::RunError;
use super::link::Link;
use super::op::{Measure, Op, Transport, Verb};
use super::outcome::{EndReport, Outcome};
use super::params::Params;
use super::protocol::{Received, Sent};
use super::session::choose_gid;
use super::watch::Shared;
use crate::cm::{CmAddr, ConnParam, PortSpace};
use crate::endpoint::Endpoint;
use crate::programs::{Dial, Line};
use crate::verbs::Device;
use ends::Ends;
use hdrhistogram::Histogram;
use std::cell::Cell;
use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;
use std::time::Duration;

/// TCP port of all of these programs unless told otherwise.
pub const PEER_PORT: u16 = 18515;

/// How long the peer may take for its part of the exchange, and for what it does by itself.
const PATIENCE: Duration = Duration::from_secs(120);

/// Whose exchange the peer speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PeerProgram {
    /// `ib_{send,write,read,atomic}_{bw,lat}`.
    Perftest,
    /// `ibv_{rc,uc,ud}_pingpong`, and with several QPs `ibv_srq_pingpong`.
    Pingpong,
}

impl fmt::Display for PeerProgram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            PeerProgram::Perftest => "perftest",
            PeerProgram::Pingpong => "pingpong",
        })
    }
}

impl FromStr for PeerProgram {
    type Err = String;

    fn from_str(text: &str) -> Result<PeerProgram, String> {
        [PeerProgram::Perftest, PeerProgram::Pingpong]
            .into_iter()
            .find(|program| program.to_string() == text)
            .ok_or_else(|| format!("no peer is called {text:?}; there are perftest and pingpong"))
    }
}

/// Looks into the peer's memory, or lets somebody else do it.
pub type Hold<'a> = &'a mut (dyn FnMut(&[Piece]) + 'a);

/// How this end meets the peer.
pub struct PeerOptions<'a> {
    /// Whose exchange to speak.
    pub program: PeerProgram,
    /// The program at the other end was started with our address: it is the client.
    pub is_server: bool,
    /// Use the GID with this index; by default that of the rdma_cm line, or without one the first of the wanted family.
    pub gid_index: Option<usize>,
    /// Use IPv6, unless a GID index says otherwise.
    pub ipv6: bool,
    /// perftest: rdma_cm connects the QPs, and the line is a connection of it. As the client, and for RC.
    pub cm: Option<CmWay<'a>>,
    /// perftest: called when all messages are done and the peer has not been told yet, with what its memory has to hold.
    pub hold: Option<Hold<'a>>,
}

/// The way to a peer by rdma_cm.
pub struct CmWay<'a> {
    pub(crate) dial: Dial<'a>,
    pub(crate) to: CmAddr,
    pub(crate) from: Option<IpAddr>,
    gid_index: Cell<Option<usize>>,
}

impl<'a> CmWay<'a> {
    /// To a service, from an address of the endpoint's or the one that the way begins at. `stop` ends what waits.
    pub fn new(
        endpoint: &'a Endpoint,
        to: CmAddr,
        from: Option<IpAddr>,
        stop: &'a Shared,
    ) -> Result<CmWay<'a>, RunError> {
        Ok(CmWay { dial: Dial::new(endpoint, stop)?, to, from, gid_index: Cell::default() })
    }

    /// A line over a connection to the service.
    pub fn line(&self) -> Result<Link, RunError> {
        let id = self.dial.resolve(PortSpace::Tcp, self.from, &self.to)?;
        let line = Line::new(&id)?;
        self.dial.connect(&id, &ConnParam::default())?;
        self.gid_index.set(id.path().map(|path| path.gid_index));
        Ok(Link::cm(line))
    }

    /// Index of the GID that the last [`line`](Self::line) goes from: the one that leads to the service.
    pub fn gid_index(&self) -> Option<usize> {
        self.gid_index.get()
    }
}

impl PeerProgram {
    /// Whether such a program can do this run: messages are counted, and both ends count alike.
    pub fn check(self, params: &Params) -> Result<(), RunError> {
        params.check_for_peer()?;
        let ping_pong = Op { verb: Verb::Send, measure: Measure::Latency };
        if self == PeerProgram::Pingpong && params.op != ping_pong {
            return Err(RunError::PeerTest(params.op));
        }
        if params.iters().is_none() {
            return Err(RunError::PeerDuration);
        }
        if params.bidirectional || params.imm {
            return Err(RunError::PeerFlag);
        }
        Ok(())
    }
}

/// What this end did.
#[derive(Default)]
struct Did {
    sent: Sent,
    received: Received,
    latency: Option<Histogram<u64>>,
    /// CRCs of the peer's first message on each QP.
    first: Vec<u32>,
}

/// Does one run with a Linux program at the other end of the line.
pub fn run_with_peer(
    link: Link,
    device: &Device,
    params: &Params,
    options: PeerOptions<'_>,
    shared: &Shared,
) -> Result<Outcome, RunError> {
    options.program.check(params)?;
    let _caches = thread_caches(device);
    let by_cm = options.cm.as_ref().and_then(CmWay::gid_index);
    let (gid_index, _) = choose_gid(device, options.gid_index.or(by_cm), options.ipv6)?;
    let mut params = params.clone();
    let most = device.path_mtu().bytes();
    if params.mtu > most {
        return Err(RunError::Mtu { asked: params.mtu, most });
    }
    // Until it turns out that this end can compare something.
    params.verify = false;
    if options.cm.is_some() && (options.is_server || params.transport != Transport::Rc) {
        return Err(RunError::PeerCm);
    }
    let ends = Ends::new(device, &params, &options, gid_index)?;
    let mut run = Run {
        link,
        params: params.clone(),
        is_server: options.is_server,
        ends,
        drive: Drive::new(device, shared),
        shared,
    };
    let did = match options.program {
        PeerProgram::Perftest => run.perftest(options.cm.as_ref(), options.hold)?,
        PeerProgram::Pingpong => run.pingpong()?,
    };
    let fetches = !options.is_server && matches!(params.op.verb, Verb::Read | Verb::Atomic);
    params.verify = fetches || did.received.compared > 0;
    let ours = EndReport { sent: did.sent, received: did.received, counters: run.ends.counters() };
    let window = run.ends.window;
    let theirs = EndReport::default();
    let (client, server) = if options.is_server { (theirs, ours) } else { (ours, theirs) };
    Ok(Outcome { window, client, server, latency: did.latency, interrupted: false, params })
}

/// A run under way.
struct Run<'a> {
    link: Link,
    params: Params,
    is_server: bool,
    ends: Ends,
    drive: Drive<'a>,
    shared: &'a Shared,
}
