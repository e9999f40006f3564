//! A QP moves from one engine to the other with traffic in flight, again and again: nothing is lost or done twice.

use crate::support::*;
use engine::QpType;
use sim::{Faults, Options, Rate, Traffic, assert_silent, for_each_seed};

#[test]
fn both_ends_move_while_everything_flows() {
    for loss in [0, 3] {
        for_each_seed(6, |seed| {
            let (mut world, a, b) = two(seed);
            world.set_faults(Faults { loss: Rate::percent(loss), ..Faults::default() });
            let options = Options::default();
            let (qa, qb) = world.connect(QpType::Rc, a, b, &options);
            let there = Traffic::post(&mut world, qa, qb, &options, &rc_mix(60));
            let back = Traffic::post(&mut world, qb, qa, &options, &rc_mix(60));
            let mut moves = 0;
            while world.run_for(3_000).is_err() {
                let qp = if world.random_below(2) == 0 { qa } else { qb };
                world.move_home(qp);
                moves += 1;
            }
            there.assert_all_done(&world);
            back.assert_all_done(&world);
            assert!(moves > 2, "{moves} moves");
            assert_silent(&mut world);
        });
    }
}
