//! An impairment plan at work: each kind both ways, with exact counts.

mod common;

use common::qp::{PSN, TestMr, TestQp, sges};
use common::raw::{SEND_ONLY, WRITE_ONLY, arp, bytes, packet, roce, way};
use common::{Driven, Endpoint, Shape, Side, drive, settle, sides};
use dpdk::MbufBurst;
use engine::{Counter, QpType, SendOp};
use impair::Effect;
use std::sync::Arc;
use std::time::{Duration, Instant};
use wire::{Bth, ExtHeaders, Frame, FrameError, Mtu, Psn, Qpn, RKey, Reth};
use worker::LaneCounters;

const QPN: Qpn = Qpn::new(0x31);
/// Packets of 256 bytes that a sender sends.
const PACKETS: u32 = 200;

/// A hand-made peer, and an endpoint behind a plan with a UC QP.
fn rig(name: &str, plan: &'static str) -> (Side, Driven, TestQp, TestMr) {
    let shape = Shape { impair: Some(plan), ..Shape::default() };
    let (peer, side) = sides(name, &shape);
    let driven = Endpoint::new(side, &shape).driven();
    let qp = driven.end.create_qp(0, QPN, QpType::Uc);
    driven.end.connect(&qp, Qpn::new(0x99), Mtu::Mtu256);
    let mr = driven.end.register(0x1, (PACKETS * 256) as usize);
    (peer, driven, qp, mr)
}

fn number(frame: &[u8]) -> u32 {
    let parsed = Frame::parse(frame, frame.len()).unwrap();
    parsed.bth().psn.value().wrapping_sub(PSN) & 0xFF_FFFF
}

fn is_right(frame: &[u8]) -> bool {
    Frame::parse(frame, frame.len()).is_ok_and(|parsed| parsed.verify_icrc(frame, [frame]).is_ok())
}

/// What leaves when an endpoint behind a plan sends so many packets.
fn sent(name: &str, plan: &'static str, packets: u32) -> (Vec<Vec<u8>>, LaneCounters) {
    let (mut peer, driven, qp, mr) = rig(name, plan);
    let remote = engine::wr::Remote { addr: 0, rkey: RKey::new(1) };
    driven.end.post(&qp, 1, SendOp::Write(remote), sges(&[mr.sge(0, packets * 256)]));
    let mut frames = Vec::new();
    for _ in 0..100 {
        driven.poll();
        frames.extend(peer.receive(0));
    }
    let counters = driven.end.counters(0);
    assert_eq!(counters.engine.get(Counter::TxPackets), u64::from(packets), "the engine knows of nothing");
    assert_eq!(counters.traffic.tx_frames, frames.len() as u64);
    assert!(driven.end.pool.in_use() < 32, "no buffer is lost, but for those that wait to be filled");
    (frames, counters)
}

#[test]
fn dropped_frames_do_not_leave() {
    let (frames, counters) = sent("drop", "drop every 10 tx", PACKETS);
    let numbers: Vec<_> = frames.iter().map(|frame| number(frame)).collect();
    assert_eq!(numbers, (0..PACKETS).filter(|n| n % 10 != 9).collect::<Vec<_>>());
    assert_eq!(counters.impair.get(Effect::Dropped), 20);
    assert!(counters.iter().any(|counter| counter == ("impair_dropped", 20)), "visible by its name");
}

#[test]
fn duplicated_frames_leave_twice() {
    let (frames, counters) = sent("twice", "duplicate every 4 tx", PACKETS);
    let numbers: Vec<_> = frames.iter().map(|frame| number(frame)).collect();
    let expected: Vec<_> = (0..PACKETS).flat_map(|n| if n % 4 == 3 { vec![n; 2] } else { vec![n] }).collect();
    assert_eq!(numbers, expected);
    assert!(frames.iter().all(|frame| is_right(frame)));
    assert_eq!(counters.impair.get(Effect::Duplicated), 50);
}

#[test]
fn one_frame_can_become_many() {
    let plan = "duplicate 100%; duplicate 100%; duplicate 100%; duplicate 100%; duplicate 100%; duplicate 100%; \
                duplicate 100%; duplicate 100%; duplicate 100%; duplicate 100%; duplicate 100%; duplicate 100%; \
                duplicate 100%; duplicate 100%; duplicate 100%; duplicate 100%";
    let (frames, counters) = sent("many", plan, 64);
    let numbers: Vec<_> = frames.iter().map(|frame| number(frame)).collect();
    assert_eq!(numbers, (0..64).flat_map(|n| [n; 17]).collect::<Vec<_>>());
    assert_eq!(counters.impair.get(Effect::Duplicated), 64 * 16);
}

/// A copy is one of the frame as it came, whatever else happens to that one.
#[test]
fn copies_are_spared_what_strikes_their_frame() {
    let (frames, counters) =
        sent("spared", "corrupt 2 bits every 4 tx; duplicate every 4 tx; seed 2", PACKETS);
    assert_eq!(frames.len(), 250);
    let right: Vec<_> = frames.iter().filter(|frame| is_right(frame)).map(|frame| number(frame)).collect();
    assert_eq!(right, (0..PACKETS).collect::<Vec<_>>(), "one of each");
    assert_eq!(counters.impair.get(Effect::Corrupted), 50);
}

#[test]
fn reordered_frames_leave_behind_others() {
    let (frames, counters) = sent("order", "reorder 3 every 10 tx", PACKETS);
    let numbers: Vec<_> = frames.iter().map(|frame| number(frame)).collect();
    // Frame 9 waits for 10, 11 and 12, and so on. The last one waits until nothing has come for a while.
    let mut expected: Vec<u32> = Vec::new();
    for n in (0..PACKETS).filter(|n| n % 10 != 9) {
        expected.push(n);
        if n % 10 == 2 && n > 10 {
            expected.push(n - 3);
        }
    }
    assert_eq!(numbers[..expected.len()], expected);
    assert!(numbers[expected.len()..].iter().all(|&n| n == PACKETS - 1));
    assert_eq!(counters.impair.get(Effect::Reordered), 20);
}

#[test]
fn corrupted_frames_leave_and_are_refused_by_name() {
    let (frames, counters) = sent("bits", "corrupt 2 bits every 5 tx; seed 2", PACKETS);
    assert_eq!(frames.len(), PACKETS as usize);
    let bad: Vec<_> = (0..PACKETS).filter(|&n| !is_right(&frames[n as usize])).collect();
    assert_eq!(bad, (0..PACKETS).filter(|n| n % 5 == 4).collect::<Vec<_>>());
    assert_eq!(counters.impair.get(Effect::Corrupted), 40);
}

#[test]
fn truncated_frames_leave_shorter() {
    let (frames, counters) = sent("short", "truncate to 100 every 5 tx", PACKETS);
    let short: Vec<_> = (0..PACKETS).filter(|&n| frames[n as usize].len() == 100).collect();
    assert_eq!(short, (0..PACKETS).filter(|n| n % 5 == 4).collect::<Vec<_>>());
    assert_eq!(counters.impair.get(Effect::Truncated), 40);
}

#[test]
fn marked_frames_leave_marked_and_right() {
    let (frames, counters) = sent("mark", "ce every 2 tx", PACKETS);
    for (n, frame) in frames.iter().enumerate() {
        let parsed = Frame::parse(frame, frame.len()).unwrap_or_else(|error| panic!("frame {n}: {error}"));
        assert!(is_right(frame));
        assert_eq!(parsed.ecn(), if n % 2 == 1 { 3 } else { 0 });
    }
    assert_eq!(counters.impair.get(Effect::CeMarked), 100);
}

#[test]
fn delayed_frames_leave_later() {
    let (mut peer, driven, qp, mr) = rig("late", "delay 30ms packet 1 tx");
    let remote = engine::wr::Remote { addr: 0, rkey: RKey::new(1) };
    let begin = Instant::now();
    driven.end.post(&qp, 1, SendOp::Write(remote), sges(&[mr.sge(0, 512)]));
    let mut frames = Vec::new();
    drive(&[&driven], || {
        frames.extend(peer.receive(0));
        frames.len() == 2
    });
    assert!(begin.elapsed() >= Duration::from_millis(29));
    assert_eq!(frames.iter().map(|frame| number(frame)).collect::<Vec<_>>(), [1, 0]);
    assert_eq!(driven.end.counters(0).impair.get(Effect::Delayed), 1);
}

fn write(peer: &Side, mr: &TestMr, n: u32) -> Vec<u8> {
    let bth = Bth::new(wire::Opcode(WRITE_ONLY.0 | 0x20), QPN, Psn::new(PSN + n));
    let remote = mr.remote(n as usize * 4);
    let reth = Reth { va: remote.addr, rkey: remote.rkey, dma_len: 4 };
    roce(&way(peer.at, peer.peer), &bth, &ExtHeaders::EMPTY.with(reth), &[7; 4])
}

/// Which of 40 WRITEs have been executed, in a region each place of which is one's.
fn arrived(name: &str, plan: &'static str) -> (Vec<u32>, LaneCounters) {
    let (mut peer, driven, _qp, mr) = rig(name, plan);
    for n in 0..40 {
        let frame = write(&peer, &mr, n);
        peer.send(0, &[frame]);
    }
    drive(&[&driven], || driven.end.counters(0).traffic.rx_frames >= 30);
    settle(&[&driven]);
    let written = (0..40).filter(|&n| mr.bytes(n as usize * 4, 4) == [7; 4]).collect();
    (written, driven.end.counters(0))
}

#[test]
fn frames_that_arrive_are_struck_too() {
    let all_but_fourth: Vec<u32> = (0..40).filter(|n| n % 4 != 3).collect();
    let (written, counters) = arrived("rxdrop", "drop every 4 rx");
    assert_eq!(written, all_but_fourth);
    assert_eq!((counters.impair.get(Effect::Dropped), counters.traffic.rx_frames), (10, 30));

    let (written, counters) = arrived("rxbits", "corrupt 3 bits every 4 rx; seed 1");
    assert_eq!(written, all_but_fourth);
    let refused: u64 = FrameError::ALL.iter().map(|&reason| counters.frame_errors(reason)).sum();
    assert_eq!((counters.impair.get(Effect::Corrupted), refused, counters.traffic.rx_frames), (10, 10, 40));

    let (written, counters) = arrived("rxshort", "truncate to 60 every 4 rx");
    assert_eq!(written, all_but_fourth);
    assert_eq!(counters.frame_errors(FrameError::Truncated), 10);

    let (written, counters) = arrived("rxmany", "duplicate every 4 rx; ce every 2 rx; reorder 1 every 4 rx");
    assert_eq!(written, (0..40).collect::<Vec<_>>());
    assert_eq!(counters.impair.get(Effect::Duplicated), 10);
    assert_eq!((counters.impair.get(Effect::CeMarked), counters.impair.get(Effect::Reordered)), (20, 10));
}

/// No other frame has to come for a held one to go on.
#[test]
fn a_delayed_frame_arrives_by_itself() {
    let (mut peer, driven, _qp, mr) = rig("rxlate", "delay 20ms 100% rx");
    let (begin, frame) = (Instant::now(), write(&peer, &mr, 0));
    peer.send(0, &[frame]);
    drive(&[&driven], || mr.bytes(0, 4) == [7; 4]);
    assert!(begin.elapsed() >= Duration::from_millis(19));
}

/// A frame in pieces cut anywhere is changed where the plan says.
#[test]
fn frames_in_pieces_are_struck() {
    for (name, plan) in [
        ("cut1", "corrupt 3 bits 100% rx"),
        ("cut2", "truncate to 70 100% rx"),
        ("cut3", "duplicate 100% rx"),
    ] {
        let (mut peer, driven, _qp, mr) = rig(name, plan);
        let frame = write(&peer, &mr, 0);
        let pieces: Vec<&[u8]> = frame.chunks(9).collect();
        let mbuf = packet(&peer.pool, &pieces);
        peer.send_mbuf(0, mbuf);
        settle(&[&driven]);
        let counters = driven.end.counters(0);
        let refused: u64 = FrameError::ALL.iter().map(|&reason| counters.frame_errors(reason)).sum();
        let copied = plan.starts_with("duplicate");
        assert_eq!((refused, counters.traffic.rx_frames), if copied { (0, 2) } else { (1, 1) }, "{plan}");
        assert_eq!(mr.bytes(0, 4) == [7; 4], copied, "{plan}");
    }
}

#[test]
fn other_frames_pass_unless_any_is_said() {
    for (name, plan, expected) in [("arp1", "drop 100%", 1), ("arp2", "drop 100% any", 0)] {
        let (mut peer, driven, ..) = rig(name, plan);
        let frame = arp(peer.at, [10, 0, 0, 2].into());
        peer.send(0, &[frame]);
        settle(&[&driven]);
        assert_eq!(driven.end.counters(0).traffic.slow, expected, "{plan}");
    }
}

/// More frames are to be held than there is room for: the rest pass, counted, and all come home at the end.
#[test]
fn held_frames_are_bounded_and_freed() {
    let (mut peer, driven, ..) = rig("held", "delay 100s 100% rx");
    let (pool, peer_pool) = (Arc::clone(&driven.end.pool), Arc::clone(&peer.pool));
    let frame = roce(
        &way(peer.at, peer.peer),
        &Bth::new(SEND_ONLY, Qpn::new(0x77), Psn::new(0)),
        &ExtHeaders::EMPTY,
        &[],
    );
    for _ in 0..50 {
        for _ in 0..30 {
            peer.send(0, std::slice::from_ref(&frame));
        }
        driven.poll();
    }
    settle(&[&driven]);
    let counters = driven.end.counters(0);
    assert_eq!(counters.impair.get(Effect::Delayed), 1500);
    assert_eq!(counters.impair.get(Effect::NotHeld), 1500 - 1024);
    assert_eq!(counters.traffic.rx_frames, 1500 - 1024);
    assert_eq!(peer_pool.in_use(), 1024, "held here");
    drop(driven);
    assert_eq!((pool.in_use(), peer_pool.in_use()), (0, 0));
}

#[test]
fn a_copy_without_a_buffer_is_counted() {
    let (mut peer, driven, _qp, mr) = rig("poor", "duplicate 100% rx");
    let hoard: Vec<_> = std::iter::from_fn(|| driven.end.pool.alloc()).collect();
    let frame = write(&peer, &mr, 0);
    peer.send(0, &[frame]);
    settle(&[&driven]);
    assert_eq!(driven.end.counters(0).impair.get(Effect::NotCopied), 1);
    assert_eq!(mr.bytes(0, 4), [7; 4], "the frame itself passed");
    drop(hoard);
}

/// A slow port: what the stage made of frames waits in order.
#[test]
fn a_full_ring_keeps_the_order_behind_the_stage() {
    let shape = Shape { ring: 7, impair: Some("duplicate 100% tx"), ..Shape::default() };
    let (mut peer, side) = sides("slow", &shape);
    let driven = Endpoint::new(side, &shape).driven();
    let qp = driven.end.create_qp(0, QPN, QpType::Uc);
    driven.end.connect(&qp, Qpn::new(0x99), Mtu::Mtu256);
    let mr = driven.end.register(0x1, 60 * 256);
    let remote = engine::wr::Remote { addr: 0, rkey: RKey::new(1) };
    driven.end.post(&qp, 1, SendOp::Write(remote), sges(&[mr.sge(0, 60 * 256)]));
    let mut numbers = Vec::new();
    for round in 0..2000 {
        driven.poll();
        if round % 3 == 0 {
            let mut burst = MbufBurst::<32>::new();
            peer.queues[0].0.burst(&mut burst);
            numbers.extend(burst.as_slice().iter().map(|mbuf| number(&bytes(mbuf))));
        }
    }
    assert_eq!(numbers, (0..60).flat_map(|n| [n, n]).collect::<Vec<_>>());
    assert!(driven.end.counters(0).traffic.tx_full > 5);
}

/// A worker that may sleep wakes for held frames.
#[test]
fn a_sleeping_worker_lets_held_frames_go_in_time() {
    let shape = Shape { impair: Some("delay 20ms 100% tx"), ..Shape::default() };
    let (mut peer, side) = sides("sleep", &shape);
    let mut end = Endpoint::new(side, &shape);
    let _thread = end.workers.remove(0).spawn(common::eal(), None).unwrap();
    end.accept();
    let qp = end.create_qp(0, QPN, QpType::Uc);
    end.connect(&qp, Qpn::new(0x99), Mtu::Mtu256);
    let mr = end.register(0x1, 4096);
    let remote = engine::wr::Remote { addr: 0, rkey: RKey::new(1) };
    end.post(&qp, 1, SendOp::Write(remote), sges(&[mr.sge(0, 256)]));
    let begin = Instant::now();
    let mut frames = Vec::new();
    while frames.is_empty() && begin.elapsed() < Duration::from_secs(5) {
        frames.extend(peer.receive(0));
        std::thread::sleep(Duration::from_micros(100));
    }
    assert_eq!(frames.len(), 1);
    assert!(begin.elapsed() >= Duration::from_millis(19));
}
