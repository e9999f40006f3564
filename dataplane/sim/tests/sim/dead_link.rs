//! A link that carries nothing: retries run out, the QP fails, everything is flushed once, and then there is silence.

use crate::support::*;
use engine::{Counter, QpState, QpType, WcStatus};
use sim::{Faults, Options, assert_silent, for_each_seed};

const DEAD: Faults = Faults {
    loss: sim::Rate(0),
    duplication: sim::Rate(0),
    reordering: sim::Rate(0),
    corruption: sim::Rate(0),
    dead: true,
    delay_ns: 1_000,
    reorder_by_ns: 1,
    bits_per_second: 100_000_000_000,
};

#[test]
fn retries_run_out() {
    for retry_cnt in [0, 1, 7] {
        for_each_seed(1, |seed| {
            let (mut world, a, b) = two(seed);
            let options = Options { retry_cnt, ..Options::default() };
            let (qa, _) = world.connect(QpType::Rc, a, b, &options);
            world.set_faults(DEAD);
            for wr_id in 0..3 {
                world.post_send(qa, send(wr_id, b"into the void")).unwrap();
            }
            world.post_recv(qa, empty_recv(9)).unwrap();
            let begin = world.now();
            world.run().unwrap();
            let flushed = WcStatus::WrFlushErr;
            let expected = [(0, WcStatus::RetryExcErr), (1, flushed), (2, flushed)];
            assert_eq!(statuses(&world.send_cqes(qa)), expected);
            assert_eq!(statuses(&world.recv_cqes(qa)), [(9, flushed)]);
            assert_eq!(world.state(qa), QpState::Err);
            let counters = world.counters(a);
            assert_eq!(counters.get(Counter::LocalAckTimeoutErr), u64::from(retry_cnt) + 1);
            assert_eq!(counters.get(Counter::RetryExceeded), 1);
            // 4.096 µs × 2^12 each; a device may wait up to four times longer.
            let waits = (world.now() - begin) / (4_096 << 12);
            assert!((u64::from(retry_cnt) + 1..=4 * (u64::from(retry_cnt) + 1)).contains(&waits), "{waits}");
            assert_silent(&mut world);
        });
    }
}

#[test]
fn a_link_that_comes_back_in_time_is_forgiven() {
    for_each_seed(4, |seed| {
        let (mut world, a, b) = two(seed);
        let options = Options::default();
        let (qa, qb) = world.connect(QpType::Rc, a, b, &options);
        let traffic = sim::Traffic::post(&mut world, qa, qb, &options, &rc_mix(60));
        // Into the middle of it, then dark for four timeouts, then light again.
        assert!(world.run_for(10_000).is_err());
        world.set_faults(DEAD);
        assert!(world.run_for(4 * (4_096 << 12)).is_err());
        world.set_faults(Faults::default());
        world.run().unwrap();
        traffic.assert_all_done(&world);
        assert_silent(&mut world);
    });
}

#[test]
fn without_a_timeout_one_waits_for_ever_and_in_silence() {
    let (mut world, a, b) = two(1);
    let options = Options { timeout: 0, ..Options::default() };
    let (qa, _) = world.connect(QpType::Rc, a, b, &options);
    world.set_faults(DEAD);
    world.post_send(qa, send(1, b"")).unwrap();
    world.run().unwrap();
    assert_eq!((world.state(qa), world.send_cqes(qa).len()), (QpState::Rts, 0));
    assert_silent(&mut world);
}
