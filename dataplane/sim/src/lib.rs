//! A network in one process: real engines exchange real frames over links that lose, double, delay, swap and corrupt
//! them, in virtual time, all from one seed.
//!
//! Everything between a posted work request and its completion is the code that runs in production: engine and wire, with
//! frames built, parsed and checked by their iCRC. What is simulated is memory (vectors), the clock (a number) and the
//! link ([`Faults`]). The same seed gives the same run, frame by frame.
//!
//! | to … | use |
//! | --- | --- |
//! | set up endpoints, QPs and regions, and let time pass | [`World`] |
//! | say what links do to frames | [`Faults`] |
//! | send every kind of operation and check every byte and completion | [`Traffic`] |
//! | make a whole world of a seed, play it and verify everything | [`Plan`], [`play`] |
//! | play many seeds on several threads | [`Campaign`] |
//! | cut a failing plan down, and read what happened | [`shrink`], [`print_trace`] |
//! | run a test for many seeds, and replay the one that failed | [`for_each_seed`] |
#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod bad_link;
mod campaign;
mod endpoint;
mod forge;
mod link;
mod memory;
mod oracle;
pub mod plan;
mod play;
mod qp;
mod seeds;
mod shrink;
mod sink;
mod srq;
mod tap;
mod trace;
mod traffic;
mod world;

pub use campaign::{Campaign, Failed, Totals};
pub use endpoint::{EndpointId, Region};
pub use link::{Faults, Rate};
pub use memory::VecMemory;
pub use oracle::{assert_no_fault_of_ours, assert_silent};
pub use plan::{Choices, Plan, PlanError};
pub use play::{Outcome, Stats, play};
pub use qp::{Options, QpId};
pub use seeds::for_each_seed;
pub use shrink::shrink;
pub use sink::FrameSink;
pub use srq::SrqId;
pub use tap::Seen;
pub use trace::{describe, print_trace};
pub use traffic::{Kind, Mix, Traffic};
pub use world::{Busy, World};
