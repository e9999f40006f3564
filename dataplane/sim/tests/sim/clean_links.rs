//! On clean links everything is done once, and nothing is said that need not be.

use crate::support::*;
use engine::QpType;
use sim::{Options, Traffic, assert_no_fault_of_ours, assert_silent, for_each_seed};
use wire::Mtu;

#[test]
fn every_operation_both_ways_at_every_mtu() {
    for mtu in Mtu::ALL {
        for v6 in [false, true] {
            for_each_seed(2, |seed| {
                let (mut world, a, b) = two(seed);
                let options = Options { mtu, v6, ..Options::default() };
                let (qa, qb) = world.connect(QpType::Rc, a, b, &options);
                let there = Traffic::post(&mut world, qa, qb, &options, &rc_mix(60));
                let back = Traffic::post(&mut world, qb, qa, &options, &rc_mix(60));
                world.run().unwrap();
                there.assert_all_done(&world);
                back.assert_all_done(&world);
                for endpoint in [a, b] {
                    assert_no_fault_of_ours(&world, endpoint);
                }
                assert_silent(&mut world);
            });
        }
    }
}

#[test]
fn many_qps_share_a_link() {
    for_each_seed(3, |seed| {
        let (mut world, a, b) = two(seed);
        let options = Options::default();
        let pairs: Vec<_> = (0..8).map(|_| world.connect(QpType::Rc, a, b, &options)).collect();
        let traffic: Vec<_> = pairs
            .iter()
            .flat_map(|&(qa, qb)| [(qa, qb), (qb, qa)])
            .map(|(from, to)| Traffic::post(&mut world, from, to, &options, &rc_mix(20)))
            .collect();
        world.run().unwrap();
        for traffic in &traffic {
            traffic.assert_all_done(&world);
        }
        assert_no_fault_of_ours(&world, a);
        assert_silent(&mut world);
    });
}

#[test]
fn a_queue_is_used_again_and_again() {
    for_each_seed(2, |seed| {
        let (mut world, a, b) = two(seed);
        let options = Options { depth: 16, ..Options::default() };
        let (qa, qb) = world.connect(QpType::Rc, a, b, &options);
        for _ in 0..20 {
            let traffic = Traffic::post(&mut world, qa, qb, &options, &rc_mix(16));
            world.run().unwrap();
            traffic.assert_all_done(&world);
        }
        assert_no_fault_of_ours(&world, b);
    });
}

#[test]
fn the_same_seed_gives_the_same_run() {
    let run = |seed| {
        let (mut world, a, b) = two(seed);
        let options = Options::default();
        world.set_faults(sim::Faults { loss: sim::Rate::percent(5), ..sim::Faults::default() });
        let (qa, qb) = world.connect(QpType::Rc, a, b, &options);
        Traffic::post(&mut world, qa, qb, &options, &rc_mix(40));
        world.run().unwrap();
        (world.history(), world.now(), world.frames_sent())
    };
    assert_eq!(run(7), run(7));
    assert_ne!(run(7), run(8));
}
