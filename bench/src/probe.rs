//! `rockhopper-perf probe`: what `rockhopper-perf suite` measures besides RDMA operations, one measurement a process.
//!
//! Each prints its figures as one JSON object: `values`, by name; the names are `suite::metric`'s.

use crate::cli::parse_duration;
use crate::failure::Failure;
use crate::loopback::choose_cores;
use clap::{Args, Parser, Subcommand, ValueEnum};
use hdrhistogram::Histogram;
use rockhopper::perf::{ConnectPlan, connect_rounds};
use rockhopper::{Access, Endpoint, QpCaps, QpOptions, QpType, RingPair};
use rockhopper_perf::limits::{self, COLD_BYTES, Content, HOT_BYTES, Pair, Work};
use rockhopper_perf::workers::{self, Steering, TapSteering};
use serde_json::{Map, Value, json};
use std::time::{Duration, Instant};

/// One measurement of the machine, of DPDK, or of Rockhopper's slow path.
#[derive(Debug, Parser)]
#[command(name = "rockhopper-perf probe", version)]
struct Probe {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// A copy of each payload byte
    Copy(Memory),
    /// A CRC-32 of each payload byte
    Crc(Memory),
    /// Both: what no RoCE endpoint in software can pass
    CopyCrc(Memory),
    /// Frames from one core to another through the driver alone
    Hop(Hop),
    /// Frames received from net_ring and sent back into it on one core
    Forward(Frames),
    /// A cache line's way to another core and back
    RoundTrip(Common),
    /// Half a round trip of a cache line between two cores that both work in between: the noise that a message meets
    PingPong(PingPong),
    /// What the system takes from a thread that only looks at the clock
    Jitter(Common),
    /// Connections by rdma_cm: made, used, closed, one after the other
    Connect(Rounds),
    /// Memory allocated and registered, and given back
    Register(Register),
    /// Resident memory of idle queue pairs
    QpMemory(QpMemory),
    /// WRITEs received by one worker, or by two at once, in the time of the workers alone
    Workers(Workers),
    /// WRITEs that arrive at the queue of their queue pair's worker, or at another's
    Steering(Steered),
}

#[derive(Debug, Args)]
struct Common {
    /// How long to measure
    #[arg(long, short = 'D', value_name = "TIME", value_parser = parse_duration, default_value = "1s")]
    duration: Duration,
    /// CPUs, one or two
    #[arg(long, value_name = "N,N", value_delimiter = ',')]
    cores: Vec<usize>,
}

#[derive(Debug, Args)]
struct PingPong {
    #[command(flatten)]
    common: Common,
    /// Nanoseconds that half a trip is to take: what the way of the line leaves of them each end works
    #[arg(long, value_name = "N", default_value_t = 1200, value_parser = clap::value_parser!(u32).range(..=1_000_000))]
    half_ns: u32,
}

#[derive(Debug, Args)]
struct Memory {
    #[command(flatten)]
    common: Common,
    /// Bytes of a payload
    #[arg(long, short = 's', value_name = "N", default_value_t = 4096, value_parser = clap::value_parser!(u32).range(1..=1 << 28))]
    size: u32,
    /// Where payloads lie: in 1 MiB that caches hold, or in 1 GiB that they do not
    #[arg(long, value_enum, default_value_t = Heat::Hot)]
    area: Heat,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Heat {
    Hot,
    Cold,
}

#[derive(Debug, Args)]
struct Frames {
    #[command(flatten)]
    common: Common,
    /// Bytes of a frame
    #[arg(long, short = 's', value_name = "N", default_value_t = 64, value_parser = clap::value_parser!(u32).range(14..=4214))]
    size: u32,
}

#[derive(Debug, Args)]
struct Hop {
    #[command(flatten)]
    frames: Frames,
    /// Each frame carries a payload: copied in and summed at one end, checked and copied out at the other
    #[arg(long)]
    carry: bool,
    /// Two kernel interfaces that are joined, through net_af_packet; without them net_ring
    #[arg(long, value_name = "A,B", value_delimiter = ',', num_args = 1)]
    interfaces: Vec<String>,
    /// Two taps that it makes, through net_tap; it waits until they are joined
    #[arg(long, value_name = "A,B", value_delimiter = ',', num_args = 1, conflicts_with = "interfaces")]
    taps: Vec<String>,
}

#[derive(Debug, Args)]
struct Rounds {
    /// Connections in all
    #[arg(long, value_name = "N", default_value_t = 2000, value_parser = clap::value_parser!(u64).range(1..))]
    rounds: u64,
}

#[derive(Debug, Args)]
struct Register {
    #[command(flatten)]
    common: Common,
    /// Bytes of a region
    #[arg(long, short = 's', value_name = "N", default_value_t = 4096, value_parser = clap::value_parser!(u32).range(1..=1 << 30))]
    size: u32,
}

#[derive(Debug, Args)]
struct QpMemory {
    /// Queue pairs
    #[arg(long, short = 'q', value_name = "N", default_value_t = 4000, value_parser = clap::value_parser!(u32).range(1..))]
    qps: u32,
    /// Requests that each queue holds
    #[arg(long, short = 't', value_name = "N", default_value_t = 1)]
    depth: u32,
}

#[derive(Debug, Args)]
struct Received {
    #[command(flatten)]
    common: Common,
    /// Bytes of a message
    #[arg(long, short = 's', value_name = "N", default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..=4096))]
    size: u32,
    /// Queue pairs of each worker
    #[arg(long, short = 'q', value_name = "N", default_value_t = 16, value_parser = clap::value_parser!(u32).range(4..=10_000))]
    qps: u32,
}

#[derive(Debug, Args)]
struct Workers {
    #[command(flatten)]
    received: Received,
    /// Workers, each on a core of its own
    #[arg(long, short = 'w', value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u8).range(1..=2))]
    workers: u8,
}

#[derive(Debug, Args)]
struct Steered {
    #[command(flatten)]
    received: Received,
    /// Where frames arrive
    #[arg(long, value_enum, default_value_t = Arrive::Right)]
    arrive: Arrive,
    /// Two taps that it makes; it waits until they are joined, and the kernel says where frames arrive
    #[arg(long, value_name = "A,B", value_delimiter = ',', num_args = 1)]
    taps: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Arrive {
    /// At the queue of their queue pair's worker
    Right,
    /// At the other's; queue pairs stay
    Wrong,
    /// At the other's; queue pairs move there
    Moving,
    /// Over taps: where the answers of their queue pairs came from, as the kernel learns from these
    Followed,
}

/// Measures, and prints the object. `arguments` begin with the program's name.
pub fn run(arguments: impl Iterator<Item = String>) -> Result<(), Failure> {
    let probe = Probe::parse_from(arguments);
    let values = match &probe.what {
        What::Copy(memory) => payloads(Work::Copy, memory),
        What::Crc(memory) => payloads(Work::Crc, memory),
        What::CopyCrc(memory) => payloads(Work::CopyCrc, memory),
        What::Hop(hop) => hops(hop),
        What::Forward(frames) => forwarded(frames),
        What::RoundTrip(common) => round_trips(common),
        What::PingPong(PingPong { common, half_ns }) => ping_pong(common, *half_ns),
        What::Jitter(common) => jitter(common),
        What::Connect(Rounds { rounds }) => connections(*rounds),
        What::Register(register) => registrations(register),
        What::QpMemory(QpMemory { qps, depth }) => qp_memory(*qps, *depth),
        What::Workers(workers) => received(workers),
        What::Steering(steered) => steering(steered),
    }?;
    println!("{}", json!({ "values": values }));
    Ok(())
}

type Values = Result<Value, Failure>;

fn payloads(work: Work, memory: &Memory) -> Values {
    let [core, _] = choose_cores(&memory.common.cores)?;
    limits::pin(core).map_err(Failure::Setup)?;
    let area = match memory.area {
        Heat::Hot => HOT_BYTES,
        Heat::Cold => COLD_BYTES,
    };
    let size = memory.size as usize;
    let bytes = limits::bytes_per_second(work, size, area.max(size), memory.common.duration);
    Ok(json!({ "gbps": bytes * 8.0 / 1e9, "ns": size as f64 * 1e9 / bytes }))
}

fn hops(hop: &Hop) -> Values {
    let pair = match (&hop.interfaces[..], &hop.taps[..]) {
        ([], []) => Pair::Ring,
        ([a, b], _) => Pair::Interfaces([a.clone(), b.clone()]),
        ([], [a, b]) => Pair::Taps([a.clone(), b.clone()]),
        _ => return Err(Failure::setup("--interfaces and --taps take two names, like --taps tap-a,tap-b")),
    };
    let cores = choose_cores(&hop.frames.common.cores)?;
    let content = if hop.carry { Content::Payload } else { Content::None };
    let rate = limits::hop(&pair, content, cores, hop.frames.size as usize, hop.frames.common.duration);
    rate.map(frames).map_err(Failure::Run)
}

fn forwarded(given: &Frames) -> Values {
    let [core, _] = choose_cores(&given.common.cores)?;
    limits::forward(core, given.size as usize, given.common.duration).map(frames).map_err(Failure::Run)
}

fn frames(rate: limits::PortRate) -> Value {
    let mpps = rate.frames_per_second / 1e6;
    json!({ "mpps": mpps, "ns": 1e3 / mpps, "gbps": mpps * rate.frame_bytes as f64 * 8.0 / 1e3 })
}

fn round_trips(common: &Common) -> Values {
    let cores = choose_cores(&common.cores)?;
    let trips = limits::round_trip_ns(cores, Duration::ZERO, common.duration).map_err(Failure::Setup)?;
    Ok(percentiles(&trips, 1.0))
}

/// How long the way of the line alone is measured first.
const WAY: Duration = Duration::from_millis(50);

/// Halves of round trips, as the latency tests record them.
fn ping_pong(common: &Common, half_ns: u32) -> Values {
    let cores = choose_cores(&common.cores)?;
    let way =
        limits::round_trip_ns(cores, Duration::ZERO, WAY.min(common.duration)).map_err(Failure::Setup)?;
    let work = Duration::from_nanos(u64::from(half_ns).saturating_sub(way.value_at_quantile(0.5) / 2));
    let trips = limits::round_trip_ns(cores, work, common.duration).map_err(Failure::Setup)?;
    Ok(percentiles(&trips, 0.5))
}

fn jitter(common: &Common) -> Values {
    let [core, _] = choose_cores(&common.cores)?;
    let jitter = limits::spin_jitter(core, common.duration).map_err(Failure::Setup)?;
    let mut values = percentiles(&jitter.gaps, 1.0);
    if let Some(values) = values.as_object_mut() {
        values.insert("taken_percent".into(), (jitter.taken * 100.0).into());
        let longest: Vec<f64> = jitter.longest.iter().map(|gap| *gap as f64 / 1e3).collect();
        values.insert("longest_us".into(), longest.into());
    }
    Ok(values)
}

/// In microseconds, from nanoseconds; of each so large a part.
fn percentiles(record: &Histogram<u64>, part: f64) -> Value {
    let mut values = Map::new();
    let us = |ns: u64| Value::from(ns as f64 / 1e3 * part);
    values.insert("min_us".into(), us(record.min()));
    for (name, quantile) in [("p50_us", 0.5), ("p90_us", 0.9), ("p99_us", 0.99), ("p999_us", 0.999)] {
        values.insert(name.into(), us(record.value_at_quantile(quantile)));
    }
    values.insert("max_us".into(), us(record.max()));
    values.into()
}

fn connections(rounds: u64) -> Values {
    let (client, server) = Endpoint::ring_pair(&RingPair::default())?;
    let server_at = "10.82.72.2:0".parse().map_err(Failure::setup)?;
    let plan = ConnectPlan { rounds, at_once: 1, server: server_at };
    let mut all: Option<Histogram<u64>> = None;
    let mut took = Duration::ZERO;
    connect_rounds(&client, &server, &plan, |tenth| {
        took += tenth.took;
        match &mut all {
            Some(all) => all.add(&tenth.latency_ns).unwrap_or(()),
            None => all = Some(tenth.latency_ns.clone()),
        }
    })
    .map_err(|why| Failure::Run(why.to_string()))?;
    let mut values = all.as_ref().map_or(json!({}), |all| percentiles(all, 1.0));
    if let Some(values) = values.as_object_mut() {
        values.insert("per_second".into(), (rounds as f64 / took.as_secs_f64()).into());
    }
    Ok(values)
}

fn registrations(register: &Register) -> Values {
    let (ours, _theirs) = Endpoint::ring_pair(&RingPair::default())?;
    let device = ours.device(0).ok_or_else(|| Failure::setup("the ring pair has no port"))?;
    let pd = device.alloc_pd();
    let size = register.size as usize;
    let (mut made, mut given_back, mut count) = (Duration::ZERO, Duration::ZERO, 0u32);
    while made + given_back < register.common.duration {
        let begin = Instant::now();
        let region = pd.reg_mr(size, Access::LOCAL_WRITE | Access::REMOTE_WRITE);
        let region = region.map_err(|why| Failure::Run(why.to_string()))?;
        let between = Instant::now();
        drop(region);
        made += between - begin;
        given_back += between.elapsed();
        count += 1;
    }
    let us = |time: Duration| time.as_secs_f64() * 1e6 / f64::from(count);
    Ok(json!({ "register_us": us(made), "deregister_us": us(given_back) }))
}

fn qp_memory(qps: u32, depth: u32) -> Values {
    let (ours, _theirs) = Endpoint::ring_pair(&RingPair::default())?;
    let device = ours.device(0).ok_or_else(|| Failure::setup("the ring pair has no port"))?;
    let pd = device.alloc_pd();
    let run = |why: &dyn std::fmt::Display| Failure::Run(why.to_string());
    let cq = device.create_cq(16).map_err(|why| run(&why))?;
    let caps = QpCaps {
        max_send_wr: depth,
        max_recv_wr: depth,
        max_send_sge: 1,
        max_recv_sge: 1,
        max_inline_data: 0,
    };
    let make = || {
        let options = QpOptions { caps, ..QpOptions::new(QpType::Rc, &cq) };
        pd.create_qp(&options).map_err(|why| run(&why))
    };
    // What is there once for all is none of theirs.
    let _first = make()?;
    let before = resident_bytes()?;
    let all = (0..qps).map(|_| make()).collect::<Result<Vec<_>, _>>()?;
    let after = resident_bytes()?;
    let each = after.saturating_sub(before) as f64 / all.len() as f64;
    let rings = all.first().map_or(0, rockhopper::Qp::ring_bytes) as f64;
    Ok(json!({ "bytes_per_qp": each, "ring_bytes": rings, "besides_rings_bytes": each - rings }))
}

impl Received {
    fn load(&self) -> workers::Load {
        workers::Load { qps: self.qps as usize, size: self.size as usize, time: self.common.duration }
    }
}

fn received(given: &Workers) -> Values {
    let cores = choose_cores(&given.received.common.cores)?;
    let done = workers::parallel(&cores[..usize::from(given.workers)], given.received.load());
    done.map(|done| json!({ "mmps": done.per_second / 1e6 })).map_err(Failure::Run)
}

fn steering(given: &Steered) -> Values {
    let [core, _] = choose_cores(&given.received.common.cores)?;
    let load = given.received.load();
    let done = match &given.taps[..] {
        [] => {
            let how = match given.arrive {
                Arrive::Right => Steering::Right,
                Arrive::Wrong => Steering::Wrong,
                Arrive::Moving => Steering::Moving,
                Arrive::Followed => return Err(Failure::setup("--arrive followed takes --taps A,B")),
            };
            workers::steered(core, how, load)
        }
        [a, b] => {
            let how = match given.arrive {
                Arrive::Right => {
                    return Err(Failure::setup(
                        "over taps the kernel says where frames arrive: --arrive wrong, moving or followed",
                    ));
                }
                Arrive::Wrong => TapSteering::Staying,
                Arrive::Moving => TapSteering::Moving,
                Arrive::Followed => TapSteering::Followed,
            };
            workers::steered_by_kernel(core, &[a.clone(), b.clone()], how, load)
        }
        _ => return Err(Failure::setup("--taps takes two names, like --taps tap-a,tap-b")),
    };
    let done = done.map_err(Failure::Run)?;
    let handed_over = done.handed_over as f64 * 100.0 / done.messages.max(1) as f64;
    Ok(json!({ "mmps": done.per_second / 1e6, "handed_over_percent": handed_over, "moved": done.moved }))
}

/// Memory of this process that is there.
fn resident_bytes() -> Result<u64, Failure> {
    let status = std::fs::read_to_string("/proc/self/status").map_err(Failure::setup)?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = line.and_then(|rest| rest.split_whitespace().next()?.parse::<u64>().ok());
    kib.map(|kib| kib << 10).ok_or_else(|| Failure::setup("/proc/self/status does not tell VmRSS"))
}
