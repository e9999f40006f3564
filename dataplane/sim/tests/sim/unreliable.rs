//! UC and UD: what a link loses is lost, but nothing half or foreign is ever delivered.

use crate::support::*;
use engine::QpType;
use sim::{Faults, Kind, Mix, Options, Rate, Traffic, World, assert_silent, for_each_seed};

fn exchange(seed: u64, qp_type: QpType, faults: Faults) -> (World, Traffic) {
    let (mut world, a, b) = two(seed);
    world.set_faults(faults);
    let options = Options::default();
    let (from, to, kinds) = match qp_type {
        QpType::Ud => (world.create_ud(a, &options), world.create_ud(b, &options), Kind::UD),
        _ => {
            let (from, to) = world.connect(qp_type, a, b, &options);
            (from, to, Kind::UC)
        }
    };
    // A datagram is one packet, here of the port's MTU.
    let max_len = if qp_type == QpType::Ud { 4_096 } else { 9_000 };
    let traffic = Traffic::post(&mut world, from, to, &options, &Mix { requests: 100, max_len, kinds });
    world.run().unwrap();
    assert_silent(&mut world);
    (world, traffic)
}

#[test]
fn clean_links_lose_nothing() {
    for_each_seed(4, |seed| {
        let (world, traffic) = exchange(seed, QpType::Uc, Faults::default());
        traffic.assert_all_done(&world);
        let (world, traffic) = exchange(seed, QpType::Ud, Faults::default());
        assert!(traffic.assert_no_nonsense(&world, true) == 100);
    });
}

#[test]
fn on_lossy_links_whole_messages_come_in_order_or_not_at_all() {
    for qp_type in [QpType::Uc, QpType::Ud] {
        for_each_seed(8, |seed| {
            let faults = Faults { loss: Rate::percent(5), corruption: Rate::percent(2), ..Faults::default() };
            let (world, traffic) = exchange(seed, qp_type, faults);
            let arrived = traffic.assert_no_nonsense(&world, true);
            assert!((1..100).contains(&arrived), "{qp_type:?}: {arrived} messages");
        });
    }
}

#[test]
fn swapped_and_doubled_frames_make_no_mixed_message() {
    for qp_type in [QpType::Uc, QpType::Ud] {
        for_each_seed(8, |seed| {
            let some = Rate::percent(5);
            let faults = Faults { loss: some, duplication: some, reordering: some, ..Faults::default() };
            let (world, traffic) = exchange(seed, qp_type, faults);
            assert!(traffic.assert_no_nonsense(&world, false) > 0);
        });
    }
}
