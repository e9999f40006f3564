//! The objects of verbs, under their names: device, protection domain, memory region and window, completion queue and channel,
//! queue pair, shared receive queue, address handle.
//!
//! Handles are cheap to clone and may be used from any thread. An object is destroyed when its last handle goes, and keeps
//! what it depends on: regions and queue pairs their protection domain, queue pairs their completion queues, everything
//! its device, a device its endpoint.

mod ah;
mod attributes;
mod channel;
mod connect;
mod cq;
mod device;
mod gid_type;
mod last_handle;
mod mr;
mod mw;
mod pd;
mod qp;
mod srq;
mod wr;
mod xrc;

pub use ah::{Ah, AhAttr};
pub use attributes::{DeviceAttr, PortAttr};
pub use channel::CompChannel;
pub use connect::{ConnectOptions, QpInfo};
pub(crate) use connect::{EVERYTHING, same_gid_type};
pub use cq::Cq;
pub use device::Device;
pub use mr::{FastMr, Mr, RemoteMemory};
pub use mw::{Mw, MwBind};
pub use pd::{Pd, QpCaps, QpOptions};
pub use qp::{Qp, QpQuery};
pub(crate) use srq::SrqRecord;
pub use srq::{PartlyPosted, Srq, SrqAttr, SrqAttrMask, SrqOptions};
pub use wr::{RecvWr, SendWr};
pub use xrc::Xrcd;
