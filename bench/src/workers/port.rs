//! The receiving port with its workers and queue pairs, and the port that frames come from.

use super::generator::{Generator, Target};
use super::{Done, Load};
use dpdk::eal::RegisteredThread;
use dpdk::ring::{RingConfig, ring_pair};
use dpdk::tsc::Clock;
use dpdk::{Eal, EalConfig, Memory, Mempool, PoolConfig, Port, PortConfig, PortId, Vdev};
use engine::{
    Access, CompletionQueue, Counter, EngineConfig, EventQueue, MemoryRegion, PdId, QpAttr, QpAttrMask,
    QpInit, QpShared, QpState, QpType, RecvQueue, SendQueue,
};
use memory::{Buffer, Regions};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};
use wire::{Addressing, Gid, Mac, Mtu, Psn, Qpn, RKey, RoceVersion};
use worker::{
    AddressSet, Command, DrivenWorker, LaneConfig, LinkConfig, PollMode, PortLink, Reply, Worker,
    WorkerConfig, WorkerHandle,
};

/// Buffer space for the longest frames.
const ROOM: u16 = 4352;
const RING: u32 = 1024;
/// A ring of so many has frames. `net_ring` counts those of a queue in 24 bytes beside its neighbour's, for which two workers would
/// take a cache line from each other twice in each burst: an eighth of their time, and none of their own making.
const APART: usize = 4;
const PD: PdId = PdId(1);
const KEY: u32 = 0x1234_5600;
/// The number of a queue pair says whose it is; they are spread as random ones are.
const FIRST_QPN: u32 = 0x10_0000;
const FIRST_PSN: u32 = 0xFF_FF00;

const SENDER: (Mac, Gid) = (Mac([2, 0, 0, 0, 0, 1]), Gid::from_v4([10, 0, 0, 1]));
const RECEIVER: (Mac, Gid) = (Mac([2, 0, 0, 0, 0, 2]), Gid::from_v4([10, 0, 0, 2]));

/// The UDP source port of everything over `net_ring`, and of the receiver's answers.
const SPORT: u16 = 0xC000;
/// Those of RoCE that are left, above it.
const SPORTS: usize = 0x3FFF;

/// How frames get from the one port to the other.
#[derive(Clone, Copy, Debug)]
pub(super) enum Wire<'a> {
    /// A ring for each worker.
    Ring,
    /// Two taps, which somebody joins. Frames come from one queue; the kernel chooses the receiver's by their flow.
    Taps {
        /// Their interfaces.
        names: &'a [String; 2],
        /// Answers have the UDP ports of what they answer, as those of our own queue pairs do: the kernel then knows the flow, and
        /// brings its frames to the queue that the answers came from.
        answers_alike: bool,
    },
}

impl Wire<'_> {
    fn ports(self, eal: &Eal, name: &str, workers: usize) -> Result<(PortId, PortId), String> {
        match self {
            Wire::Ring => {
                let rings = RingConfig { queues: (workers * APART) as u16, size: RING, socket: None };
                ring_pair(eal, name, &rings).map_err(told)
            }
            Wire::Taps { names, .. } => {
                let tap = |end: usize, mac: Mac| {
                    let vdev = Vdev::tap(&format!("{name}_{end}"), &names[end], Some(mac.0)).map_err(told)?;
                    eal.add_vdev(&vdev).map_err(told)
                };
                Ok((tap(0, SENDER.0)?, tap(1, RECEIVER.0)?))
            }
        }
    }

    /// Of how many queues one has frames.
    fn apart(self) -> usize {
        match self {
            Wire::Ring => APART,
            Wire::Taps { .. } => 1,
        }
    }

    /// Queues of the port that frames come from.
    fn ways(self, workers: usize) -> usize {
        match self {
            Wire::Ring => workers,
            Wire::Taps { .. } => 1,
        }
    }

    /// UDP source ports of a queue pair's frames, and of the answers to them.
    fn sports(self, index: usize) -> (u16, u16) {
        let own = SPORT + 1 + (index % SPORTS) as u16;
        match self {
            Wire::Ring => (SPORT, SPORT),
            Wire::Taps { answers_alike: true, .. } => (own, own),
            Wire::Taps { answers_alike: false, .. } => (own, SPORT),
        }
    }
}

/// The receiving port.
pub(super) struct Receiver {
    eal: &'static Eal,
    workers: Vec<DrivenWorker>,
    handles: Vec<WorkerHandle>,
    buffer: Arc<Buffer>,
    load: Load,
    /// What has to live as long.
    _qps: Vec<Arc<QpShared>>,
}

/// Two ports, one of which receives what the other sends.
pub(super) struct Opened {
    /// Where frames come from, by worker.
    pub ways: Vec<Generator>,
    pub receiver: Receiver,
    pub _ports: [Port; 2],
}

/// DPDK, started once.
fn eal() -> Result<&'static Eal, String> {
    static EAL: OnceLock<Result<Eal, String>> = OnceLock::new();
    let start = || Eal::init(EalConfig { memory: Memory::Auto, ..EalConfig::default() }).map_err(told);
    EAL.get_or_init(start).as_ref().map_err(String::clone)
}

fn told(why: impl std::fmt::Display) -> String {
    why.to_string()
}

impl Opened {
    /// Two ports with a queue for each worker, and connected queue pairs.
    pub fn new(
        wire: Wire<'_>,
        workers: usize,
        move_after: Option<u32>,
        load: Load,
    ) -> Result<Opened, String> {
        static OPENED: AtomicU32 = AtomicU32::new(0);
        let name = format!("workers{}", OPENED.fetch_add(1, Ordering::Relaxed));
        let eal = eal()?;
        let (a, b) = wire.ports(eal, &name, workers)?;
        let ways = wire.ways(workers);
        let open = |id: PortId, name: String, queues: usize| -> Result<(Port, Arc<Mempool>), String> {
            let pool = PoolConfig { name, count: 8191, cache: 256, data_room: ROOM, socket: None };
            let pool = Mempool::new(eal, pool).map_err(told)?;
            let queues = (queues * wire.apart()) as u16;
            let config = PortConfig { queues, mtu: 4200, ..PortConfig::default() };
            Ok((Port::open(eal, id, &config, std::slice::from_ref(&pool)).map_err(told)?, pool))
        };
        let ((mut from, from_pool), (mut to, to_pool)) =
            (open(a, format!("{name}f"), ways)?, open(b, format!("{name}t"), workers)?);
        let link = LinkConfig { workers, ..LinkConfig::default() };
        let link = LinkConfig { move_after: move_after.unwrap_or(link.move_after), ..link };
        let link = PortLink::new(link).map_err(told)?;
        let regions = Regions::new(64);
        let events = Arc::new(EventQueue::new(256));
        let clock = Clock::new(eal);
        let (mut driven, mut handles) = (Vec::new(), Vec::new());
        for (index, (rx, tx)) in to.take_queues().into_iter().step_by(wire.apart()).enumerate() {
            let lane = LaneConfig {
                link: Arc::clone(&link),
                index,
                rx,
                tx,
                pool: Arc::clone(&to_pool),
                lending: None,
                memory: regions.reader(),
                events: Arc::clone(&events),
                engine: EngineConfig::default(),
                max_mtu: Mtu::Mtu4096,
                impair: None,
            };
            let config =
                WorkerConfig { poll: PollMode::Busy, ..WorkerConfig::new(&format!("worker-{index}"), clock) };
            let (worker, handle) = Worker::new(config, vec![lane]).map_err(told)?;
            driven.push(worker.into_driven());
            handles.push(handle);
        }
        let buffer = Arc::new(Buffer::new(workers * load.qps * stride(load.size)).map_err(told)?);
        let region = regions.register(Arc::clone(&buffer)).map_err(told)?;
        let access = Access::LOCAL_WRITE | Access::REMOTE_WRITE;
        let len = buffer.len() as u64;
        let region = Arc::new(MemoryRegion::user(PD, region, KEY, buffer.addr(), len, access));
        let addresses =
            AddressSet::new(&[RECEIVER.0], &[RECEIVER.1]).ok_or("the port's addresses are none")?;
        for handle in &handles {
            handle.call(Command::AddMr { lane: 0, region: Arc::clone(&region) }).map_err(told)?;
            let addresses = Box::new(addresses.clone());
            handle.call(Command::SetAddresses { lane: 0, addresses }).map_err(told)?;
        }
        let (mut generators, mut qps) = (Vec::new(), Vec::new());
        let each = workers * load.qps / ways;
        for (number, queue) in from.take_queues().into_iter().step_by(wire.apart()).enumerate() {
            let mut targets = Vec::new();
            for index in number * each..(number + 1) * each {
                let qpn = Qpn::new(FIRST_QPN + index as u32 * 0x1F);
                let (sport, answers) = wire.sports(index);
                qps.push(connected(&handles[index / load.qps], qpn, answers)?);
                let at = buffer.addr() + (index * stride(load.size)) as u64;
                targets.push(Target {
                    qpn,
                    psn: Psn::new(FIRST_PSN),
                    at,
                    rkey: RKey::new(KEY),
                    index,
                    sport,
                });
            }
            generators.push(Generator::new(
                queue,
                Arc::clone(&from_pool),
                &way(SENDER, RECEIVER, SPORT),
                targets,
                load.size,
            )?);
        }
        let receiver = Receiver { eal, workers: driven, handles, buffer, load, _qps: qps };
        Ok(Opened { ways: generators, receiver, _ports: [from, to] })
    }
}

impl Receiver {
    /// Gives the calling thread caches of its own for buffers.
    pub fn register(&self) -> Option<RegisteredThread> {
        self.eal.register_thread().ok()
    }

    /// A worker polls once; how long that took.
    pub fn poll(&self, worker: usize) -> Duration {
        let begin = Instant::now();
        self.workers[worker].poll_once();
        begin.elapsed()
    }

    /// Frames that came and were no RoCE, like those of [`Generator::call`].
    pub fn called(&self) -> Result<u64, String> {
        let mut called = 0;
        for handle in &self.handles {
            if let Reply::Counters(counters) = handle.call(Command::Counters { lane: 0 }).map_err(told)? {
                called +=
                    counters.iter().filter(|(name, _)| *name == CALLS).map(|(_, value)| value).sum::<u64>();
            }
        }
        Ok(called)
    }

    /// What was done, if all of it was right: nothing refused or dropped, and what was written is there, by queue pair.
    pub fn account(&self, written: impl IntoIterator<Item = usize>) -> Result<Done, String> {
        let mut done = Done::default();
        for handle in &self.handles {
            let Reply::Counters(counters) = handle.call(Command::Counters { lane: 0 }).map_err(told)? else {
                return Err("a worker tells no counters".into());
            };
            let wrong = counters.iter().find(|(name, value)| *value != 0 && is_wrong(name));
            if let Some((name, value)) = wrong {
                return Err(format!("{name} is {value}"));
            }
            done.messages += counters.engine.get(Counter::RxWriteRequests);
            done.handed_over += counters.traffic.handed_over;
            done.moved += counters.traffic.moved_in;
        }
        for index in written {
            let mut bytes = vec![0; self.load.size];
            self.buffer.read(index * stride(self.load.size), &mut bytes).map_err(told)?;
            if bytes.iter().any(|&byte| byte != index as u8) {
                return Err(format!("what was written for queue pair {index} is not there"));
            }
        }
        Ok(done)
    }
}

/// The counter of frames of other types.
const CALLS: &str = "not_roce_ethertype";

fn is_wrong(name: &str) -> bool {
    name.starts_with("drop_")
        || name.contains("nak")
        || matches!(name, "out_of_sequence" | "duplicate_request")
}

/// Slots begin on cache lines.
fn stride(size: usize) -> usize {
    size.next_multiple_of(64)
}

fn way(from: (Mac, Gid), to: (Mac, Gid), udp_sport: u16) -> Addressing {
    Addressing {
        version: RoceVersion::V2,
        smac: from.0,
        dmac: to.0,
        vlan: None,
        src: from.1,
        dst: to.1,
        traffic_class: 0,
        flow_label: 0,
        hop_limit: 64,
        udp_sport,
    }
}

/// A queue pair in RTS whose peer is the generator; what it sends has that UDP source port.
fn connected(worker: &WorkerHandle, qpn: Qpn, sport: u16) -> Result<Arc<QpShared>, String> {
    use QpAttrMask as M;
    let queues = (SendQueue::new(1, 1, 0), Arc::new(RecvQueue::new(1, 1)));
    let shared = Arc::new(QpShared::new(qpn, QpType::Rc, queues.0, queues.1));
    let cq = Arc::new(CompletionQueue::new(1, 16, || {}));
    let init = QpInit {
        shared: Arc::clone(&shared),
        pd: PD,
        send_cq: Arc::clone(&cq),
        recv_cq: cq,
        sq_sig_all: false,
        port_mtu: Mtu::Mtu4096,
    };
    worker.call(Command::CreateQp { lane: 0, init: Box::new(init) }).map_err(told)?;
    let rtr =
        M::STATE | M::AV | M::PATH_MTU | M::DEST_QPN | M::RQ_PSN | M::MAX_DEST_RD_ATOMIC | M::MIN_RNR_TIMER;
    let rts = M::STATE | M::SQ_PSN | M::TIMEOUT | M::RETRY_CNT | M::RNR_RETRY | M::MAX_RD_ATOMIC;
    let steps = [
        (QpState::Init, M::STATE | M::PKEY_INDEX | M::PORT | M::ACCESS),
        (QpState::Rtr, rtr),
        (QpState::Rts, rts),
    ];
    for (state, mask) in steps {
        let attr = QpAttr {
            state,
            access: Access::REMOTE_WRITE,
            path: Some(way(RECEIVER, SENDER, sport)),
            path_mtu: Mtu::Mtu4096,
            dest_qpn: qpn,
            rq_psn: Psn::new(FIRST_PSN),
            ..QpAttr::default()
        };
        worker.call(Command::ModifyQp { lane: 0, qpn, attr: Box::new(attr), mask }).map_err(told)?;
    }
    Ok(shared)
}
