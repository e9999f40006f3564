//! Commands: each answer, each error, and no caller that waits for ever.

mod common;

use common::qp::TestQp;
use common::{Driven, Endpoint, Shape, done, eal, sides};
use dpdk::tsc::Clock;
use engine::engine::AddQpError;
use engine::{QpAttr, QpAttrMask, QpState, QpType};
use std::time::{Duration, Instant};
use wire::Qpn;
use worker::{CallError, Command, Reply, SpawnError, Worker, WorkerConfig};

const QPN: Qpn = Qpn::new(0x123);

fn rig(name: &str, shape: &Shape) -> Driven {
    let (_, side) = sides(name, shape);
    Endpoint::new(side, shape).driven()
}

fn create(driven: &Driven, qpn: Qpn) -> TestQp {
    driven.end.create_qp(0, qpn, QpType::Rc)
}

#[test]
fn a_qp_lives_from_create_to_destroy() {
    let driven = rig("life", &Shape::default());
    let handle = &driven.end.handles[0];
    done(handle.call(Command::Ping));
    assert_eq!(driven.end.link.home(QPN), None);
    let qp = create(&driven, QPN);
    assert_eq!(driven.end.link.home(QPN), Some(0));
    assert_eq!(driven.end.query(0, QPN).attr.state, QpState::Reset);
    driven.end.connect(&qp, Qpn::new(9), wire::Mtu::Mtu1024);
    assert_eq!(driven.end.query(0, QPN).attr.dest_qpn, Qpn::new(9));
    done(handle.call(Command::DestroyQp { lane: 0, qpn: QPN }));
    assert_eq!(driven.end.link.home(QPN), None);
    let gone = handle.call(Command::DestroyQp { lane: 0, qpn: QPN });
    assert!(matches!(gone, Err(CallError::NotHome(QPN))), "{gone:?}");
    let gone = handle.call(Command::QueryQp { lane: 0, qpn: QPN });
    assert!(matches!(gone, Err(CallError::NotHome(QPN))), "{gone:?}");
    create(&driven, QPN);
}

#[test]
fn errors_are_told_apart() {
    let driven = rig("errors", &Shape::default());
    let handle = &driven.end.handles[0];
    let call = |command| handle.call(command).unwrap_err();
    assert_eq!(call(Command::Counters { lane: 1 }), CallError::NoLane(1));
    let qp = create(&driven, QPN);
    assert_eq!(call(Command::MoveQp { lane: 0, qpn: QPN, to: 1 }), CallError::NoPlace(1));
    assert_eq!(call(Command::MoveQp { lane: 0, qpn: Qpn::new(8), to: 0 }), CallError::NotHome(Qpn::new(8)));
    done(handle.call(Command::MoveQp { lane: 0, qpn: QPN, to: 0 }));
    let modify = Command::ModifyQp {
        lane: 0,
        qpn: QPN,
        attr: Box::new(QpAttr { state: QpState::Rts, ..QpAttr::default() }),
        mask: QpAttrMask::STATE,
    };
    assert!(matches!(call(modify), CallError::Modify(_)));
    assert_eq!(qp.shared.state(), QpState::Reset);
    let init = |qp: &TestQp, port_mtu| {
        let init = engine::QpInit {
            shared: qp.shared.clone(),
            pd: engine::PdId(1),
            send_cq: qp.sends.clone(),
            recv_cq: qp.receives.clone(),
            sq_sig_all: false,
            port_mtu,
        };
        Command::CreateQp { lane: 0, init: Box::new(init) }
    };
    assert_eq!(call(init(&qp, wire::Mtu::Mtu256)), CallError::AddQp(AddQpError::Exists(QPN)));
    for n in 1..64 {
        create(&driven, Qpn::new(0x1000 + n));
    }
    done(handle.call(Command::DestroyQp { lane: 0, qpn: QPN }));
    let last = create(&driven, QPN);
    let other = TestQp {
        shared: std::sync::Arc::new(engine::QpShared::new(
            Qpn::new(7),
            QpType::Rc,
            engine::SendQueue::new(1, 1, 0),
            last.shared.rq().clone(),
        )),
        ..last
    };
    assert_eq!(call(init(&other, wire::Mtu::Mtu256)), CallError::AddQp(AddQpError::Full(64)));
    assert_eq!(driven.end.link.home(Qpn::new(7)), None);
}

#[test]
fn a_worker_that_nobody_runs_times_out_and_changes_nothing() {
    let shape = Shape { commands: 2, ..Shape::default() };
    let (_, side) = sides("idle", &shape);
    let mut end = Endpoint::new(side, &shape);
    let handle = end.handles[0].clone();
    let begin = Instant::now();
    let patience = Duration::from_millis(30);
    for _ in 0..2 {
        assert_eq!(handle.call_within(Command::Stop, patience).unwrap_err(), CallError::Timeout);
    }
    assert_eq!(handle.call_within(Command::Stop, patience).unwrap_err(), CallError::Full);
    assert!(begin.elapsed() < Duration::from_secs(5));
    // Run after all, it finds nothing to do: what timed out was withdrawn, and the worker lives.
    let driven = end.workers.remove(0).into_driven();
    driven.poll_once();
    done(handle.call(Command::Ping));
    drop(driven);
    assert_eq!(handle.call(Command::Ping).unwrap_err(), CallError::Stopped);
    assert!(handle.is_stopped());
}

/// Commands from several threads while another one drives, and while nobody does: all are answered.
#[test]
fn callers_of_a_driven_worker_never_wait_for_each_other() {
    let driven = rig("drivers", &Shape::default());
    let begin = Instant::now();
    std::thread::scope(|scope| {
        for caller in 0..3 {
            let handle = driven.end.handles[0].clone();
            scope.spawn(move || {
                for _ in 0..300 {
                    match handle.call(Command::Counters { lane: 0 }) {
                        Ok(Reply::Counters(_)) => {}
                        other => panic!("caller {caller}: {other:?}"),
                    }
                }
            });
        }
        let worker = &driven.workers[0];
        for _ in 0..1000 {
            worker.poll_once();
        }
    });
    assert!(begin.elapsed() < Duration::from_secs(10));
}

#[test]
fn a_caller_learns_that_its_worker_ended() {
    let shape = Shape::default();
    let (_, side) = sides("ends", &shape);
    let mut end = Endpoint::new(side, &shape);
    let handle = end.handles[0].clone();
    let worker = end.workers.remove(0);
    let caller = std::thread::spawn(move || handle.call(Command::Ping));
    std::thread::sleep(Duration::from_millis(30));
    drop(worker);
    assert_eq!(caller.join().unwrap().unwrap_err(), CallError::Stopped);
}

#[test]
fn a_core_that_is_not_there_is_an_error() {
    let (worker, handle) = Worker::new(WorkerConfig::new("far", Clock::new(eal())), Vec::new()).unwrap();
    let error = worker.spawn(eal(), Some(5000)).unwrap_err();
    assert!(matches!(error, SpawnError::Pin(5000)), "{error}");
    assert!(handle.is_stopped());
}
