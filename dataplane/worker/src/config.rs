//! What a worker is made of.

use crate::link::PortLink;
use dpdk::tsc::Clock;
use dpdk::{Mempool, RxQueue, TxQueue};
use engine::{EngineConfig, EventQueue};
use impair::Stage;
use memory::HostMemory;
use std::sync::Arc;
use wire::Mtu;

/// What a worker does when there is nothing to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum PollMode {
    /// Polls on: lowest latency, a whole core.
    Busy,
    /// Pauses, then sleeps: up to a millisecond, less when a timer or a doorbell wants it.
    #[default]
    Adaptive,
}

/// What concerns a worker as a whole.
#[derive(Clone, Debug)]
pub struct WorkerConfig {
    /// For people: the thread's name.
    pub name: String,
    /// What to do when idle.
    pub poll: PollMode,
    /// The time. Workers between which QPs move share one.
    pub clock: Clock,
    /// Commands that may wait.
    pub commands: usize,
}

impl WorkerConfig {
    /// An adaptive worker with room for 256 waiting commands.
    pub fn new(name: &str, clock: Clock) -> Self {
        WorkerConfig { name: name.into(), poll: PollMode::default(), clock, commands: 256 }
    }
}

/// A worker's part of one port.
#[derive(Debug)]
pub struct LaneConfig {
    /// What the port's workers share.
    pub link: Arc<PortLink>,
    /// This worker's number among the port's, from 0. Worker 0 sends the control thread's frames.
    pub index: usize,
    /// The receive queue.
    pub rx: RxQueue,
    /// The transmit queue.
    pub tx: TxQueue,
    /// Where buffers to send come from. One buffer holds a full packet.
    pub pool: Arc<Mempool>,
    /// Small buffers ([`LENDING_ROOM`](crate::LENDING_ROOM)) for packets that point to their payload in registered memory
    /// instead of holding a copy; only for a port that takes such packets
    /// ([`Negotiated::tx_lends`](dpdk::port::Negotiated)). The peer must not have it in mind to change frames.
    pub lending: Option<Arc<Mempool>>,
    /// Registered memory.
    pub memory: HostMemory,
    /// Where asynchronous events go.
    pub events: Arc<EventQueue>,
    /// Capacities of the engine.
    pub engine: EngineConfig,
    /// The largest path MTU that QPs may use here.
    pub max_mtu: Mtu,
    /// What happens to frames between the port and here, as if the link were bad.
    pub impair: Option<Stage>,
}

/// Why there is no worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SetupError {
    /// A full packet does not fit into one buffer.
    #[error(
        "a packet of path MTU {mtu} takes {needed} bytes, but the pool's buffers hold {room}: make the pool with a data room of {needed} or lower the MTU"
    )]
    SmallBuffers {
        /// Bytes of payload.
        mtu: u32,
        /// Bytes of frame.
        needed: usize,
        /// Bytes of buffer.
        room: usize,
    },
    /// The port's link was made for fewer workers.
    #[error("worker {index} of a port whose link was made for {workers}")]
    Index {
        /// The number given.
        index: usize,
        /// Workers the link was made for.
        workers: usize,
    },
    /// Another worker has this number on the port.
    #[error("the port has a worker {0} already")]
    Taken(usize),
    /// The system has no file descriptor left for the wake-up.
    #[error("no event fd to wake the worker by: {0}")]
    EventFd(nix::errno::Errno),
}
