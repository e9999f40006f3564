//! RNR: a SEND waits for its receive, or gives up after the retries that it was given.

use crate::support::*;
use engine::{Counter, QpState, QpType, WcStatus};
use sim::{Faults, Kind, Mix, Options, Rate, Traffic, assert_silent, for_each_seed};

const MIX: Mix = Mix { requests: 40, max_len: 5_000, kinds: Kind::RC };

#[test]
fn receives_that_come_late_are_waited_for() {
    for loss in [0, 5] {
        for_each_seed(6, |seed| {
            let (mut world, a, b) = two(seed);
            world.set_faults(Faults { loss: Rate::percent(loss), ..Faults::default() });
            // rnr_retry 7 is without end.
            let options = Options { rnr_retry: 7, ..Options::default() };
            let (qa, qb) = world.connect(QpType::Rc, a, b, &options);
            let traffic = Traffic::prepare(&mut world, qa, qb, &options, &MIX);
            traffic.post_sends(&mut world, &options);
            let waiting = world.run_for(20_000_000);
            assert!(waiting.is_err(), "it goes on asking");
            assert!(world.counters(b).get(Counter::RnrNakSent) > 0);
            traffic.post_receives(&mut world);
            world.run().unwrap();
            traffic.assert_all_done(&world);
            assert_silent(&mut world);
        });
    }
}

#[test]
fn a_receive_that_never_comes_ends_the_retries() {
    for_each_seed(3, |seed| {
        let (mut world, a, b) = two(seed);
        let options = Options { rnr_retry: 2, ..Options::default() };
        let (qa, qb) = world.connect(QpType::Rc, a, b, &options);
        world.post_send(qa, send(1, b"nobody waits for this")).unwrap();
        world.post_send(qa, send(2, b"nor for this")).unwrap();
        world.run().unwrap();
        assert_eq!(
            statuses(&world.send_cqes(qa)),
            [(1, WcStatus::RnrRetryExcErr), (2, WcStatus::WrFlushErr)]
        );
        assert_eq!((world.state(qa), world.state(qb)), (QpState::Err, QpState::Rts));
        // The first attempt and two more.
        assert_eq!(world.counters(b).get(Counter::RnrNakSent), 3);
        assert_silent(&mut world);
    });
}
