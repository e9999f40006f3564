//! Chance: rates, seeds, and what dice depend on.

use crate::support::{dropped, frame, stage, tx};
use impair::{Direction, Effect, Plan, Stage};

#[test]
fn a_rate_is_met() {
    let many = dropped(&mut stage("drop 1%"), 100_000).len();
    // Five standard deviations around the mean of a binomial distribution.
    assert!((1000 - 160..1000 + 160).contains(&many), "{many}");
    assert_eq!(dropped(&mut stage("drop 0%"), 1000).len(), 0);
    assert_eq!(dropped(&mut stage("drop 100%"), 1000).len(), 1000);
}

#[test]
fn one_seed_gives_one_fate() {
    let fate = |plan: &str, seed| {
        let mut stage = Stage::new(&Plan::parse(plan).unwrap(), seed);
        dropped(&mut stage, 1000)
    };
    let plain = fate("drop 5%", 0);
    assert_eq!(plain, fate("drop 5%", 0));
    assert_ne!(plain, fate("drop 5%", 1), "stages of one plan differ by their seeds");
    assert_ne!(plain, fate("drop 5%; seed 7", 0), "and plans by theirs");
    assert_eq!(fate("drop 5%; seed 7", 3), fate("seed 7; drop 5%", 3));
}

#[test]
fn the_fate_of_one_way_does_not_depend_on_the_other() {
    let alone = dropped(&mut stage("drop 5%"), 500);
    let mut stage = stage("drop 5%");
    let together: Vec<_> = (1..=500)
        .filter(|n| {
            let frame = frame(0x11, 5);
            if n % 3 == 0 {
                stage.decide(0, Direction::Rx, &frame, frame.len());
            }
            tx(&mut stage, &frame).is_dropped()
        })
        .collect();
    assert_eq!(alone, together);
}

#[test]
fn a_further_clause_leaves_the_dice_of_those_before_alone() {
    assert_eq!(dropped(&mut stage("drop 5%"), 500), dropped(&mut stage("drop 5%; duplicate 50%"), 500));
}

/// No two clauses, and no two ways, are struck at the same frames.
#[test]
fn each_clause_throws_its_own_dice_on_each_way() {
    let frame = frame(0x11, 5);
    let mut both = stage("drop 50%");
    let mut fate = |way| {
        let fates = (0..200).map(|_| both.decide(0, way, &frame, frame.len()).is_dropped());
        fates.collect::<Vec<_>>()
    };
    assert_ne!(fate(Direction::Rx), fate(Direction::Tx));
    let mut two = stage("duplicate 50%; truncate to 20 50%");
    let verdicts: Vec<_> = (0..200).map(|_| tx(&mut two, &frame)).collect();
    let struck = |first| {
        verdicts
            .iter()
            .map(|verdict| match first {
                true => verdict.copies() > 0,
                false => verdict.len().is_some(),
            })
            .collect::<Vec<_>>()
    };
    assert_ne!(struck(true), struck(false));
}

#[test]
fn every_strike_is_counted() {
    let mut stage = stage("drop 1%; duplicate 1%; reorder 1%; delay 1us 1%; corrupt 1%; truncate 1%; ce 1%");
    let mut seen = [0; 7];
    for psn in 0..20_000 {
        let frame = frame(0x11, psn);
        let verdict = tx(&mut stage, &frame);
        seen[0] += u64::from(verdict.is_dropped());
        seen[1] += verdict.copies() as u64;
    }
    assert_eq!(seen[0], stage.counters().get(Effect::Dropped));
    assert_eq!(seen[1], stage.counters().get(Effect::Duplicated));
    for &effect in &Effect::ALL[..7] {
        assert!(
            (130..270).contains(&stage.counters().get(effect)),
            "{}: {:?}",
            effect.name(),
            stage.counters()
        );
    }
}
