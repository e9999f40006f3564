//! Good traffic under a flood of junk. `cargo run --release -p rockhopper-worker --example junk_flood [--size BYTES] [--json]`
//!
//! The wire is ideal: frames come at a fixed rate, and building them costs the worker nothing, as if they came from other hosts.
//! Time is the worker's own: CPU time of `poll_once`, so other programs on the machine count for less. The wire's rate is what
//! the worker can take of good WRITEs alone, found anew before each comparison. Good frames come at half of that rate; either nothing comes beside them, or one junk
//! frame for each: then half of what arrives is junk and the wire is full. What the port's ring has no room for is lost, as at a
//! NIC, and the peer sends it again when a NAK says so.
//!
//! - `kept`: good messages a second with junk, of those without, in turns. At least 0.9, or the exit status is 1.
//! - `saturated`: the same when more comes than the worker can take, so that each junk frame takes the time of good ones: how
//!   dear junk is. It says what a flood can cost at worst, and no early drop can bring it to 1: a frame whose iCRC is wrong has
//!   to be read to its end before anybody knows.

#[path = "../tests/common/mod.rs"]
mod common;

use common::junk::{Junk, every_kind, victims};
use common::qp::{TestMr, TestQp};
use common::raw::{PEER_QPN, Writer, way};
use common::{Driven, Endpoint, Shape, Side, eal, sides};
use engine::{Counter, QpType};
use nix::time::ClockId;
use std::process::ExitCode;
use wire::{Mtu, Qpn};
use worker::PollMode;

/// Worker time of one measurement, and how many of each are made, in turns.
const SLICE_NS: f64 = 20e6;
const TURNS: usize = 5;
/// Good and junk frames of a burst when more comes than the worker can take.
const HALF_BURST: usize = 16;
/// What has to be kept.
const ENOUGH: f64 = 0.9;

struct Bench {
    peer: Side,
    driven: Driven,
    writer: Writer,
    mr: TestMr,
    _qps: Vec<TestQp>,
}

/// CPU time of this thread in nanoseconds.
fn cpu_ns() -> f64 {
    let time = ClockId::CLOCK_THREAD_CPUTIME_ID.now().expect("threads have a clock");
    time.tv_sec() as f64 * 1e9 + time.tv_nsec() as f64
}

fn median(mut values: [f64; TURNS]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[TURNS / 2]
}

impl Bench {
    fn new(payload: &[u8]) -> Bench {
        let shape = Shape { poll: PollMode::Busy, cache: 256, ..Shape::default() };
        let (peer, side) = sides("flood", &shape);
        let driven = Endpoint::new(side, &shape).driven();
        let qp = driven.end.create_qp(0, Qpn::new(0x77), QpType::Rc);
        driven.end.connect(&qp, PEER_QPN, Mtu::Mtu4096);
        let mr = driven.end.register(0x1234, 4096);
        let mut qps = victims(&driven);
        qps.push(qp);
        let writer = Writer::new(&way(peer.at, peer.peer), Qpn::new(0x77), &mr, payload);
        Bench { peer, driven, writer, mr, _qps: qps }
    }

    /// The worker polls once; gives its time. Answers and the control thread's frames are taken outside of it.
    fn poll(&mut self) -> f64 {
        let begin = cpu_ns();
        self.driven.poll();
        let time = cpu_ns() - begin;
        loop {
            let answers = self.peer.receive(0);
            answers.iter().for_each(|answer| self.writer.on_answer(answer));
            if answers.is_empty() {
                break;
            }
        }
        while self.driven.end.link.take_slow().is_some() {}
        time
    }

    fn good(&mut self) {
        let frame = self.writer.next_frame();
        // What finds no room is lost.
        self.peer.try_send(frame);
    }

    /// Good messages that the worker has executed.
    fn executed(&self) -> u64 {
        self.driven.end.counters(0).engine.get(Counter::RxWriteRequests)
    }

    /// Takes what is left in the ring, and what NAKs ask for again.
    fn settle(&mut self) {
        for _ in 0..200 {
            self.poll();
        }
    }

    /// Nanoseconds of worker time for one good message when full bursts come, half of them junk if there is some.
    fn saturated(&mut self, junk: Option<&Junk>) -> f64 {
        let (begin, mut time) = (self.executed(), 0.0);
        while time < SLICE_NS {
            for _ in 0..HALF_BURST {
                self.good();
                match junk {
                    Some(junk) => drop(self.peer.try_send(&junk.frame)),
                    None => self.good(),
                }
            }
            time += self.poll();
        }
        let messages = self.executed() - begin;
        self.settle();
        time / messages as f64
    }

    /// Good messages in a fixed worker time, when one comes every `gap` nanoseconds, with a junk frame if there is some.
    fn paced(&mut self, gap: f64, junk: Option<&Junk>) -> f64 {
        let (begin, mut time, mut sent) = (self.executed(), 0.0, 0.0);
        while time < SLICE_NS {
            while sent * gap <= time {
                self.good();
                if let Some(junk) = junk {
                    self.peer.try_send(&junk.frame);
                }
                sent += 1.0;
            }
            time += self.poll();
        }
        let messages = self.executed() - begin;
        self.settle();
        messages as f64 / time
    }
}

struct Row {
    name: &'static str,
    kept: f64,
    saturated: f64,
    junk_ns: f64,
}

fn measure(bench: &mut Bench, junk: &Junk) -> Row {
    let (mut kept, mut clean, mut full) = ([0.0; TURNS], [0.0; TURNS], [0.0; TURNS]);
    for turn in 0..TURNS {
        (clean[turn], full[turn]) = (bench.saturated(None), bench.saturated(Some(junk)));
        // The wire is full with twice as many.
        let gap = 2.0 * clean[turn];
        kept[turn] = bench.paced(gap, Some(junk)) / bench.paced(gap, None);
    }
    let (clean, full) = (median(clean), median(full));
    Row { name: junk.name, kept: median(kept), saturated: clean / full, junk_ns: full - clean }
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let as_json = arguments.iter().any(|argument| argument == "--json");
    let size = arguments.iter().skip_while(|argument| *argument != "--size").nth(1);
    let size = size.and_then(|size| size.parse().ok()).unwrap_or(1024usize);
    if !size.is_multiple_of(4) || !(4..=4096).contains(&size) {
        eprintln!("--size {size}: give a multiple of 4 from 4 to 4096");
        return ExitCode::from(2);
    }
    let _registered = eal().register_thread().expect("a thread of its own");
    let payload = vec![7; size];
    let mut bench = Bench::new(&payload);
    let kinds = every_kind(bench.peer.at, bench.peer.peer, &bench.mr, &payload);
    bench.saturated(None);
    let clean = median([(); TURNS].map(|()| bench.saturated(None)));
    if !as_json {
        println!("{size}-byte WRITEs: {clean:.0} ns each");
        println!("{:<26} {:>6} {:>10} {:>8}", "junk, one for each", "kept", "saturated", "ns each");
    }
    let mut rows = Vec::new();
    for junk in &kinds {
        let row = measure(&mut bench, junk);
        if !as_json {
            println!("{:<26} {:>6.3} {:>10.3} {:>8.0}", row.name, row.kept, row.saturated, row.junk_ns);
        }
        rows.push(row);
    }
    let least = rows.iter().map(|row| row.kept).fold(f64::INFINITY, f64::min);
    if as_json {
        let kinds: Vec<String> = rows
            .iter()
            .map(|Row { name, kept, saturated, junk_ns }| {
                format!(r#"{{"kind":"{name}","kept":{kept:.4},"saturated":{saturated:.4},"junk_ns":{junk_ns:.1}}}"#)
            })
            .collect();
        let kinds = kinds.join(",");
        println!(
            r#"{{"size_bytes":{size},"message_ns":{clean:.1},"least_kept":{least:.4},"kinds":[{kinds}]}}"#
        );
    } else {
        println!("least kept: {least:.3}");
    }
    if least >= ENOUGH { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
