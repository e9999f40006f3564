//! A full transmit ring and an empty pool: packets wait, in order, and go on.

mod common;

use common::qp::{PSN, TestMr, TestQp, sges};
use common::{Driven, Endpoint, Shape, Side, settle, sides};
use engine::{Counter, QpType, SendOp};
use wire::{Frame, Mtu, Qpn};

const QPN: Qpn = Qpn::new(0x31);
const MESSAGE: u32 = 60 * 256;

fn rig(name: &str, shape: &Shape) -> (Side, Driven, TestQp, TestMr) {
    let (peer, side) = sides(name, shape);
    let driven = Endpoint::new(side, shape).driven();
    let qp = driven.end.create_qp(0, QPN, QpType::Uc);
    driven.end.connect(&qp, Qpn::new(0x99), Mtu::Mtu256);
    let mr = driven.end.register(0x1, MESSAGE as usize);
    (peer, driven, qp, mr)
}

/// PSNs of frames, from the first, all of them right.
fn psns(frames: &[Vec<u8>]) -> Vec<u32> {
    let psn = |frame: &Vec<u8>| {
        let parsed = Frame::parse(frame, frame.len()).unwrap();
        parsed.verify_icrc(frame, [&frame[..]]).unwrap();
        parsed.bth().psn.value().wrapping_sub(PSN) & 0xFF_FFFF
    };
    frames.iter().map(psn).collect()
}

#[test]
fn a_full_ring_keeps_the_order() {
    let shape = Shape { ring: 7, ..Shape::default() };
    let (mut peer, driven, qp, mr) = rig("ring", &shape);
    let remote = engine::wr::Remote { addr: 0, rkey: wire::RKey::new(1) };
    driven.end.post(&qp, 1, SendOp::Write(remote), sges(&[mr.sge(0, MESSAGE)]));
    let mut frames = Vec::new();
    for round in 0..1000 {
        driven.poll();
        // A peer that is slow, then slower.
        if round % 3 == 0 {
            frames.extend(peer.receive(0));
        }
    }
    assert_eq!(psns(&frames), (0..60).collect::<Vec<_>>());
    let counters = driven.end.counters(0);
    assert!(counters.traffic.tx_full > 5, "{:?}", counters.traffic);
    assert_eq!((counters.traffic.tx_frames, counters.engine.get(Counter::TxPackets)), (60, 60));
    assert_eq!(counters.traffic.tx_bytes, frames.iter().map(|frame| frame.len() as u64).sum::<u64>());
}

#[test]
fn an_empty_pool_is_waited_for() {
    let shape = Shape { buffers: 40, ..Shape::default() };
    let (mut peer, driven, qp, mr) = rig("pool", &shape);
    let remote = engine::wr::Remote { addr: 0, rkey: wire::RKey::new(1) };
    let mut hoard: Vec<_> = std::iter::from_fn(|| driven.end.pool.alloc()).collect();
    assert_eq!(hoard.len(), 40);
    driven.end.post(&qp, 1, SendOp::Write(remote), sges(&[mr.sge(0, MESSAGE)]));
    settle(&[&driven]);
    assert!(peer.receive(0).is_empty());
    assert!(driven.end.counters(0).traffic.no_buffer >= 50);
    hoard.truncate(37);
    let mut frames = Vec::new();
    for _ in 0..100 {
        // Three buffers go round: less than a bulk.
        driven.poll();
        frames.extend(peer.receive(0));
    }
    assert_eq!(psns(&frames), (0..60).collect::<Vec<_>>());
    drop(hoard);
}
