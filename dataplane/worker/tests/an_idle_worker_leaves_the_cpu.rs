//! An adaptive worker sleeps when idle, wakes for doorbells and commands, and its timers keep their time.

mod common;

use common::qp::{PSN, sges};
use common::{Endpoint, Shape, done, eal, sides};
use engine::{QpType, SendOp};
use std::time::{Duration, Instant};
use wire::{Mtu, Qpn};
use worker::{Command, PollMode, WorkerThread};

/// Time that the thread with this name has run, and time that it has waited for a CPU.
fn times(name: &str) -> (Duration, Duration) {
    let tasks = std::fs::read_dir("/proc/self/task").unwrap();
    let of_name = |task: &std::fs::DirEntry| {
        std::fs::read_to_string(task.path().join("comm")).is_ok_and(|comm| comm.trim() == name)
    };
    let task = tasks.flatten().find(of_name).expect("the worker's thread");
    let stat = std::fs::read_to_string(task.path().join("schedstat")).unwrap();
    let mut nanos = stat.split(' ').map(|number| Duration::from_nanos(number.parse().unwrap_or(0)));
    (nanos.next().unwrap(), nanos.next().unwrap())
}

fn spawn(name: &str, poll: PollMode) -> (Endpoint, WorkerThread) {
    let shape = Shape { poll, ..Shape::default() };
    let (_peer, side) = sides(name, &shape);
    let mut end = Endpoint::new(side, &shape);
    let thread = end.workers.remove(0).spawn(eal(), None).unwrap();
    end.accept();
    (end, thread)
}

/// Shares of the time that the idle worker runs, and that it runs or would like to.
fn shares() -> (f64, f64) {
    std::thread::sleep(Duration::from_millis(50));
    let ((run, wait), begin) = (times("worker-0"), Instant::now());
    std::thread::sleep(Duration::from_millis(500));
    let (run_now, wait_now) = times("worker-0");
    let share = |time: Duration| time.as_secs_f64() / begin.elapsed().as_secs_f64();
    (share(run_now - run), share(run_now - run + (wait_now - wait)))
}

#[test]
fn an_idle_worker_leaves_the_cpu_and_wakes() {
    let (end, thread) = spawn("sleepy", PollMode::Adaptive);
    let (idle, _) = shares();
    assert!(idle < 0.2, "{idle}");

    // Asleep for up to a millisecond, but a command wakes it: many round trips take less than as many sleeps.
    let begin = Instant::now();
    for _ in 0..200 {
        done(end.handles[0].call(Command::Ping));
    }
    assert!(begin.elapsed() < Duration::from_secs(2), "{:?}", begin.elapsed());

    // A QP whose peer never answers: the ACK timer fires in time though the worker sleeps in between.
    let qp = end.create_qp(0, Qpn::new(0x51), QpType::Rc);
    let mr = end.register(1, 64);
    end.connect(&qp, Qpn::new(PSN & 0xFFFF), Mtu::Mtu1024);
    let begin = Instant::now();
    end.post(&qp, 1, SendOp::Write(mr.remote(0)), sges(&[mr.sge(0, 8)]));
    while qp.sends.is_empty() {
        assert!(begin.elapsed() < Duration::from_secs(20), "{}", end.account());
        std::thread::sleep(Duration::from_millis(1));
    }
    assert!(thread.stop());
}

#[test]
fn a_busy_worker_does_not_sleep() {
    let (_end, thread) = spawn("busy", PollMode::Busy);
    // Others may want the CPU too.
    let (_, busy) = shares();
    assert!(busy > 0.8, "{busy}");
    assert!(thread.stop());
}
