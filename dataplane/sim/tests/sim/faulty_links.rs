//! RC over links that lose, double, swap and corrupt frames: everything is done once and in order all the same.

use crate::support::*;
use engine::{Counter, QpType};
use sim::{Faults, Options, Rate, Traffic, World, assert_silent, for_each_seed};
use wire::FrameError;

/// Traffic both ways over links with these faults, verified; the world is given for more questions.
fn survives(seed: u64, faults: Faults, options: Options, requests: usize) -> (World, [sim::EndpointId; 2]) {
    let (mut world, a, b) = two(seed);
    world.set_faults(faults);
    let (qa, qb) = world.connect(QpType::Rc, a, b, &options);
    let there = Traffic::post(&mut world, qa, qb, &options, &rc_mix(requests));
    let back = Traffic::post(&mut world, qb, qa, &options, &rc_mix(requests));
    world.run().unwrap();
    there.assert_all_done(&world);
    back.assert_all_done(&world);
    assert_silent(&mut world);
    (world, [a, b])
}

fn sum(world: &World, endpoints: [sim::EndpointId; 2], counter: Counter) -> u64 {
    endpoints.iter().map(|&endpoint| world.counters(endpoint).get(counter)).sum()
}

#[test]
fn one_frame_in_a_hundred_is_lost() {
    for_each_seed(8, |seed| {
        let faults = Faults { loss: Rate::percent(1), ..Faults::default() };
        survives(seed, faults, Options::default(), 100);
    });
}

#[test]
fn one_frame_in_ten_is_lost() {
    for_each_seed(8, |seed| {
        let faults = Faults { loss: Rate::percent(10), ..Faults::default() };
        let (world, both) = survives(seed, faults, Options::default(), 60);
        assert!(sum(&world, both, Counter::Retransmitted) > 0);
    });
}

#[test]
fn every_tenth_frame_comes_twice() {
    for_each_seed(8, |seed| {
        let faults = Faults { duplication: Rate::percent(10), ..Faults::default() };
        let (world, both) = survives(seed, faults, Options::default(), 60);
        assert!(sum(&world, both, Counter::DuplicateRequest) > 0);
    });
}

#[test]
fn frames_overtake_each_other() {
    for_each_seed(8, |seed| {
        let faults = Faults { reordering: Rate::percent(10), ..Faults::default() };
        let (world, both) = survives(seed, faults, Options::default(), 60);
        assert!(sum(&world, both, Counter::OutOfSequence) > 0);
    });
}

#[test]
fn frames_come_so_late_that_they_were_sent_again_meanwhile() {
    for_each_seed(8, |seed| {
        // Longer than the ACK timeout (16.8 ms).
        let faults = Faults { reordering: Rate::percent(3), reorder_by_ns: 50_000_000, ..Faults::default() };
        survives(seed, faults, Options::default(), 60);
    });
}

#[test]
fn corrupt_frames_are_refused_by_name_and_sent_again() {
    for v6 in [false, true] {
        for_each_seed(6, |seed| {
            let faults = Faults { corruption: Rate::percent(5), ..Faults::default() };
            let options = Options { v6, ..Options::default() };
            let (world, both) = survives(seed, faults, options, 60);
            let refused: u64 = FrameError::ALL
                .iter()
                .flat_map(|&reason| both.map(|endpoint| world.refused(endpoint, reason)))
                .sum();
            assert!(refused > 0 && world.refused(both[0], FrameError::BadIcrc) > 0);
        });
    }
}

#[test]
fn everything_at_once() {
    for mtu in [wire::Mtu::Mtu256, wire::Mtu::Mtu4096] {
        for_each_seed(8, |seed| {
            let some = Rate::percent(2);
            let faults = Faults {
                loss: some,
                duplication: some,
                reordering: some,
                corruption: some,
                ..Faults::default()
            };
            survives(seed, faults, Options { mtu, ..Options::default() }, 80);
        });
    }
}

#[test]
fn one_read_at_a_time() {
    for_each_seed(4, |seed| {
        let faults = Faults { loss: Rate::percent(3), duplication: Rate::percent(3), ..Faults::default() };
        survives(seed, faults, Options { max_rd_atomic: 1, ..Options::default() }, 60);
    });
}
