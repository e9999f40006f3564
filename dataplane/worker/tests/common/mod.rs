//! What the worker's tests share: endpoints on pairs of ring ports, without hugepages or NIC.
#![allow(dead_code, reason = "each test file uses its part")]

pub mod junk;
pub mod qp;
pub mod raw;

use dpdk::ring::{RingConfig, ring_pair};
use dpdk::tsc::Clock;
use dpdk::{Eal, EalConfig, Memory, Mempool, PoolConfig, Port, PortConfig, RxQueue, TxQueue};
use engine::{EngineConfig, EventQueue};
use impair::Stage;
use memory::Regions;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};
use wire::{Gid, Mac, Mtu};
use worker::{
    AddressSet, Command, DrivenWorker, LaneConfig, LaneCounters, LinkConfig, PollMode, PortLink, Reply,
    Worker, WorkerConfig, WorkerHandle,
};

/// DPDK, started once for all tests of the process.
pub fn eal() -> &'static Eal {
    static EAL: OnceLock<Eal> = OnceLock::new();
    EAL.get_or_init(|| {
        let config = EalConfig { memory: Memory::NoHuge { mb: 512 }, ..EalConfig::default() };
        Eal::init(config).unwrap_or_else(|error| panic!("{error}"))
    })
}

/// Shape of a test.
#[derive(Clone, Copy)]
pub struct Shape {
    /// Queues of each port; workers of an endpoint.
    pub queues: u16,
    /// Packets a ring holds.
    pub ring: u32,
    /// Buffers of each side's pool.
    pub buffers: u32,
    /// Buffers that each thread keeps to itself; none, so that counts are exact.
    pub cache: u32,
    /// Bytes of each.
    pub data_room: u16,
    pub poll: PollMode,
    pub link: LinkConfig,
    pub commands: usize,
    /// What happens to frames on the way to and from the port.
    pub impair: Option<&'static str>,
    /// Small buffers for packets that point to their payload; 0 for none.
    pub lending: u32,
}

impl Default for Shape {
    fn default() -> Self {
        Shape {
            queues: 1,
            ring: 1024,
            buffers: 4095,
            cache: 0,
            data_room: 4352,
            poll: PollMode::Adaptive,
            link: LinkConfig::default(),
            commands: 16,
            impair: None,
            lending: 0,
        }
    }
}

/// One port of a pair, opened, and where it is.
pub struct Side {
    pub queues: Vec<(RxQueue, TxQueue)>,
    pub pool: Arc<Mempool>,
    pub lending: Option<Arc<Mempool>>,
    pub at: Place,
    pub peer: Place,
}

/// Addresses of a side.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    pub mac: Mac,
    pub gid: Gid,
}

/// Two joined ports. `name` is used once per process.
pub fn sides(name: &str, shape: &Shape) -> (Side, Side) {
    let eal = eal();
    let rings = RingConfig { queues: shape.queues, size: shape.ring, socket: None };
    let (a, b) = ring_pair(eal, name, &rings).unwrap();
    let place = |n: u8| Place { mac: Mac([2, 0, 0, 0, 0, n]), gid: Gid::from_v4([10, 0, 0, n]) };
    let side = |id, at, peer| {
        let config = PoolConfig {
            name: name.into(),
            count: shape.buffers,
            cache: shape.cache,
            data_room: shape.data_room,
            socket: None,
        };
        let small = PoolConfig { count: shape.lending, data_room: worker::LENDING_ROOM, ..config.clone() };
        let lending = (shape.lending != 0).then(|| Mempool::new(eal, small).unwrap());
        let pool = Mempool::new(eal, config).unwrap();
        let config = PortConfig { queues: shape.queues, mtu: 4200, ..PortConfig::default() };
        let mut port = Port::open(eal, id, &config, std::slice::from_ref(&pool)).unwrap();
        Side { queues: port.take_queues(), pool, lending, at, peer }
    };
    (side(a, place(1), place(2)), side(b, place(2), place(1)))
}

/// A port with its workers, not yet running.
pub struct Endpoint {
    pub workers: Vec<Worker>,
    pub handles: Vec<WorkerHandle>,
    pub link: Arc<PortLink>,
    pub regions: Regions,
    pub events: Arc<EventQueue>,
    pub pool: Arc<Mempool>,
    pub lending: Option<Arc<Mempool>>,
    pub at: Place,
    pub peer: Place,
}

impl Endpoint {
    pub fn new(side: Side, shape: &Shape) -> Endpoint {
        let clock = Clock::new(eal());
        let link = PortLink::new(LinkConfig { workers: usize::from(shape.queues), ..shape.link }).unwrap();
        let regions = Regions::new(64);
        let events = Arc::new(EventQueue::new(256));
        let (mut workers, mut handles) = (Vec::new(), Vec::new());
        for (index, (rx, tx)) in side.queues.into_iter().enumerate() {
            let lane = LaneConfig {
                link: Arc::clone(&link),
                index,
                rx,
                tx,
                pool: Arc::clone(&side.pool),
                lending: side.lending.clone(),
                memory: regions.reader(),
                events: Arc::clone(&events),
                engine: EngineConfig { max_qps: 64, max_mrs: 64, ..EngineConfig::default() },
                max_mtu: Mtu::Mtu4096,
                impair: shape.impair.map(|plan| Stage::new(&plan.parse().unwrap(), index as u64)),
            };
            let config = WorkerConfig {
                poll: shape.poll,
                commands: shape.commands,
                ..WorkerConfig::new(&format!("worker-{index}"), clock)
            };
            let (worker, handle) = Worker::new(config, vec![lane]).unwrap();
            workers.push(worker);
            handles.push(handle);
        }
        let Side { pool, lending, at, peer, .. } = side;
        Endpoint { workers, handles, link, regions, events, pool, lending, at, peer }
    }

    /// The workers, to be driven by the test.
    pub fn driven(mut self) -> Driven {
        let workers = self.workers.drain(..).map(Worker::into_driven).collect();
        let driven = Driven { workers, end: self };
        driven.end.accept();
        driven
    }

    /// Accepts frames for its addresses. The workers must run.
    pub fn accept(&self) {
        let addresses = Box::new(AddressSet::new(&[self.at.mac], &[self.at.gid]).unwrap());
        for handle in &self.handles {
            done(handle.call(Command::SetAddresses { lane: 0, addresses: addresses.clone() }));
        }
    }

    /// What has been counted, for people.
    pub fn account(&self) -> String {
        let counted =
            |worker| self.counters(worker).iter().filter(|(_, value)| *value != 0).collect::<Vec<_>>();
        (0..self.handles.len()).map(|worker| format!("worker {worker}: {:?}\n", counted(worker))).collect()
    }

    /// What a worker has counted.
    pub fn counters(&self, worker: usize) -> LaneCounters {
        match self.handles[worker].call(Command::Counters { lane: 0 }) {
            Ok(Reply::Counters(counters)) => *counters,
            other => panic!("{other:?}"),
        }
    }
}

/// An endpoint whose workers the test drives.
pub struct Driven {
    pub workers: Vec<DrivenWorker>,
    pub end: Endpoint,
}

impl Driven {
    /// Polls every worker once.
    pub fn poll(&self) {
        for worker in &self.workers {
            worker.poll_once();
        }
    }
}

/// Drives endpoints until `done` or for ten seconds.
#[track_caller]
pub fn drive(ends: &[&Driven], mut until: impl FnMut() -> bool) {
    let end = Instant::now() + Duration::from_secs(10);
    while !until() {
        assert!(Instant::now() < end, "nothing came of it within ten seconds");
        for driven in ends {
            driven.poll();
        }
    }
}

/// Drives endpoints so often that whatever can happen without waiting has happened.
pub fn settle(ends: &[&Driven]) {
    for _ in 0..50 {
        for driven in ends {
            driven.poll();
        }
    }
}

#[track_caller]
pub fn done(outcome: Result<Reply, worker::CallError>) {
    assert!(matches!(outcome, Ok(Reply::Done)), "{outcome:?}");
}
