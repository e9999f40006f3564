//! One port as all threads see it: what it is, who works on it, and the numbers in use.

use super::addresses::Addresses;
use super::events::EventInbox;
use super::groups::Groups;
use super::names::Names;
use super::network::Network;
use super::peers::Peers;
use super::resolve::Waiting;
use crate::cm::PortCm;
use crate::config::QosSettings;
use crate::gsi::Gsi;
use dpdk::tsc::Clock;
use dpdk::{Mempool, Port};
use engine::EventQueue;
use memory::Regions;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use wire::{Mac, Mtu, Qpn};
use worker::{CallError, Command, PortLink, Reply, WorkerHandle};

/// A worker's part of a port.
#[derive(Clone, Debug)]
pub(crate) struct LaneHandle {
    pub worker: WorkerHandle,
    pub lane: usize,
}

/// What does not change while the port is up.
#[derive(Clone, Debug)]
pub(crate) struct PortFacts {
    /// From 1, as verbs counts.
    pub number: u16,
    pub name: String,
    pub driver: String,
    /// What the driver gave, in words.
    pub negotiated: String,
    pub mac: Mac,
    pub ip_mtu: u16,
    pub path_mtu: Mtu,
    pub vlan: Option<u16>,
    /// How long a neighbour may be silent before it is dead.
    pub neighbour_timeout: Duration,
    pub qos: QosSettings,
    pub max_qps: usize,
    pub max_mrs: usize,
}

/// A port that is up.
pub(crate) struct PortCore {
    pub facts: PortFacts,
    pub link: Arc<PortLink>,
    /// By the port's own count of its workers.
    pub lanes: Vec<LaneHandle>,
    pub regions: Regions,
    /// Events that the engines raise, for the control thread to deliver.
    pub raised: Arc<EventQueue>,
    pub inbox: EventInbox,
    pub network: Network,
    pub waiting: Waiting,
    pub names: Mutex<Names>,
    pub groups: Groups,
    /// Queue pair 1, and the connections that it makes.
    pub gsi: Gsi,
    pub cm: PortCm,
    pub addresses: Addresses,
    pub peers: Peers,
    /// Where the control thread's frames come from.
    pub pool: Arc<Mempool>,
    pub clock: Clock,
    port: Mutex<Port>,
    next_home: AtomicUsize,
}

impl std::fmt::Debug for PortCore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PortCore").field("facts", &self.facts).finish_non_exhaustive()
    }
}

/// How often, and how long apart, a QP that is on its way between workers is asked for.
const HOME_TRIES: u32 = 200;
const HOME_PAUSE: Duration = Duration::from_micros(500);

/// What a port is put together from.
pub(crate) struct PortParts {
    pub facts: PortFacts,
    pub link: Arc<PortLink>,
    pub lanes: Vec<LaneHandle>,
    pub regions: Regions,
    pub raised: Arc<EventQueue>,
    pub network: Network,
    pub pool: Arc<Mempool>,
    pub clock: Clock,
    pub port: Port,
}

impl PortCore {
    pub fn new(parts: PortParts) -> PortCore {
        PortCore {
            link: parts.link,
            lanes: parts.lanes,
            regions: parts.regions,
            raised: parts.raised,
            inbox: EventInbox::new(),
            network: parts.network,
            waiting: Waiting::default(),
            names: Mutex::new(Names::default()),
            groups: Groups::default(),
            gsi: Gsi::new(),
            cm: PortCm::new(&parts.facts),
            facts: parts.facts,
            addresses: Addresses::default(),
            peers: Peers::default(),
            pool: parts.pool,
            clock: parts.clock,
            port: Mutex::new(parts.port),
            next_home: AtomicUsize::new(0),
        }
    }

    pub fn names(&self) -> MutexGuard<'_, Names> {
        self.names.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The DPDK port: link state and statistics.
    pub fn device(&self) -> MutexGuard<'_, Port> {
        self.port.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Has every worker of the port execute a command, one after the other.
    pub fn everywhere(&self, make: impl Fn(usize) -> Command) -> Result<(), CallError> {
        for lane in &self.lanes {
            lane.worker.call(make(lane.lane))?;
        }
        Ok(())
    }

    /// The worker for the next QP: they take turns.
    pub fn choose_home(&self) -> &LaneHandle {
        &self.lanes[self.next_home.fetch_add(1, Ordering::Relaxed) % self.lanes.len()]
    }

    /// Has the worker that a QP lives on execute a command about it. A QP may move meanwhile, so it is followed.
    pub fn at_home(&self, qpn: Qpn, make: impl Fn(usize) -> Command) -> Result<Reply, CallError> {
        let mut outcome = Err(CallError::NotHome(qpn));
        for _ in 0..HOME_TRIES {
            let Some(lane) = self.link.home(qpn).and_then(|home| self.lanes.get(home)) else {
                return outcome;
            };
            outcome = lane.worker.call(make(lane.lane));
            if !matches!(outcome, Err(CallError::NotHome(_))) {
                return outcome;
            }
            std::thread::sleep(HOME_PAUSE);
        }
        outcome
    }

    /// Lets go of memory that was deregistered, once every worker has passed a point between two bursts.
    pub fn reclaim(&self) {
        self.regions.reclaim();
    }
}
