//! Many connections, one after the other and several at a time: each carries its message, and nothing of them stays. How many a second,
//! and that memory and latency stay as they were, is measured by `bench/examples/connect.rs`.

use crate::support::{counted, until};
use rockhopper::config::Drive;
use rockhopper::perf::{ConnectPlan, connect_rounds};
use rockhopper::{Endpoint, RingPair};

fn rounds(drive: Drive, rounds: u64, at_once: usize) {
    let (client, server) = Endpoint::ring_pair(&RingPair { drive, ..RingPair::default() }).unwrap();
    let plan = ConnectPlan { rounds, at_once, server: "10.82.72.2:0".parse().unwrap() };
    let mut told = 0;
    connect_rounds(&client, &server, &plan, |tenth| {
        assert_eq!(tenth.latency_ns.len(), tenth.rounds);
        told += tenth.rounds;
    })
    .unwrap();
    assert_eq!(told, rounds);
    for endpoint in [&client, &server] {
        until("an empty book", || counted(endpoint, "cm_ids") == 0);
        assert!(endpoint.stats().ports[0].qps.is_empty(), "every queue pair is gone");
        assert!(counted(endpoint, "mad_received") >= 2 * rounds);
    }
}

#[test]
fn a_thousand_one_after_the_other() {
    rounds(Drive::Caller, 1000, 1);
}

#[test]
fn a_thousand_and_twenty_at_a_time() {
    rounds(Drive::Caller, 1000, 20);
}

#[test]
fn some_hundred_between_threads() {
    rounds(Drive::Threads, 300, 10);
}
