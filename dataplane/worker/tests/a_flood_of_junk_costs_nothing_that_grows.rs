//! Half of what arrives is junk, every kind in turn: each frame is counted by its name, the good connection loses nothing, and
//! neither memory nor output grows with the flood.

mod common;

use common::junk::{Junk, every_kind, victims};
use common::raw::{PEER_QPN, Writer, way};
use common::{Driven, Endpoint, Shape, Side, sides};
use engine::QpType;
use std::process::Command;
use wire::{FrameError, Mtu, Qpn};

const GOOD: Qpn = Qpn::new(0x77);
/// Frames of a burst, half of them good.
const BURST: usize = 32;

/// Sends bursts of which every second frame is `junk`, and takes the answers.
fn flood(peer: &mut Side, driven: &Driven, writer: &mut Writer, junk: &Junk, frames: usize) {
    for _ in 0..frames.div_ceil(BURST / 2) {
        for _ in 0..BURST / 2 {
            assert!(peer.try_send(&junk.frame) && peer.try_send(writer.next_frame()), "the ring has room");
        }
        driven.poll();
        loop {
            let answers = peer.receive(0);
            answers.iter().for_each(|answer| writer.on_answer(answer));
            if answers.is_empty() {
                break;
            }
        }
    }
}

fn named(driven: &Driven, name: &str) -> u64 {
    let counters = driven.end.counters(0);
    counters.iter().find(|&(counter, _)| counter == name).unwrap_or_else(|| panic!("no counter {name}")).1
}

/// Pages of this process that are in memory.
fn resident_pages() -> i64 {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
    statm.split(' ').nth(1).unwrap().parse().unwrap()
}

fn every_flood(name: &str, frames: usize) {
    let shape = Shape::default();
    let (mut peer, side) = sides(name, &shape);
    let driven = Endpoint::new(side, &shape).driven();
    let qp = driven.end.create_qp(0, GOOD, QpType::Rc);
    driven.end.connect(&qp, PEER_QPN, Mtu::Mtu1024);
    let mr = driven.end.register(0x1234, 4096);
    let (here, there, payload) = (peer.at, peer.peer, [7; 256]);
    let _victims = victims(&driven);
    let kinds = every_kind(here, there, &mr, &payload);
    let mut writer = Writer::new(&way(here, there), GOOD, &mr, &payload);
    // Once before anything is measured: what is made once is made then.
    kinds.iter().for_each(|junk| flood(&mut peer, &driven, &mut writer, junk, BURST));
    while driven.end.link.take_slow().is_some() {}
    let (pages, buffers) = (resident_pages(), peer.pool.in_use() + driven.end.pool.in_use());
    let slow_room = shape.link.slow as u64;
    for junk in &kinds {
        let (before, lost) = (named(&driven, junk.name), named(&driven, "drop_slow_path_full"));
        flood(&mut peer, &driven, &mut writer, junk, frames);
        let sent = (frames.div_ceil(BURST / 2) * (BURST / 2)) as u64;
        assert_eq!(named(&driven, junk.name) - before, sent, "{}: {}", junk.name, driven.end.account());
        // What is no RoCE waits for the control thread, as far as its ring goes.
        let slow = FrameError::ALL.iter().any(|reason| reason.name() == junk.name && !reason.is_roce());
        let dropped = named(&driven, "drop_slow_path_full") - lost;
        assert_eq!(dropped, if slow { sent.saturating_sub(slow_room) } else { 0 }, "{}", junk.name);
        while driven.end.link.take_slow().is_some() {}
    }
    let waiting = dpdk::Reserve::MOST as u32;
    assert!(
        peer.pool.in_use() + driven.end.pool.in_use() <= buffers + waiting,
        "every buffer came back, but for those that wait to be filled"
    );
    let grown = resident_pages() - pages;
    assert!(grown < 256, "{grown} pages more for {frames} frames of each of {} kinds", kinds.len());
    assert_eq!(
        named(&driven, "rx_write_requests"),
        writer.sent,
        "the good messages arrived: {}",
        driven.end.account()
    );
    assert_eq!(mr.bytes(0, 256), payload);
}

#[test]
fn junk_is_counted_and_takes_neither_memory_nor_good_messages() {
    every_flood("flood", 2000);
}

/// The lines that a process writes while it is flooded with so many frames of each kind.
fn lines(frames: usize) -> usize {
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "the_output_does_not_grow_with_the_flood", "--nocapture"])
        .env("FLOOD", frames.to_string())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    [output.stdout, output.stderr].concat().iter().filter(|&&byte| byte == b'\n').count()
}

#[test]
fn the_output_does_not_grow_with_the_flood() {
    if let Ok(frames) = std::env::var("FLOOD") {
        return every_flood("quiet", frames.parse().unwrap());
    }
    let (few, many) = (lines(16), lines(1600));
    assert_eq!(few, many, "no line for a frame");
}
