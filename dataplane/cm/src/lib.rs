//! Connection management of one port, as pure state machines (rocev2 facts, CM 10 to 14).
//!
//! [`Cm`] holds every communication ID of a port: connections on both sides, datagram requests (SIDR), listeners, and what waits
//! for its time (timewait). It sees no device, clock, thread or source of randomness: time is an argument in nanoseconds that
//! never goes back, the seed comes with [`Config`], and capacities are fixed by [`Limits`].
//!
//! | goes in | comes out |
//! | --- | --- |
//! | [`Cm::on_mad`]: a MAD that came to QP 1 | [`Cm::poll_transmit`]: MADs to send |
//! | [`Cm::on_timeout`]: the time of [`Cm::next_timeout`] has come | [`Cm::poll_event`]: what the application should know |
//! | calls of the application: [`Cm::listen`], [`Cm::send_req`], [`Cm::send_rep`], [`Cm::send_sidr_req`] … | their results |
//!
//! After every input, drain both outputs. Queue pairs are moved by the caller: [`Cm::plan`] and [`Cm::plan_accept`] tell what to
//! set. An ID may be destroyed at any time; whatever the peer has to be told, and the time until its number may be used again,
//! are kept in here. [`Event::TimewaitExit`] is the last event of every connection.
//!
//! ```text
//! active                                      passive
//! send_req      ──── REQ ────────────────▶    ReqReceived
//!                                             (QP to RTR and RTS) send_rep
//! RepReceived   ◀─── REP ─────────────────
//! (QP to RTR and RTS)
//! send_rtu      ──── RTU ────────────────▶    Established
//! send_dreq     ──── DREQ ───────────────▶    Disconnected
//! Disconnected  ◀─── DREP ────────────────
//! TimewaitExit                                TimewaitExit
//! ```
//!
//! What it leaves out: alternate paths (a LAP is refused), vendor options, reliable datagrams and XRC (refused).
#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod active;
mod build;
mod config;
mod conn;
mod counters;
mod destroy;
mod disconnect;
mod error;
mod event;
mod index;
mod listen;
mod machine;
mod mra;
mod params;
mod passive;
mod plan;
mod random;
mod receive;
mod reject;
mod sidr;
mod slab;
mod state;
mod timeout;
mod timers;

pub use config::{Config, Limits, Timing};
pub use counters::{Counters, DropReason, Usage};
pub use error::CmError;
pub use event::{DisconnectCause, Event};
pub use listen::ListenerId;
pub use machine::{Cm, Transmit};
pub use params::{PEERS_LONGEST, Path, RepParams, ReqParams, ack_timeout};
pub use plan::QpPlan;
pub use sidr::{SidrId, SidrRepParams, SidrReqParams};
pub use slab::ConnId;
pub use state::State;
pub use timers::{timeout_code, timeout_ns};
