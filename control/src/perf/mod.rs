//! The perf session: two ends agree over TCP on what to run, run it on QPs of their own, and check what
//! arrived.
//!
//! `rockhopper-perf` is the client (and, without a host, the server); `rockhopper serve` is a server too. The
//! protocol is ours, not part of any specification; what is measured follows perftest's meaning where the
//! names are the same.
//!
//! | question | file |
//! | --- | --- |
//! | what can be measured | `op.rs` |
//! | what can be asked for, and what is refused | `params.rs` |
//! | which bytes a message has, and whether they arrived | `pattern.rs` |
//! | where messages lie in memory | `layout.rs` |
//! | who sends, who receives, and how fast | `sender.rs`, `receiver.rs`, driven by `bandwidth.rs` or `latency.rs` |
//! | what peers do to our memory | `target.rs` |
//! | what the two ends say to each other | `protocol.rs`, `link.rs`; in which order `client.rs`, `server.rs` |
//! | what is different with a Linux program at the other end | `peer/` |
//! | what came of it | `outcome.rs` |
//! | how many connections a second are made, used and closed | `connect.rs`: a test of its own |
//!
//! A run that shall be stopped or watched by another thread shares a [`Shared`] with it.

mod atomics;
mod bandwidth;
mod client;
mod connect;
mod drive;
mod error;
mod latency;
mod layout;
mod link;
mod op;
mod outcome;
mod params;
mod pattern;
mod peer;
mod poster;
mod protocol;
mod receiver;
mod sender;
mod server;
mod session;
mod side;
mod target;
mod watch;

pub use client::{Client, ClientOptions};
pub use connect::{ConnectPlan, Tenth, connect_rounds};
pub use error::RunError;
pub(crate) use latency::histogram;
pub use link::{Link, LinkError};
pub use op::{Measure, Op, Transport, UnknownOp, Verb};
pub use outcome::{EndReport, Outcome};
pub use params::{MAX_QPS, MAX_SIZE, ParamError, Params, Until};
pub use peer::{CmWay, Hold, PEER_PORT, PeerOptions, PeerProgram, Piece, run_with_peer};
pub(crate) use peer::{PERFTEST_CM_BYTES, PERFTEST_VERSION, Record};
pub use protocol::{DEFAULT_PORT, Faults, Received, Sent};
pub use server::{ServerOptions, serve};
pub use watch::Shared;

/// The version of the DPDK in use.
pub fn dpdk_version() -> String {
    dpdk::eal::version()
}
