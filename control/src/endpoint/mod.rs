//! An endpoint: DPDK, ports, workers and the control thread, put together and taken apart.

mod addresses;
mod bringup;
mod control;
mod events;
mod groups;
mod names;
mod network;
mod peers;
mod port;
mod raw;
mod resolve;
mod ring;

pub use events::event_name;
pub use raw::RawPort;
pub(crate) use resolve::Done;
pub use resolve::{Destination, PathRequest, ResolvedPath};
pub use ring::RingPair;

pub(crate) use groups::{MAX_GROUPS, MAX_MEMBERS};
pub(crate) use names::starting_psn;
pub(crate) use port::{PortCore, PortFacts};

use crate::admin::AdminServer;
use crate::cm::Host;
use crate::config::{Config, Drive};
use crate::error::StartError;
use crate::stats::EndpointStats;
use crate::verbs::Device;
use control::ControlThread;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use worker::{DrivenWorker, WorkerThread};

/// A running endpoint: its [devices](Self::devices), one per port, and what drives them.
///
/// Clones share it. Everything made from it keeps it running; when the last handle goes, its workers stop, its ports are
/// closed, and taps and sockets that it made vanish.
///
/// ```no_run
/// use rockhopper::{Config, Endpoint};
///
/// let config = Config::load("configs/tap.toml".as_ref())?;
/// let endpoint = Endpoint::start(&config)?;
/// println!("{}", endpoint.device(0).map(|device| device.name().to_owned()).unwrap_or_default());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Endpoint {
    pub(crate) core: Arc<EndpointCore>,
}

impl std::fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Endpoint").field("ports", &self.core.ports).finish_non_exhaustive()
    }
}

/// What all handles of an endpoint share. Fields are dropped in this order: the control thread looks at workers and
/// ports, workers hold the ports' queues, and a port is closed when nothing of it is held any more.
pub(crate) struct EndpointCore {
    _control: ControlThread,
    _admin: Option<AdminServer>,
    drivers: Arc<Drivers>,
    _threads: Vec<WorkerThread>,
    ports: Vec<Arc<PortCore>>,
    host: Arc<Host>,
}

/// Workers that callers drive.
pub(crate) struct Drivers {
    workers: Vec<DrivenWorker>,
    /// Counts the caller's polls, so that the control thread knows when it is away.
    polls: AtomicU64,
}

impl Drivers {
    pub fn is_driven(&self) -> bool {
        !self.workers.is_empty()
    }

    /// Polls for a caller, who is not away then.
    pub fn poll_counted(&self) -> bool {
        self.count_poll();
        self.poll_once()
    }

    fn count_poll(&self) {
        // Two threads that poll at once may count one poll: it is only to show that somebody does.
        self.polls.store(self.polls.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
    }

    fn poll_once(&self) -> bool {
        self.workers.iter().fold(false, |busy, worker| busy | worker.poll_once())
    }
}

impl EndpointCore {
    /// Drives the workers if that is the callers' business; whether it is.
    pub fn drive(&self) -> bool {
        if !self.drivers.is_driven() {
            return false;
        }
        self.poll_once();
        true
    }

    /// True when callers drive the workers.
    pub fn is_driven(&self) -> bool {
        self.drivers.is_driven()
    }

    /// What identifiers share with the control thread.
    pub fn host(&self) -> &Arc<Host> {
        &self.host
    }

    pub fn poll_once(&self) -> bool {
        self.drivers.poll_counted()
    }

    fn poll_in_turn(&self) -> bool {
        self.drivers.count_poll();
        self.drivers.workers.iter().fold(false, |busy, worker| busy | worker.poll_in_turn())
    }
}

impl Endpoint {
    /// Starts what a configuration describes. See [`Config::load`] for files.
    pub fn start(config: &Config) -> Result<Endpoint, StartError> {
        bringup::start(config)
    }

    /// Two endpoints in this process, joined back to back in memory: for demonstrations, tests and measurements. Needs no
    /// NIC, hugepages or privileges.
    pub fn ring_pair(settings: &RingPair) -> Result<(Endpoint, Endpoint), StartError> {
        ring::start(settings)
    }

    /// The devices, one per port, in the order of the configuration.
    pub fn devices(&self) -> Vec<Device> {
        self.core.ports.iter().map(|port| Device::new(Arc::clone(port), Arc::clone(&self.core))).collect()
    }

    /// The device of a port, counted from 0.
    pub fn device(&self, index: usize) -> Option<Device> {
        let port = self.core.ports.get(index)?;
        Some(Device::new(Arc::clone(port), Arc::clone(&self.core)))
    }

    /// The device of a port by our name for it.
    pub fn device_named(&self, name: &str) -> Option<Device> {
        self.devices().into_iter().find(|device| device.name() == name)
    }

    /// Moves packets once, for endpoints whose workers the [caller drives](Drive::Caller): receive, answer, transmit,
    /// timers. True when there was something to do. Any thread may call it, one at a time; a second one at the same moment
    /// does nothing. For other endpoints it does nothing and is false.
    ///
    /// While the program is away for more than a few milliseconds, the control thread steps in now and then, so that peers
    /// are still answered, if late.
    #[inline]
    pub fn poll_once(&self) -> bool {
        self.core.poll_once()
    }

    /// As [`poll_once`](Self::poll_once), but when another thread polls at this moment (the control thread, a command) it waits
    /// for its turn: what had come before the call is done when it returns. For endpoints whose clock goes by hand.
    pub fn poll_in_turn(&self) -> bool {
        self.core.poll_in_turn()
    }

    /// Who moves the packets.
    pub fn drive(&self) -> Drive {
        if self.core.is_driven() { Drive::Caller } else { Drive::Threads }
    }

    /// Everything that is counted, now.
    pub fn stats(&self) -> EndpointStats {
        EndpointStats::collect(&self.core.ports)
    }
}
