//! Safe, thin layer over the parts of DPDK that Rockhopper uses.
//!
//! | module | what |
//! | --- | --- |
//! | [`eal`] | start DPDK once, find hugepages, plug virtual devices, register threads |
//! | [`vdev`] | the virtual devices that suit us, and the quirks of each |
//! | [`port`] | open a port with what its driver offers; addresses, MTU, link, statistics |
//! | [`queue`] | receive and transmit bursts |
//! | [`mempool`], [`mbuf`], [`burst`] | packet buffers with one owner |
//! | [`ring`] | two ports joined back to back in memory |
//! | [`tsc`] | the time stamp counter as a clock |
//!
//! # Who owns what
//!
//! [`eal::Eal`] is counted: pools, ports and thread registrations hold it, and DPDK is shut down when the last
//! one goes. An [`mbuf::Mbuf`] has one owner; sending consumes it and dropping frees it. It does not hold its
//! pool (that would cost a counter per packet): instead a pool's memory stays mapped until DPDK is shut down,
//! and DPDK is not shut down while a buffer is out.
//!
//! # Threads
//!
//! A thread that moves packets calls [`eal::Eal::register_thread`] first: only registered threads have the
//! pools' per-thread caches.
//!
//! # Example
//!
//! ```
//! use dpdk::ring::{RingConfig, ring_pair};
//! use dpdk::{Eal, EalConfig, MbufBurst, Mempool, PoolConfig, Port, PortConfig};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let eal = Eal::init(EalConfig::default())?;
//! let pools = [Mempool::new(&eal, PoolConfig::default())?];
//! let (a, b) = ring_pair(&eal, "pair", &RingConfig::default())?;
//! let mut a = Port::open(&eal, a, &PortConfig::default(), &pools)?;
//! let mut b = Port::open(&eal, b, &PortConfig::default(), &pools)?;
//! let (_, mut tx) = a.take_queues().remove(0);
//! let (mut rx, _) = b.take_queues().remove(0);
//!
//! let _registered = eal.register_thread()?;
//! let mut burst = MbufBurst::<32>::new();
//! pools[0].alloc_bulk(&mut burst, 8);
//! for mbuf in burst.as_mut_slice() {
//!     assert!(mbuf.extend_from_slice(b"hello"));
//! }
//! tx.burst(&mut burst);
//! rx.burst(&mut burst);
//! assert!(burst.as_slice().iter().all(|mbuf| mbuf.data() == b"hello"));
//! # Ok(())
//! # }
//! ```
//!
//! # Unsafe code
//!
//! It is confined to the modules that call C: `errno`, `eal`, `lend`, `log`, `mempool`, `mbuf`, `burst`,
//! `mempool::memory`, `port::raw`, `port::tap`, `queue`, `reserve`, `ring` and `tsc`.
#![warn(missing_docs)]
#![deny(unsafe_op_in_unsafe_fn)]

pub mod burst;
pub mod eal;
pub mod errno;
pub mod lend;
mod lines;
mod log;
pub mod mbuf;
pub mod mempool;
pub mod port;
pub mod queue;
pub mod reserve;
pub mod ring;
pub mod tsc;
pub mod vdev;

pub use burst::MbufBurst;
pub use eal::{Eal, EalConfig, EalError, Memory};
pub use mbuf::Mbuf;
pub use mempool::{Mempool, PoolConfig};
pub use port::{Port, PortConfig, PortError, PortId};
pub use queue::{RxQueue, TxQueue};
pub use reserve::Reserve;
pub use vdev::Vdev;
