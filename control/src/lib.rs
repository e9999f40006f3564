//! Rockhopper: a RoCEv2 endpoint in user space, on any port that DPDK drives.
//!
//! [`Endpoint::start`] brings up the ports of a [`Config`]; [`Endpoint::ring_pair`] two endpoints in this process, which
//! needs no NIC and no privileges. From there on it is verbs: a [`Device`] per port, protection domains ([`Pd`]), memory
//! regions ([`Mr`]) and windows ([`Mw`]), completion queues ([`Cq`]), queue pairs ([`Qp`]).
//!
//! ```
//! use rockhopper::{Access, ConnectOptions, Endpoint, QpOptions, QpType, RingPair, SendWr};
//! use std::time::Duration;
//!
//! let (ours, theirs) = Endpoint::ring_pair(&RingPair::default())?;
//! let (ours, theirs) = (ours.device(0).unwrap(), theirs.device(0).unwrap());
//!
//! let (our_pd, their_pd) = (ours.alloc_pd(), theirs.alloc_pd());
//! let target = their_pd.reg_mr(4096, Access::LOCAL_WRITE | Access::REMOTE_WRITE)?;
//! let (our_cq, their_cq) = (ours.create_cq(16)?, theirs.create_cq(16)?);
//! let our_qp = our_pd.create_qp(&QpOptions::new(QpType::Rc, &our_cq))?;
//! let their_qp = their_pd.create_qp(&QpOptions::new(QpType::Rc, &their_cq))?;
//!
//! let options = ConnectOptions::default();
//! their_qp.connect(&our_qp.info(&options), &options)?;
//! our_qp.connect(&their_qp.info(&options), &options)?;
//!
//! our_qp.post_send(SendWr::write(1, target.remote().at(0)).inline(b"hello"))?;
//! assert!(our_cq.wait(Duration::from_secs(2)).unwrap().is_success());
//!
//! let mut arrived = [0; 5];
//! target.read(0, &mut arrived)?;
//! assert_eq!(&arrived, b"hello");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! | to … | see |
//! | --- | --- |
//! | configure ports, workers and the rest | [`config`] |
//! | swap queue pairs with a peer over TCP | [`exchange`] |
//! | move packets on a thread of one's own | [`Endpoint::poll_once`], [`config::Drive`] |
//! | wait without polling | [`Cq::wait`], [`CompChannel`] |
//! | know what was counted | [`stats`], [`admin`] |
//! | measure | [`perf`] |
//!
//! # Threads
//!
//! Workers move packets: pinned threads, or the program's own. A control thread per endpoint answers ARP, neighbour
//! discovery and ping and watches links. Every handle may be used from any thread; posting and polling take no lock.
#![forbid(unsafe_code)]
#![warn(missing_docs)]

pub mod admin;
pub mod cm;
pub mod config;
mod eal;
mod endpoint;
mod error;
pub mod exchange;
mod gsi;
pub mod net;
pub mod perf;
pub mod preflight;
pub mod programs;
pub mod stats;
mod verbs;

pub use config::{Config, ConfigError};
pub use dpdk::tsc::Hand;
pub use eal::shutdown;
pub use endpoint::{Destination, Endpoint, PathRequest, RawPort, ResolvedPath, RingPair, event_name};
pub use engine::event::EventSource;
pub use engine::queue::PostError;
pub use engine::wr::Remote;
pub use engine::{
    Access, AsyncEvent, Cqe, EventKind, MwType, Placement, QpAttr, QpAttrMask, QpState, QpType, SendFlags,
    Sge, WcFlags, WcOpcode, WcStatus,
};
pub use error::{
    AddressError, BindMwError, CreateError, DeregisterError, InUse, NoLink, QpError, ResolveError, SrqError,
    StartError,
};
pub use impair::{Plan as ImpairPlan, PlanError as ImpairPlanError};
pub use memory::OutOfRange;
pub use verbs::{
    Ah, AhAttr, CompChannel, ConnectOptions, Cq, Device, DeviceAttr, FastMr, Mr, Mw, MwBind, PartlyPosted,
    Pd, PortAttr, Qp, QpCaps, QpInfo, QpOptions, QpQuery, RecvWr, RemoteMemory, SendWr, Srq, SrqAttr,
    SrqAttrMask, SrqOptions, Xrcd,
};
pub use wire::{Addressing, Gid, LKey, Mac, Mtu, Psn, QKey, Qpn, RKey, RoceVersion, Srqn};
