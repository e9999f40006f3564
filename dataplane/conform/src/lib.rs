//! Conformance of RoCEv2 devices: rules as scripts, and the scripted peer that plays them.
//!
//! A rule says what a peer sends to a device under test and what must come back: packets, silence, completions, bytes in
//! memory, states. [`parse`] reads scripts, [`Player`] plays one against a device and gives a [`RuleReport`]. Nothing here
//! knows a clock, a socket or a thread: packets, replies and the time come in, [`Action`]s come out, so a rule runs against
//! anything from a test's imitation to a NIC.
//!
//! The rules that come with the program are in [`suite`]; docs/conformance.md tells how to write one.
//!
//! ```
//! let rules = conform::parse("mine.rule", "
//! rule a-send-is-acknowledged
//! title A SEND that fits its receive is acknowledged
//! fact transport 6
//! qp rc
//! region A 64
//! receive 1 A+0:64
//! send send_only +0 ackreq payload=data[0..13]
//! expect ack +0 msn=1
//! complete recv 1 success len=13
//! ")?;
//! assert_eq!(rules[0].id, "a-send-is-acknowledged");
//! # Ok::<(), conform::ScriptError>(())
//! ```
#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod device;
mod given;
mod packet;
mod player;
mod script;
pub mod suite;
mod verdict;

pub use device::{
    CallError, Completion, DeviceCall, DeviceInfo, Piece, QpAttributes, Region, Reply, Side, Work, from_hex,
    to_hex,
};
pub use given::{GivenMemory, GivenQp, GivenRule};
pub use packet::describe::describe;
pub use player::{Action, Peer, Player, Settings};
pub use script::{ABILITIES, Rule, ScriptError, parse};
pub use verdict::{Direction, LoggedPacket, RuleReport, Verdict};
