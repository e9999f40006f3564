//! What each action does to a frame.

use crate::support::{frame, frame_over, is_right, stage, tx};
use impair::{Counters, Direction, Effect, Hold, Stage};
use wire::{Frame, RoceVersion};

fn counted(stage: &Stage) -> Vec<(&'static str, u64)> {
    let counters: &Counters = stage.counters();
    counters.iter().filter(|(_, value)| *value != 0).collect()
}

#[test]
fn a_dropped_frame_is_seen_by_no_further_clause() {
    let mut stage = stage("drop every 2; duplicate 100%");
    let verdicts = [tx(&mut stage, &frame(1, 1)), tx(&mut stage, &frame(1, 2))];
    assert_eq!(verdicts.each_ref().map(|verdict| verdict.is_dropped()), [false, true]);
    assert_eq!(verdicts.each_ref().map(|verdict| verdict.copies()), [1, 0]);
    assert_eq!(counted(&stage), [("impair_dropped", 1), ("impair_duplicated", 1)]);
}

#[test]
fn corrupt_flips_exactly_so_many_bits_behind_the_ethernet_header() {
    for bits in 1..=3 {
        let mut stage = stage(&format!("corrupt {bits} bits 100%"));
        for psn in 0..500 {
            let good = frame(0x11, psn);
            let mut bad = good.clone();
            let verdict = tx(&mut stage, &good);
            assert_eq!(verdict.apply(&mut bad), good.len());
            let flipped: u32 = good.iter().zip(&bad).map(|(a, b)| (a ^ b).count_ones()).sum();
            assert_eq!(flipped, bits);
            assert_eq!(good[..14], bad[..14]);
        }
        assert_eq!(stage.counters().get(Effect::Corrupted), 500);
    }
}

#[test]
fn truncate_cuts_to_the_length_said_or_anywhere_behind_ethernet() {
    let good = frame(0x11, 1);
    let mut fixed = stage("truncate to 64 100%");
    assert_eq!(tx(&mut fixed, &good).apply(&mut good.clone()), 64);
    assert_eq!(tx(&mut fixed, &good[..64]).len(), None, "short enough already");
    assert_eq!(fixed.counters().get(Effect::Truncated), 1);

    let mut anywhere = stage("truncate 100%");
    let lengths: Vec<_> = (0..2000).map(|_| tx(&mut anywhere, &good).len().unwrap()).collect();
    assert_eq!(lengths.iter().min(), Some(&14));
    assert_eq!(lengths.iter().max(), Some(&(good.len() - 1)));
}

#[test]
fn a_cut_frame_has_no_changes_beyond_its_end() {
    let good = frame(0x11, 1);
    for plan in ["corrupt 3 bits 100%; truncate to 30 100%", "truncate to 30 100%; corrupt 3 bits 100%"] {
        let mut stage = stage(plan);
        for _ in 0..200 {
            let verdict = tx(&mut stage, &good);
            assert!(verdict.changes().iter().all(|change| change.at < 30), "{plan}: {verdict:?}");
        }
    }
}

#[test]
fn a_marked_frame_is_right_and_says_ce() {
    let ways = [
        (RoceVersion::V2, ["192.0.2.1", "192.0.2.2"]),
        (RoceVersion::V2, ["2001:db8::1", "2001:db8::2"]),
        (RoceVersion::V1, ["fe80::1", "fe80::2"]),
    ];
    for (version, addresses) in ways {
        let mut stage = stage("ce 100%");
        let good = frame_over(version, addresses, 0x11, 1);
        let mut marked = good.clone();
        tx(&mut stage, &good).apply(&mut marked);
        assert!(is_right(&marked), "{addresses:?}: IPv4 checksum and iCRC hold");
        let parsed = Frame::parse(&marked, marked.len()).unwrap();
        assert_eq!(
            (parsed.ecn(), parsed.dscp(), parsed.flow_label),
            (3, 0x12, { Frame::parse(&good, good.len()).unwrap().flow_label })
        );
        assert!(tx(&mut stage, &marked).is_pass(), "it is marked already");
        assert_eq!(stage.counters().get(Effect::CeMarked), 1);
    }
}

#[test]
fn two_marks_are_one() {
    let mut stage = stage("ce 100%; ce 100%");
    let mut marked = frame(0x11, 1);
    tx(&mut stage, &marked.clone()).apply(&mut marked);
    assert!(is_right(&marked));
    assert_eq!(Frame::parse(&marked, marked.len()).unwrap().ecn(), 3);
    assert_eq!(stage.counters().get(Effect::CeMarked), 1);
}

#[test]
fn held_frames_are_told_how_long() {
    let good = frame(0x11, 1);
    let mut stage = stage(
        "reorder 3 packet 1; delay 50us packet 2; delay 1us..2us packet 3; delay 10us packet 2; reorder packet 2",
    );
    let mut hold = || stage.decide(1000, Direction::Tx, &good, good.len()).hold();
    assert_eq!(hold(), Some(Hold::Frames(3)));
    assert_eq!(hold(), Some(Hold::Until(61_000)), "delays add, and are stronger than frames");
    assert!(matches!(hold(), Some(Hold::Until(2000..=3000))));
    assert_eq!(hold(), None);
}

#[test]
fn a_corrupted_frame_never_passes_as_right_when_a_covered_bit_flipped() {
    // Bits that nothing covers: FECN, BECN and reserved behind them, which mean nothing here.
    const UNCOVERED: u16 = 14 + 20 + 8 + 4;
    let mut stage = stage("corrupt 3 bits 100%; seed 3");
    for psn in 0..2000 {
        let mut bad = frame(0x11, psn);
        let verdict = tx(&mut stage, &bad.clone());
        verdict.apply(&mut bad);
        if verdict.changes().iter().any(|change| change.at != UNCOVERED) {
            assert!(!is_right(&bad), "{verdict:?}");
        }
    }
}
