//! Frames that arrive on another worker than their QP's: handed over in order, and after a while the QP moves to them.

mod common;

use common::qp::{PSN, poll_all, sges};
use common::raw::{SEND_ONLY, UC_SEND_ONLY, UD_SEND_ONLY, WRITE_ONLY, roce, way};
use common::{Driven, Endpoint, Shape, Side, eal, settle, sides};
use engine::{Counter, QpType, SendOp, WcStatus};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use wire::{Bth, ExtHeaders, Mtu, Psn, Qpn, Reth};
use worker::{CallError, Command, Drop, LinkConfig, Reply};

const QPN: Qpn = Qpn::new(0x4711);

fn rig(name: &str, link: LinkConfig) -> (Side, Driven) {
    let shape = Shape { queues: 2, ring: 4096, link, ..Shape::default() };
    let (peer, side) = sides(name, &shape);
    (peer, Endpoint::new(side, &shape).driven())
}

/// A generator of reproducible choices.
struct Choices(u64);

impl Choices {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % n
    }
}

#[test]
fn order_survives_the_hand_over_and_the_move() {
    for seed in 0..20 {
        let link = LinkConfig { move_after: 40, ..LinkConfig::default() };
        let (mut peer, driven) = rig(&format!("order{seed}"), link);
        let qp = driven.end.create_qp(0, QPN, QpType::Rc);
        driven.end.connect(&qp, Qpn::new(0x99), Mtu::Mtu1024);
        let mr = driven.end.register(0x1234, 4096);
        let mut choices = Choices(seed);
        let total = 600u32;
        let mut sent = 0;
        while sent < total {
            for _ in 0..=choices.below(40).min(u64::from(total - sent - 1)) {
                let remote = mr.remote(sent as usize);
                let reth = Reth { va: remote.addr, rkey: remote.rkey, dma_len: 1 };
                let bth = Bth::new(WRITE_ONLY, QPN, Psn::new((PSN + sent) & 0xFF_FFFF));
                let frame =
                    roce(&way(peer.at, peer.peer), &bth, &ExtHeaders::EMPTY.with(reth), &[sent as u8 | 1]);
                peer.send(1, &[frame]);
                sent += 1;
            }
            for _ in 0..choices.below(6) {
                driven.workers[choices.below(2) as usize].poll_once();
            }
            while !peer.receive(0).is_empty() || !peer.receive(1).is_empty() {}
        }
        settle(&[&driven]);
        assert_eq!(driven.end.link.home(QPN), Some(1), "seed {seed}: it has moved to its frames");
        let counters = driven.end.query(1, QPN).counters;
        assert_eq!(counters.get(Counter::OutOfSequence), 0, "seed {seed}: {}", driven.end.account());
        assert_eq!(counters.get(Counter::DuplicateRequest), 0, "seed {seed}");
        assert_eq!(counters.get(Counter::RxWriteRequests), u64::from(total), "seed {seed}: none lost");
        assert_eq!(mr.bytes(0, total as usize), (0..total).map(|n| n as u8 | 1).collect::<Vec<_>>());
        let traffic = driven.end.counters(1).traffic;
        assert!(traffic.handed_over >= 40 && traffic.handed_over < u64::from(total), "{traffic:?}");
        assert_eq!(traffic.moved_in, 1);
        assert!(matches!(
            driven.end.handles[0].call(Command::QueryQp { lane: 0, qpn: QPN }),
            Err(CallError::NotHome(QPN))
        ));
    }
}

#[test]
fn what_the_ring_between_workers_does_not_hold_is_counted() {
    let link = LinkConfig { handoff: 8, move_after: u32::MAX, ..LinkConfig::default() };
    let (mut peer, driven) = rig("full", link);
    driven.end.create_qp(0, QPN, QpType::Rc);
    let bth = Bth::new(SEND_ONLY, QPN, Psn::new(PSN));
    let frame = roce(&way(peer.at, peer.peer), &bth, &ExtHeaders::EMPTY, &[]);
    peer.send(1, &vec![frame; 11]);
    driven.workers[1].poll_once();
    let counters = driven.end.counters(1);
    assert_eq!((counters.traffic.handed_over, counters.dropped(Drop::HandoffFull)), (8, 3));
    settle(&[&driven]);
    assert_eq!(driven.end.counters(0).engine.dropped(engine::DropReason::WrongState), 8);
}

#[test]
fn what_waits_for_a_qp_on_its_way_is_bounded() {
    let link = LinkConfig { move_after: 1, ..LinkConfig::default() };
    let (mut peer, driven) = rig("held", link);
    driven.end.create_qp(0, QPN, QpType::Rc);
    let bth = Bth::new(SEND_ONLY, QPN, Psn::new(PSN));
    let frame = roce(&way(peer.at, peer.peer), &bth, &ExtHeaders::EMPTY, &[]);
    // Worker 0 does not answer meanwhile: the first frame is handed over, the others wait.
    peer.send(1, &vec![frame; 1100]);
    for _ in 0..60 {
        driven.workers[1].poll_once();
    }
    let counters = driven.end.counters(1);
    assert_eq!((counters.traffic.handed_over, counters.dropped(Drop::MoveFull)), (1, 1100 - 1 - 1024));
    settle(&[&driven]);
    assert_eq!(driven.end.link.home(QPN), Some(1));
    assert_eq!(
        driven.end.counters(1).engine.dropped(engine::DropReason::WrongState),
        1 + 1024,
        "{}",
        driven.end.account()
    );
}

/// Two workers ask for one QP: one gets it, the other is refused and sends on what it held.
#[test]
fn a_question_that_comes_too_late_is_refused() {
    let link = LinkConfig { move_after: 1, ..LinkConfig::default() };
    let shape = Shape { queues: 3, link, ..Shape::default() };
    let (mut peer, side) = sides("refused", &shape);
    let driven = Endpoint::new(side, &shape).driven();
    driven.end.create_qp(0, QPN, QpType::Rc);
    let bth = Bth::new(SEND_ONLY, QPN, Psn::new(PSN));
    let frame = roce(&way(peer.at, peer.peer), &bth, &ExtHeaders::EMPTY, &[]);
    for worker in [1, 2] {
        peer.send(worker, &vec![frame.clone(); 5]);
        driven.workers[worker].poll_once();
        assert_eq!(driven.end.counters(worker).traffic.handed_over, 1, "the other four wait");
    }
    driven.workers[0].poll_once();
    assert_eq!(driven.end.link.home(QPN), Some(1));
    settle(&[&driven]);
    let home = driven.end.link.home(QPN).unwrap();
    let counters = driven.end.query(home, QPN).counters;
    assert_eq!(counters.dropped(engine::DropReason::WrongState), 10, "{}", driven.end.account());
}

/// An UD QP hears from many places: it stays.
#[test]
fn an_unconnected_qp_stays_at_home() {
    let link = LinkConfig { move_after: 2, ..LinkConfig::default() };
    let (mut peer, driven) = rig("ud", link);
    driven.end.create_qp(0, QPN, QpType::Ud);
    let bth = Bth::new(UD_SEND_ONLY, QPN, Psn::new(PSN));
    let deth = wire::Deth { qkey: wire::QKey::new(1), src_qpn: Qpn::new(5) };
    let frame = roce(&way(peer.at, peer.peer), &bth, &ExtHeaders::EMPTY.with(deth), &[1; 8]);
    peer.send(1, &vec![frame; 20]);
    settle(&[&driven]);
    assert_eq!(driven.end.link.home(QPN), Some(0));
    assert_eq!(driven.end.counters(1).traffic.handed_over, 20);
}

/// A QP is sent to and fro by command while it works, on four threads: every request completes, in order, and every
/// doorbell is heard.
#[test]
fn a_qp_works_while_it_moves() {
    let shape = Shape { queues: 2, ..Shape::default() };
    let (a, b) = sides("nomad", &shape);
    let (mut a, mut b) = (Endpoint::new(a, &shape), Endpoint::new(b, &shape));
    let threads: Vec<_> = a
        .workers
        .drain(..)
        .chain(b.workers.drain(..))
        .map(|worker| worker.spawn(eal(), None).unwrap())
        .collect();
    a.accept();
    b.accept();
    let (qp_a, qp_b) = (a.create_qp(0, QPN, QpType::Rc), b.create_qp(1, Qpn::new(0x99), QpType::Rc));
    let (mr_a, mr_b) = (a.register(0x10, 4096), b.register(0x20, 1 << 16));
    a.connect(&qp_a, Qpn::new(0x99), Mtu::Mtu1024);
    b.connect(&qp_b, QPN, Mtu::Mtu1024);
    let end = AtomicBool::new(false);
    let moves = std::thread::scope(|scope| {
        let sides = [&a, &b].map(|side| (side.link.clone(), side.handles.clone()));
        let end = &end;
        let mover = scope.spawn(move || {
            let mut moves = 0;
            while !end.load(Ordering::Acquire) {
                for ((link, handles), qpn) in sides.iter().zip([QPN, Qpn::new(0x99)]) {
                    let home = link.home(qpn).unwrap();
                    match handles[home].call(Command::MoveQp { lane: 0, qpn, to: 1 - home }) {
                        Ok(Reply::Done) => moves += 1,
                        Err(CallError::NotHome(_) | CallError::NoPlace(_)) => {}
                        other => panic!("{other:?}"),
                    }
                }
                std::thread::sleep(Duration::from_micros(300));
            }
            moves
        });
        let deadline = Instant::now() + Duration::from_secs(20);
        let (mut posted, mut completed) = (0u64, 0u64);
        while completed < 3000 {
            assert!(Instant::now() < deadline, "{completed} of {posted}: {} {}", a.account(), b.account());
            if posted < 3000 && posted - completed < 16 {
                mr_a.buffer.store_u64(0, posted).unwrap();
                a.post(&qp_a, posted, SendOp::Write(mr_b.remote(0)), sges(&[mr_a.sge(0, 2048)]));
                posted += 1;
            }
            for cqe in poll_all(&qp_a.sends) {
                assert_eq!((cqe.wr_id, cqe.status), (completed, WcStatus::Success));
                completed += 1;
            }
            std::thread::yield_now();
        }
        end.store(true, Ordering::Release);
        mover.join().unwrap()
    });
    assert!(moves > 20, "{moves}");
    assert_eq!(mr_b.buffer.load_u64(0), Ok(2999));
    drop(threads);
}

/// A doorbell that rang at the old home, and was not answered there, is heard at the new one; so are all later ones.
#[test]
fn a_moving_qp_misses_no_doorbell() {
    let link = LinkConfig { move_after: 1, ..LinkConfig::default() };
    let (mut peer, driven) = rig("bell", link);
    let qp = driven.end.create_qp(0, QPN, QpType::Uc);
    driven.end.connect(&qp, Qpn::new(0x99), Mtu::Mtu1024);
    let mr = driven.end.register(0x10, 64);
    let bth = Bth::new(UC_SEND_ONLY, QPN, Psn::new(PSN));
    let frame = roce(&way(peer.at, peer.peer), &bth, &ExtHeaders::EMPTY, &[]);
    peer.send(1, &[frame]);
    driven.workers[1].poll_once();
    // Worker 0 finds the question for its QP before it looks at its bells.
    let write = |wr_id| driven.end.post(&qp, wr_id, SendOp::Write(mr.remote(0)), sges(&[mr.sge(0, 8)]));
    write(1);
    driven.workers[0].poll_once();
    assert_eq!((driven.end.link.home(QPN), peer.receive(0).len()), (Some(1), 0), "it has left unheard");
    driven.workers[1].poll_once();
    assert_eq!(peer.receive(1).len(), 1);
    write(2);
    driven.workers[1].poll_once();
    assert_eq!(peer.receive(1).len(), 1);
}
