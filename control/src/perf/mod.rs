//! The perf session: two ends agree over TCP on what to run, run it on QPs of their own, and check what arrived.
//!
//! `rockhopper-perf` is the client (and, without a host, the server); `rockhopper serve` is a server too. The protocol
//! is ours, not part of any specification; what is measured follows perftest's meaning where the names are the same.
//!
//! | question | file |
//! | --- | --- |
//! | what can be measured | `op.rs` |
//! | what can be asked for, and what is refused | `params.rs` |
//! | which bytes a message has, and whether they arrived | `pattern.rs` |
//! | where messages lie in memory | `layout.rs` |
//! | what the two ends say to each other | `protocol.rs`, `link.rs` |

mod layout;
mod link;
mod op;
mod params;
mod pattern;
mod protocol;

pub use link::{Link, LinkError};
pub use op::{Measure, Op, Transport, UnknownOp, Verb};
pub use params::{MAX_QPS, MAX_SIZE, ParamError, Params, Until};
pub use protocol::DEFAULT_PORT;
