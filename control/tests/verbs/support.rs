//! Two connected ends in one process.

use rockhopper::config::{Config, DeviceKind, PortSettings, WorkerSettings};
use rockhopper::{
    Access, ConnectOptions, Cq, Cqe, Device, Endpoint, Mr, Pd, Qp, QpOptions, QpType, RingPair,
};
use std::time::Duration;

pub const ALL: Access =
    Access::LOCAL_WRITE.union(Access::REMOTE_WRITE).union(Access::REMOTE_READ).union(Access::REMOTE_ATOMIC);

/// Longer than anything here takes.
pub const SOON: Duration = Duration::from_secs(10);

/// One end: a queue pair, a queue for its completions, and memory.
pub struct End {
    pub device: Device,
    pub pd: Pd,
    pub cq: Cq,
    pub qp: Qp,
    pub mr: Mr,
}

/// A pair of endpoints; what drives them goes on in the background while nobody polls.
pub struct Pair {
    pub a: End,
    pub b: End,
}

pub fn devices(settings: &RingPair) -> (Device, Device) {
    let (a, b) = Endpoint::ring_pair(settings).unwrap();
    (a.device(0).unwrap(), b.device(0).unwrap())
}

/// An endpoint whose two workers share a pair of ring ports.
pub fn two_workers() -> (Endpoint, Device, Device) {
    let port = |name: &str, address: &str| {
        let device = DeviceKind::Ring { pair: "loop".into() };
        PortSettings::new(name, device, vec![address.parse().unwrap()])
    };
    let config = Config {
        ports: vec![port("left", "10.9.0.1/24"), port("right", "10.9.0.2/24")],
        workers: WorkerSettings { cores: vec![0, 1], ..WorkerSettings::default() },
        ..Config::default()
    };
    let endpoint = Endpoint::start(&config).unwrap();
    let device = |name| endpoint.device_named(name).unwrap();
    let (left, right) = (device("left"), device("right"));
    (endpoint, left, right)
}

pub fn end(device: &Device, qp_type: QpType) -> End {
    let pd = device.alloc_pd();
    let cq = device.create_cq(256).unwrap();
    let qp = pd.create_qp(&QpOptions::new(qp_type, &cq)).unwrap();
    let mr = pd.reg_mr(1 << 20, ALL).unwrap();
    End { device: device.clone(), pd, cq, qp, mr }
}

/// The options of an end whose GID is an IPv4 address (index 1 of a ring pair) or an IPv6 one (index 2).
pub fn family(v6: bool) -> ConnectOptions {
    ConnectOptions { sgid_index: Some(if v6 { 2 } else { 1 }), ..ConnectOptions::default() }
}

impl Pair {
    pub fn new(qp_type: QpType) -> Pair {
        Pair::over(&RingPair::default(), qp_type, &ConnectOptions::default())
    }

    pub fn over(settings: &RingPair, qp_type: QpType, options: &ConnectOptions) -> Pair {
        let (a, b) = devices(settings);
        Pair::of(&a, &b, qp_type, options)
    }

    pub fn of(a: &Device, b: &Device, qp_type: QpType, options: &ConnectOptions) -> Pair {
        let (a, b) = (end(a, qp_type), end(b, qp_type));
        if qp_type == QpType::Ud {
            a.qp.activate(options).unwrap();
            b.qp.activate(options).unwrap();
        } else {
            b.qp.connect(&a.qp.info(options), options).unwrap();
            a.qp.connect(&b.qp.info(options), options).unwrap();
        }
        Pair { a, b }
    }

    /// The next completion at `a`, with both ends driven.
    pub fn at_a(&self) -> Cqe {
        self.next(&self.a.cq)
    }

    /// The next completion at `b`.
    pub fn at_b(&self) -> Cqe {
        self.next(&self.b.cq)
    }

    fn next(&self, cq: &Cq) -> Cqe {
        let end = std::time::Instant::now() + SOON;
        while std::time::Instant::now() < end {
            if let Some(cqe) = cq.poll_one() {
                return cqe;
            }
            if !self.a.device.drive() {
                std::thread::yield_now();
            }
            self.b.device.drive();
        }
        panic!(
            "no completion in {SOON:?}; {:?} {:?}",
            self.a.device.stats().roce,
            self.b.device.stats().roce
        );
    }
}

/// `len` bytes that differ from place to place and from seed to seed.
pub fn pattern(seed: u8, len: usize) -> Vec<u8> {
    (0..len).map(|at| (at as u8).wrapping_mul(31).wrapping_add((at >> 8) as u8).wrapping_add(seed)).collect()
}

pub fn bytes(mr: &Mr, at: usize, len: usize) -> Vec<u8> {
    let mut bytes = vec![0; len];
    mr.read(at, &mut bytes).unwrap();
    bytes
}
