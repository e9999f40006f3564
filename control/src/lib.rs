//! Rockhopper: a RoCEv2 endpoint in user space.
#![forbid(unsafe_code)]
#![warn(missing_docs)]

pub mod admin;
pub mod config;
mod eal;
mod endpoint;
mod error;
pub mod exchange;
pub mod net;
pub mod perf;
pub mod stats;
mod verbs;

pub use config::{Config, ConfigError};
pub use eal::shutdown;
pub use endpoint::{Endpoint, RingPair, event_name};
pub use engine::event::EventSource;
pub use engine::queue::PostError;
pub use engine::wr::Remote;
pub use engine::{
    Access, AsyncEvent, Cqe, EventKind, QpAttr, QpAttrMask, QpState, QpType, SendFlags, Sge, WcOpcode,
    WcStatus,
};
pub use error::{CreateError, QpError, ResolveError, StartError};
pub use verbs::{
    Ah, CompChannel, ConnectOptions, Cq, Device, DeviceAttr, FastMr, Mr, Pd, PortAttr, Qp, QpCaps, QpInfo,
    QpOptions, QpQuery, RecvWr, RemoteMemory, SendWr,
};
pub use memory::OutOfRange;
pub use wire::{Addressing, Gid, LKey, Mac, Mtu, Psn, QKey, Qpn, RKey};
