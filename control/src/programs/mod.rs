//! Linux' programs over rdma_cm, both roles: what they say to each other once they are connected, servers for them, and
//! [`ping`].
//!
//! None of it is in a specification. The forms were observed on the wire between Linux programs (rdma-core 44, perftest 4.5).
//!
//! | program | service | port | file |
//! | --- | --- | --- | --- |
//! | rping | RC | 7174 | `rping.rs` |
//! | udaddy, mckey | UD | 7174 | `udaddy.rs` |
//! | ucmatose, cmtime | RC | 7471 | `cmatose.rs` |
//! | perftest's `ib_*_bw -R` | RC | 18515 | `perftest.rs` |
//! | `rockhopper-perf --cm` | RC | 18591 | a line of bytes: `line.rs` |

mod cmatose;
mod dial;
mod error;
mod line;
mod perftest;
mod ping;
mod program;
mod rping;
mod services;
#[cfg(test)]
pub(crate) mod testkit;
mod udaddy;
mod visit;
mod wait;

pub use cmatose::Messages;
pub(crate) use dial::Dial;
pub use dial::destination;
pub use error::ProgramError;
pub(crate) use line::Line;
pub use ping::{PingOptions, PingOutcome, Pinged, ping};
pub use program::Program;
pub use services::{Hears, Served, ServiceOptions, Services};
pub use visit::{VisitOptions, VisitOutcome, visit};
