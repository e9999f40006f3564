//! Every RC operation between two endpoints, data verified: driven by this thread, and by threads of their own.

mod common;

use common::qp::{TestMr, TestQp, poll_all, sges};
use common::{Driven, Endpoint, Shape, drive, eal, sides};
use engine::{QpType, SendOp, WcOpcode, WcStatus};
use std::time::{Duration, Instant};
use wire::{Mtu, Qpn};

const LEN: usize = 1 << 20;

fn data(len: usize, seed: u8) -> Vec<u8> {
    (0..len).map(|at| (at as u8).wrapping_mul(31) ^ (at >> 8) as u8 ^ seed).collect()
}

struct Pair {
    a: TestQp,
    b: TestQp,
    a_mr: TestMr,
    b_mr: TestMr,
}

fn connect(a: &Endpoint, b: &Endpoint, mtu: Mtu) -> Pair {
    let (qpn_a, qpn_b) = (Qpn::new(0x11), Qpn::new(0x2233));
    let pair = Pair {
        a: a.create_qp(0, qpn_a, QpType::Rc),
        b: b.create_qp(0, qpn_b, QpType::Rc),
        a_mr: a.register(0x1001, LEN),
        b_mr: b.register(0x2002, LEN),
    };
    a.connect(&pair.a, qpn_b, mtu);
    b.connect(&pair.b, qpn_a, mtu);
    pair
}

/// Runs every operation; `wait` lets the workers work until it is told that there is what was waited for.
fn every_operation(a: &Endpoint, b: &Endpoint, pair: &Pair, wait: &dyn Fn(&dyn Fn() -> bool)) {
    let Pair { a: qp, b: peer, a_mr, b_mr } = pair;
    let finish = |wr_id: u64, opcode: WcOpcode| {
        wait(&|| !qp.sends.is_empty());
        let cqes = poll_all(&qp.sends);
        assert_eq!(cqes.len(), 1);
        assert_eq!(
            (cqes[0].wr_id, cqes[0].status, cqes[0].opcode),
            (wr_id, WcStatus::Success, opcode),
            "{}{}",
            a.account(),
            b.account()
        );
    };

    for (wr_id, len) in [0usize, 1, 3, 64, 4095, 4096, 4097, 65_537, 500_000].into_iter().enumerate() {
        let sent = data(len, wr_id as u8);
        a_mr.buffer.write(5, &sent).unwrap();
        a.post(qp, wr_id as u64, SendOp::Write(b_mr.remote(9)), sges(&[a_mr.sge(5, len as u32)]));
        finish(wr_id as u64, WcOpcode::RdmaWrite);
        assert_eq!(b_mr.bytes(9, len), sent, "WRITE of {len}");

        b_mr.buffer.write(0, &sent).unwrap();
        a.post(
            qp,
            100,
            SendOp::Read(b_mr.remote(0)),
            sges(&[a_mr.sge(600_000, (len / 2) as u32), a_mr.sge(3, (len - len / 2) as u32)]),
        );
        finish(100, WcOpcode::RdmaRead);
        let mut read = a_mr.bytes(600_000, len / 2);
        read.extend(a_mr.bytes(3, len - len / 2));
        assert_eq!(read, sent, "READ of {len}");

        peer.post_recv(7, b_mr.sge(17, 500_000));
        a_mr.buffer.write(11, &sent).unwrap();
        a.post(qp, 200, SendOp::SendImm([1, 2, 3, 4]), sges(&[a_mr.sge(11, len as u32)]));
        finish(200, WcOpcode::Send);
        let received = poll_all(&peer.receives);
        assert_eq!(received.len(), 1);
        assert_eq!(
            (received[0].wr_id, received[0].byte_len, received[0].imm),
            (7, len as u32, Some([1, 2, 3, 4]))
        );
        assert_eq!(b_mr.bytes(17, len), sent, "SEND of {len}");
    }

    b_mr.buffer.store_u64(64, 40).unwrap();
    a.post(qp, 300, SendOp::FetchAdd { remote: b_mr.remote(64), add: 2 }, sges(&[a_mr.sge(0, 8)]));
    finish(300, WcOpcode::FetchAdd);
    assert_eq!((a_mr.buffer.load_u64(0), b_mr.buffer.load_u64(64)), (Ok(40), Ok(42)));
    a.post(
        qp,
        301,
        SendOp::CompareSwap { remote: b_mr.remote(64), compare: 42, swap: 7 },
        sges(&[a_mr.sge(8, 8)]),
    );
    finish(301, WcOpcode::CompSwap);
    assert_eq!((a_mr.buffer.load_u64(8), b_mr.buffer.load_u64(64)), (Ok(42), Ok(7)));
}

fn driven(name: &str, shape: Shape) -> (Driven, Driven) {
    let (a, b) = sides(name, &shape);
    (Endpoint::new(a, &shape).driven(), Endpoint::new(b, &shape).driven())
}

#[test]
fn on_one_thread() {
    for mtu in [Mtu::Mtu256, Mtu::Mtu4096] {
        let (a, b) = driven(&format!("driven{mtu}"), Shape::default());
        let pair = connect(&a.end, &b.end, mtu);
        every_operation(&a.end, &b.end, &pair, &|until| drive(&[&a, &b], until));
        let counters = b.end.counters(0);
        assert!(
            counters.iter().all(|(name, value)| !name.starts_with("drop_") || value == 0),
            "{counters:?}"
        );
    }
}

#[test]
fn on_threads() {
    let shape = Shape::default();
    let (a, b) = sides("threads", &shape);
    let (mut a, mut b) = (Endpoint::new(a, &shape), Endpoint::new(b, &shape));
    let threads =
        [a.workers.remove(0).spawn(eal(), Some(0)).unwrap(), b.workers.remove(0).spawn(eal(), None).unwrap()];
    a.accept();
    b.accept();
    let pair = connect(&a, &b, Mtu::Mtu1024);
    every_operation(&a, &b, &pair, &|until| {
        let end = Instant::now() + Duration::from_secs(10);
        while !until() {
            assert!(Instant::now() < end, "no completion within ten seconds");
            std::thread::yield_now();
        }
    });
    for thread in threads {
        assert!(thread.stop());
    }
}
