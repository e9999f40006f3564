//! Frames that are not RoCE for us go to the control thread, bounded; its own frames go out by worker 0.

mod common;

use common::raw::{arp, bytes, packet};
use common::{Endpoint, Shape, settle, sides};
use std::net::Ipv4Addr;
use worker::{Drop, LinkConfig};

#[test]
fn slow_frames_reach_control_and_its_answers_go_out() {
    let link = LinkConfig { slow: 4, inject: 2, ..LinkConfig::default() };
    let shape = Shape { queues: 2, link, ..Shape::default() };
    let (mut peer, side) = sides("slow", &shape);
    let driven = Endpoint::new(side, &shape).driven();
    let frames: Vec<Vec<u8>> = (0..6).map(|n| arp(peer.at, Ipv4Addr::new(10, 0, 0, n))).collect();
    peer.send(1, &frames);
    settle(&[&driven]);
    let counters = driven.end.counters(1);
    assert_eq!((counters.traffic.slow, counters.dropped(Drop::SlowPathFull)), (4, 2));
    assert_eq!(driven.end.link.slow_lost(), 2);
    let got: Vec<Vec<u8>> =
        std::iter::from_fn(|| driven.end.link.take_slow()).map(|mbuf| bytes(&mbuf)).collect();
    assert_eq!(got, frames[..4], "in order, whole");

    for frame in &frames[..2] {
        driven.end.link.inject(packet(&driven.end.pool, &[frame])).unwrap();
    }
    assert!(driven.end.link.inject(packet(&driven.end.pool, &[&frames[2]])).is_err(), "bounded");
    driven.workers[1].poll_once();
    assert_eq!(driven.end.counters(1).traffic.tx_frames, 0, "worker 0 sends them");
    settle(&[&driven]);
    assert_eq!(peer.receive(0), frames[..2]);
}

#[test]
fn control_is_woken_by_a_frame() {
    let shape = Shape::default();
    let (mut peer, side) = sides("rouse", &shape);
    let driven = Endpoint::new(side, &shape).driven();
    let link = std::sync::Arc::clone(&driven.end.link);
    let control = std::thread::spawn(move || {
        let begin = std::time::Instant::now();
        loop {
            if let Some(frame) = link.take_slow() {
                return (bytes(&frame), begin.elapsed());
            }
            link.slow_waker().sleep(std::time::Duration::from_secs(30), || link.slow_is_empty());
        }
    });
    std::thread::sleep(std::time::Duration::from_millis(50));
    let frame = arp(peer.at, Ipv4Addr::new(10, 0, 0, 9));
    peer.send(0, std::slice::from_ref(&frame));
    settle(&[&driven]);
    let (got, waited) = control.join().unwrap();
    assert_eq!(got, frame);
    assert!(waited < std::time::Duration::from_secs(20), "{waited:?}");
}
