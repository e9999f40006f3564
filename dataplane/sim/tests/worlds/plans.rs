//! Plans: the same plan is the same world, a file holds all of one, and what fails is cut down to what matters.

use sim::plan::{Fault, Kind, Service, Side, Srq};
use sim::{Choices, Plan, play, print_trace, shrink};

#[test]
fn a_plan_survives_its_file() {
    for seed in 0..200 {
        let plan = Plan::random(seed, &Choices::default());
        assert_eq!(Plan::parse(&plan.to_text()).as_ref(), Ok(&plan), "{}", plan.to_text());
    }
}

#[test]
fn the_same_plan_gives_the_same_frames() {
    for seed in [1, 2, 3] {
        let plan = Plan::random(seed, &Choices::default());
        let [one, other] = [(); 2].map(|()| print_trace(&play(&plan, true).trace));
        assert!(one == other && one.lines().count() > 5, "seed {seed}");
    }
}

/// A byte that changes with its iCRC made right is what only an oracle can see.
#[test]
fn forged_frames_are_found_and_cut_down_to_one_request() {
    let choices = Choices { forge: 5, ..Choices::default() };
    // Wrong memory; that a repetition differs takes a loss at the right moment, which is hard to keep when requests go.
    let wrong_byte = |plan: &Plan| play(plan, false).failure.is_some_and(|why| why.contains("byte "));
    let failing = (0..20).map(|seed| Plan::random(seed, &choices)).find(wrong_byte);
    let plan = failing.expect("twenty worlds with every fifth frame forged");
    let small = shrink(&plan, 600);
    let outcome = play(&small, true);
    assert!(outcome.failure.is_some());
    assert!(small.ops.len() < plan.ops.len() && small.ops.len() <= 6, "{}", small.to_text());
    assert!(print_trace(&outcome.trace).contains("PSN"), "a trace that can be read");
}

#[test]
fn plans_that_cannot_be_are_refused_in_words() {
    let plan = Plan::random(0, &Choices::default());
    let refused = |change: fn(&mut Plan)| {
        let mut plan = plan.clone();
        change(&mut plan);
        Plan::parse(&plan.to_text()).expect_err("a plan that cannot be").to_string()
    };
    assert!(refused(|plan| plan.endpoints = 0).contains("endpoints = 0"));
    assert!(refused(|plan| plan.connections[0].mtu = 1_000).contains("choose 256"));
    assert!(refused(|plan| plan.connections[0].ends = [1, 1]).contains("the same endpoint"));
    assert!(refused(|plan| plan.ops[0].connection = 9).contains("no connection 9"));
    assert!(refused(|plan| plan.ops[1].id = plan.ops[0].id).contains("two ops have this id"));
    assert!(refused(|plan| plan.ops[0].after = Some(4_000)).contains("no op 4000"));
    assert!(
        refused(|plan| (plan.srq, plan.connections[0].shared) = (None, vec![Side::A])).contains("no [srq]")
    );
    assert!(
        refused(|plan| plan.srq = Some(Srq { depth: 2, limit: 3, receive_delay_ns: 0 }))
            .contains("limit = 3")
    );
    assert!(refused(|plan| plan.ops[0].fault = Some(Fault::BadSrqn)).contains("name no SRQ"));
    assert!(
        refused(|plan| {
            plan.srq = Some(Srq { depth: 2, limit: 0, receive_delay_ns: 0 });
            (plan.connections[0].service, plan.ops[0].from) = (Service::Xrc, Side::B);
            (plan.ops[0].connection, plan.ops[0].kind) = (0, Kind::Send);
        })
        .contains("sends nothing")
    );
    assert!(Plan::parse("seed = 1\nsede = 2\n").is_err_and(|why| why.to_string().contains("sede")));
}
