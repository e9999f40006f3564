//! The polling loop: one core, its queues of every port, and the engines that live there.
//!
//! [`Worker::poll_once`] is the path of a packet. The stages, and where each is:
//!
//! | stage | file |
//! | --- | --- |
//! | rx burst → parse and iCRC → lookup and admit → responder or completer | `rx.rs` |
//! | frames that are another worker's, and QPs that move | `handoff.rs` |
//! | frames that are not RoCE for us | `slow.rs` |
//! | management datagrams, for queue pair 1 | `mad.rs` |
//! | poll transmit → seal | `sink.rs` |
//! | payloads that leave without being copied | `lend.rs`, of UC also `loans.rs` |
//! | packets to multicast groups, a copy for each member | `group.rs` |
//! | tx burst | `tx.rs` |
//! | packets to ourselves, turned round before the port | `loopback.rs` |
//! | what a bad link does, if a plan says so: between port and the first and last of these | `impaired.rs` |
//! | doorbells | `doorbell.rs` |
//! | commands | `command.rs`, executed in `execute.rs` |
//! | nothing to do | `idle.rs` |
//!
//! # Threads
//!
//! Nothing that a worker owns is shared. Others reach it through a [`WorkerHandle`] (commands with replies) and
//! through the port's [`PortLink`] (doorbells, frames to send for the control thread, frames handed between workers).
//! All of these are bounded rings. A worker runs [pinned](Worker::spawn) on a thread of its own, or is
//! [driven](Worker::into_driven) by its callers.
#![warn(missing_docs)]
#![deny(unsafe_code)]

mod address;
mod command;
mod config;
mod counters;
mod directory;
mod doorbell;
mod driven;
mod execute;
mod flows;
mod group;
mod handle;
mod handoff;
mod idle;
mod impaired;
mod lane;
mod led;
#[allow(unsafe_code)]
mod lend;
mod link;
mod loans;
mod loopback;
mod mad;
mod run;
mod rx;
mod seal;
mod sink;
mod slow;
mod thread;
mod tx;
mod waker;
mod worker;

pub use address::{AddressSet, LinkAddresses};
pub use command::{CallError, Command, Hop, QpSnapshot, Reply, Whom};
pub use config::{LaneConfig, PollMode, SetupError, WorkerConfig};
pub use counters::{Drop, LaneCounters, Traffic};
pub use driven::DrivenWorker;
pub use handle::WorkerHandle;
pub use lend::LENDING_ROOM;
pub use link::{LinkConfig, PortLink};
pub use mad::{Datagram, MAD_LEN};
pub use thread::{SpawnError, WorkerThread};
pub use waker::Waker;
pub use worker::Worker;
