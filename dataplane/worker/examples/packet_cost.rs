//! What a WRITE costs: for several sizes, nanoseconds of CPU per message with both workers and the application in turn on
//! one thread, then nanoseconds of time with each worker on its own core. `cargo run --release -p rockhopper-worker --example packet_cost [SIZE…]`
//! `--one-thread` leaves the second out. `--count N` sends N messages on one thread instead and measures nothing: a tool that counts
//! instructions does, and the difference of two counts leaves out how the ends are set up.

#[path = "../tests/common/mod.rs"]
mod common;

use common::qp::{TestMr, TestQp, poll_all, sges};
use common::{Endpoint, Shape, eal, sides};
use engine::{QpType, SendFlags, SendOp, SendWr, WcStatus};
use nix::time::ClockId;
use std::time::{Duration, Instant};
use wire::{Mtu, Qpn};
use worker::{LinkConfig, PollMode};

const QPS: u32 = 4;
const DEPTH: u64 = 128;
/// One request in so many asks for a completion.
const SIGNAL_EVERY: u64 = 32;

struct Load {
    end: Endpoint,
    qps: Vec<(TestQp, u64, u64)>,
    from: TestMr,
    to: TestMr,
    size: u32,
}

impl Load {
    fn new(a: Endpoint, b: &Endpoint, size: u32) -> Load {
        let (from, to) = (a.register(0x1001, 1 << 20), b.register(0x2002, 1 << 20));
        let connect = |n| {
            let (here, there) = (Qpn::new(0x100 + n), Qpn::new(0x8200 + n));
            let (qp, peer) = (a.create_qp(0, here, QpType::Rc), b.create_qp(0, there, QpType::Rc));
            a.connect(&qp, there, Mtu::Mtu4096);
            b.connect(&peer, here, Mtu::Mtu4096);
            (qp, 0, 0)
        };
        let qps = (0..QPS).map(connect).collect();
        Load { end: a, qps, from, to, size }
    }

    /// Keeps every queue full; returns messages completed.
    fn refill(&mut self) -> u64 {
        let mut completed = 0;
        for (qp, posted, done) in &mut self.qps {
            for cqe in poll_all(&qp.sends) {
                assert_eq!(cqe.status, WcStatus::Success);
                completed += SIGNAL_EVERY;
                *done += SIGNAL_EVERY;
            }
            while *posted - *done < DEPTH {
                *posted += 1;
                let flags =
                    if *posted % SIGNAL_EVERY == 0 { SendFlags::SIGNALED } else { SendFlags::empty() };
                let at = (*posted as usize * 8192) % (1 << 19);
                let op = SendOp::Write(self.to.remote(at));
                let wr = SendWr { wr_id: *posted, op, data: sges(&[self.from.sge(at, self.size)]), flags };
                if qp.shared.post_send(wr).expect("the queue has room") {
                    self.end.link.ring(qp.shared.qpn());
                }
            }
        }
        completed
    }

    /// Sends at least so many messages.
    #[inline(never)]
    fn count(&mut self, messages: u64, mut between: impl FnMut()) {
        let mut completed = 0;
        while completed < messages {
            completed += self.refill();
            between();
        }
    }

    /// Nanoseconds per message over a second, after a warm-up: of this thread's CPU, and of time.
    fn run(&mut self, mut between: impl FnMut()) -> (f64, f64) {
        let mut measure = |limit: Duration| {
            let (begin, cpu, mut messages) = (Instant::now(), cpu_time(), 0);
            while begin.elapsed() < limit {
                for _ in 0..64 {
                    messages += self.refill();
                    between();
                }
            }
            let per_message = |time: Duration| time.as_nanos() as f64 / messages as f64;
            (per_message(cpu_time() - cpu), per_message(begin.elapsed()))
        };
        measure(Duration::from_millis(100));
        measure(Duration::from_secs(1))
    }
}

/// CPU time of this thread.
fn cpu_time() -> Duration {
    ClockId::CLOCK_THREAD_CPUTIME_ID.now().expect("threads have a clock").into()
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let sizes: Vec<u32> = arguments.iter().map_while(|size| size.parse().ok()).collect();
    let sizes = if sizes.is_empty() { vec![8, 64, 1024, 4096, 65_536] } else { sizes };
    let count = arguments.iter().position(|argument| argument == "--count");
    if let Some(count) = count.and_then(|at| arguments.get(at + 1)?.parse().ok()) {
        let _registered = eal().register_thread().expect("a thread of its own");
        return one_thread(sizes[0], |load, between| load.count(count, between));
    }
    let two_cores = !arguments.iter().any(|argument| argument == "--one-thread");
    let _registered = eal().register_thread().expect("a thread of its own");
    for size in sizes {
        let (cpu, time) = one_thread(size, |load, between| load.run(between));
        println!("{size:>8} bytes, one thread: {cpu:>6.0} ns of CPU, {time:>6.0} ns");
        if two_cores {
            let time = on_two_cores(size);
            let rate = f64::from(size) * 8.0 / time;
            println!("{size:>8} bytes, two cores:  {time:>6.0} ns, {rate:.1} Gb/s");
        }
    }
}

const SHAPE: Shape = Shape {
    poll: PollMode::Busy,
    queues: 1,
    ring: 1024,
    buffers: 4095,
    cache: 256,
    data_room: 4352,
    commands: 16,
    impair: None,
    lending: 4095,
    link: LINK,
};
const LINK: LinkConfig =
    LinkConfig { workers: 1, bells: 64, slow: 64, mads: 1, inject: 64, handoff: 1, move_after: 64 };

fn one_thread<R>(size: u32, run: impl FnOnce(&mut Load, &mut dyn FnMut()) -> R) -> R {
    let (a, b) = sides(&format!("one{size}"), &SHAPE);
    let (a, b) = (Endpoint::new(a, &SHAPE).driven(), Endpoint::new(b, &SHAPE).driven());
    let workers = [a.workers, b.workers];
    let mut load = Load::new(a.end, &b.end, size);
    let result = run(&mut load, &mut || {
        for worker in workers.iter().flatten() {
            worker.poll_once();
        }
    });
    assert_eq!(load.from.bytes(0, 64), load.to.bytes(0, 64));
    result
}

fn on_two_cores(size: u32) -> f64 {
    let (a, b) = sides(&format!("two{size}"), &SHAPE);
    let (mut a, mut b) = (Endpoint::new(a, &SHAPE), Endpoint::new(b, &SHAPE));
    let mine = a.workers.remove(0).into_driven();
    a.accept();
    let _thread = b.workers.remove(0).spawn(eal(), Some(1)).expect("there are two cores");
    b.accept();
    let mut load = Load::new(a, &b, size);
    let (_, time) = load.run(|| {
        mine.poll_once();
    });
    time
}
