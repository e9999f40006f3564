//! Connections, after librdmacm: peers find and connect to each other by connection management on the wire, against `rdma_cm`
//! of Linux on the other side, or against ourselves.
//!
//! An [`EventChannel`] takes the events of identifiers ([`CmId`]). The way of an active identifier is
//! [`resolve_addr`](CmId::resolve_addr), [`resolve_route`](CmId::resolve_route), [`create_qp`](CmId::create_qp),
//! [`connect`](CmId::connect); that of a passive one [`bind`](CmId::bind), [`listen`](CmId::listen), and for each connect
//! request `create_qp` and [`accept`](CmId::accept). [`Listener`] and [`connect`](fn@connect) do all of this in a blocking call
//! each, for programs that need no more:
//!
//! ```
//! use rockhopper::{Endpoint, RecvWr, RingPair, SendWr, cm};
//! use std::time::Duration;
//!
//! let (ours, theirs) = Endpoint::ring_pair(&RingPair::default())?;
//! let wait = Duration::from_secs(5);
//!
//! let listener = cm::Listener::bind(&theirs, "10.82.72.2:7471".parse()?)?;
//! let server = std::thread::spawn(move || {
//!     let connection = listener.accept(Duration::from_secs(5)).unwrap();
//!     let memory = connection.pd().reg_mr(64, rockhopper::Access::LOCAL_WRITE).unwrap();
//!     connection.qp().post_recv(RecvWr::new(1).sge(memory.sge(0..64))).unwrap();
//!     let received = connection.cq().wait(Duration::from_secs(5)).unwrap();
//!     let mut text = vec![0; received.byte_len as usize];
//!     memory.read(0, &mut text).unwrap();
//!     text
//! });
//!
//! let connection = cm::connect(&ours, "10.82.72.2:7471".parse::<std::net::SocketAddr>()?, wait)?;
//! connection.qp().post_send(SendWr::send(1).inline(b"hello"))?;
//! assert!(connection.cq().wait(wait).ok_or("no completion")?.is_success());
//! assert_eq!(server.join().unwrap(), b"hello");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Threads
//!
//! Calls return at once and are answered by events. What comes from the network is handled by the endpoint's control thread, or, where
//! the caller drives the workers, by whoever waits on a channel.

mod channel;
mod connecting;
mod error;
mod event;
mod host;
mod id;
mod moves;
mod multicast;
mod params;
mod port;
mod registry;
mod simple;
mod table;
mod ways;

pub use channel::EventChannel;
pub use error::{CmError, Unreachable};
pub use event::{CmEvent, CmEventKind};
pub(crate) use host::Host;
pub use id::{CmAddr, CmId, State};
pub use params::{CmOptions, ConnParam, DEFAULT_UD_QKEY, UdParam};
pub(crate) use port::PortCm;
pub use simple::{Connection, Listener, Setup, connect, connect_with};
pub use wire::mad::{PortSpace, RejectReason, SidrStatus};

/// Bytes of private data in a connect (rocev2 facts, CM 2 and 5).
pub const MAX_REQ_DATA: usize = 56;
/// In an accept.
pub const MAX_REP_DATA: usize = 196;
/// In a reject.
pub const MAX_REJ_DATA: usize = 148;
/// In a connect of datagrams.
pub const MAX_SIDR_REQ_DATA: usize = 180;
/// In an accept, or a reject, of datagrams.
pub const MAX_SIDR_REP_DATA: usize = 136;
