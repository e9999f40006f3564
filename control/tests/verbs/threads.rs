//! Endpoints whose workers are threads, and endpoints with more than one.

use crate::support::{Pair, bytes, pattern, two_workers};
use rockhopper::config::{Drive, PollMode};
use rockhopper::{ConnectOptions, QpType, RecvWr, RingPair, SendWr};

fn traffic(pair: &Pair) {
    for turn in 0..50u8 {
        let data = pattern(turn, 20_000);
        pair.a.mr.write(0, &data).unwrap();
        pair.b.qp.post_recv(RecvWr::new(turn.into()).sge(pair.b.mr.sge(0..20_000))).unwrap();
        pair.a.qp.post_send(SendWr::send(turn.into()).sge(pair.a.mr.sge(0..20_000))).unwrap();
        assert!(pair.at_a().is_success());
        assert_eq!(pair.at_b().byte_len, 20_000);
        assert_eq!(bytes(&pair.b.mr, 0, 20_000), data);
    }
}

#[test]
fn worker_threads_move_packets_by_themselves() {
    for poll in [PollMode::Adaptive, PollMode::Busy] {
        let settings = RingPair { drive: Drive::Threads, poll, ..RingPair::default() };
        let pair = Pair::over(&settings, QpType::Rc, &ConnectOptions::default());
        traffic(&pair);
    }
}

#[test]
fn two_workers_share_the_ports_of_one_endpoint() {
    let (endpoint, left, right) = two_workers();
    assert_eq!(endpoint.drive(), Drive::Threads);
    let pairs: Vec<Pair> =
        (0..4).map(|_| Pair::of(&left, &right, QpType::Rc, &ConnectOptions::default())).collect();
    pairs.iter().for_each(traffic);
    assert_eq!(left.stats().workers.len(), 2);
}
