//! Which frames a clause strikes.

use crate::support::{arp, dropped, frame, stage, tx};
use impair::{Direction, Stage};

#[test]
fn every_counts_frames() {
    assert_eq!(dropped(&mut stage("drop every 3"), 10), [3, 6, 9]);
    assert_eq!(dropped(&mut stage("drop every 1"), 3), [1, 2, 3]);
}

#[test]
fn packet_names_one() {
    assert_eq!(dropped(&mut stage("drop packet 4"), 10), [4]);
}

#[test]
fn times_ends_a_clause() {
    assert_eq!(dropped(&mut stage("drop every 2 times 2"), 10), [2, 4]);
    assert_eq!(dropped(&mut stage("drop 100% times 3"), 10), [1, 2, 3]);
}

#[test]
fn a_packet_named_by_psn_is_struck_once_unless_all_are_meant() {
    assert_eq!(dropped(&mut stage("drop psn=5"), 4), [1]);
    assert_eq!(dropped(&mut stage("drop psn=5 times 2"), 4), [1, 2]);
    assert_eq!(dropped(&mut stage("drop psn=5 times all"), 4), [1, 2, 3, 4]);
    assert_eq!(dropped(&mut stage("drop psn=5 every 2"), 4), [2, 4]);
}

#[test]
fn filters_look_into_the_bth_and_all_must_hold() {
    let struck = |plan: &str, qpn, psn| tx(&mut stage(plan), &frame(qpn, psn)).is_dropped();
    assert!(struck("drop psn=100 qp=0x12", 0x12, 100));
    assert!(!struck("drop psn=100 qp=0x12", 0x13, 100));
    assert!(!struck("drop psn=100 qp=0x12", 0x12, 101));
    assert!(struck("drop opcode=rc_send_only", 1, 1));
    assert!(struck("drop opcode=0x04", 1, 1));
    assert!(!struck("drop opcode=uc_send_only", 1, 1));
}

#[test]
fn the_nth_packet_of_a_qp_counts_that_qp_only() {
    let mut stage = stage("drop packet 2 qp=0x12");
    let fates = [0x11, 0x12, 0x11, 0x12, 0x12].map(|qpn| tx(&mut stage, &frame(qpn, 1)).is_dropped());
    assert_eq!(fates, [false, false, false, true, false]);
}

#[test]
fn a_clause_without_direction_counts_each_way_for_itself() {
    let both = |stage: &mut Stage| {
        let frame = frame(1, 1);
        [Direction::Rx, Direction::Tx, Direction::Rx, Direction::Tx]
            .map(|way| stage.decide(0, way, &frame, frame.len()).is_dropped())
    };
    assert_eq!(both(&mut stage("drop packet 2")), [false, false, true, true]);
    assert_eq!(both(&mut stage("drop rx 100%")), [true, false, true, false]);
    assert_eq!(both(&mut stage("drop tx packet 1")), [false, true, false, false]);
    let only_rx = stage("drop rx 100%");
    assert!(only_rx.acts_on(Direction::Rx) && !only_rx.acts_on(Direction::Tx));
}

#[test]
fn frames_that_are_no_roce_are_struck_when_any_is_said() {
    assert!(!tx(&mut stage("drop 100%"), &arp()).is_dropped());
    assert!(tx(&mut stage("drop 100% any"), &arp()).is_dropped());
    assert!(tx(&mut stage("ce 100% any"), &arp()).is_pass(), "it has no field for the mark");
}

#[test]
fn broken_roce_frames_are_roce() {
    let mut broken = frame(1, 1);
    broken[14 + 20 + 8 + 1] |= 0x0F; // the transport version
    assert!(tx(&mut stage("drop 100%"), &broken).is_dropped());
    assert!(!tx(&mut stage("drop psn=1"), &broken).is_dropped(), "what its BTH says is not believed");
}

#[test]
fn frames_of_any_length_pass() {
    let mut stage = stage("corrupt 3 bits 100% any; truncate 100% any; ce 100% any; delay 0ns 100% any");
    let whole = frame(1, 1);
    for len in 0..=whole.len() {
        let mut cut = whole[..len].to_vec();
        let verdict = tx(&mut stage, &cut.clone());
        let kept = verdict.apply(&mut cut);
        assert!(kept <= len && (kept >= 14 || kept == len));
    }
}
