//! The RoCEv2 transport engine.
//!
//! Queue pairs, memory keys, completion queues, timers and the transmit scheduler, as pure state: no DPDK, no clock, no
//! thread, no random source and no unsafe code. A caller feeds it packets, doorbells and the time, and drains what
//! it wants to send; so the same engine runs on a pinned core, inside an application, and in a simulator.
//!
//! Where to look:
//!
//! | question | file |
//! | --- | --- |
//! | what happens to an arriving packet | [`engine`](Engine::on_packet), then `qp/responder.rs` or `qp/completer.rs` |
//! | what is sent next | [`Engine::poll_transmit`], `qp/requester.rs`, `qp/respond.rs` |
//! | which fault is answered how | `fault.rs` |
//! | who makes a NAK | `qp/respond.rs` |
//! | which QP move is legal | `qp/transition.rs` |
//! | who may touch which memory | `mr.rs`, `mw.rs` |
#![forbid(unsafe_code)]
#![warn(missing_docs)]

pub mod access;
pub mod counters;
pub mod engine;
pub mod event;
pub mod fault;
pub mod limits;
mod loans;
pub mod memory;
pub mod mr;
pub mod mw;
mod numbers;
pub mod packet;
pub mod placement;
pub mod qp;
pub mod queue;
pub mod sched;
pub mod status;
#[cfg(any(test, feature = "testkit"))]
pub mod testkit;
pub mod timer;
mod versioned;
pub mod wr;

pub use access::Access;
pub use counters::{Counter, Counters, DropReason};
pub use engine::{Engine, EngineConfig, QpPlace};
pub use event::{AsyncEvent, EventKind, EventQueue};
pub use memory::{Extent, Memory, PersistError, PlaceError, RegionGone, RegionId, Span};
pub use mr::{KeyFault, KeyUser, MemoryRegion, MrTable, PdId};
pub use mw::{BindError, Binding, MemoryWindow, MwType};
pub use packet::{
    Follower, Followers, Gather, PacketSink, Payload, Piece, RxPacket, SinkError, TxPacket, TxRun,
};
pub use placement::{FlushLevel, Placement};
pub use qp::{QpAttr, QpAttrMask, QpInit, QpState, QpType};
pub use queue::{CompletionQueue, QpShared, RecvQueue, SendQueue, XrcdId};
pub use ring::fetch;
pub use status::{Cqe, WcFlags, WcOpcode, WcStatus};
pub use wr::{AddressHandle, RecvWr, SendFlags, SendOp, SendWr, Sge, WrData};

/// Nanoseconds on the caller's monotonic clock. The engine never reads a clock: each input carries the time.
pub type Nanos = u64;
