//! Lost READ responses: the request goes out again from the first missing byte.

use super::*;
use crate::counters::{Counter, DropReason};

fn reading(len: u32) -> (Rig, Region) {
    let (mut rig, region) = rc();
    rig.post_send(wr(1, SendOp::Read(REMOTE), &[region.sge(0, len)]));
    rig.sent();
    (rig, region)
}

#[test]
fn a_gap_restarts_the_read_in_the_middle() {
    let (mut rig, region) = reading(1000);
    read_response(&mut rig, Position::First, 0x100, &[1; 256]);
    read_response(&mut rig, Position::Middle, 0x102, &[3; 256]);
    sends(&mut rig, &["101 READ Request 0 A @7f000100+744"]);
    assert_eq!(rig.count(Counter::ImpliedNakSeqErr), 1);
    assert_eq!(rig.count(Counter::Retransmitted), 1);
    read_response(&mut rig, Position::First, 0x101, &[2; 256]);
    read_response(&mut rig, Position::Middle, 0x102, &[3; 256]);
    read_response(&mut rig, Position::Last, 0x103, &[4; 232]);
    completes(&rig, &[(1, WcStatus::Success)]);
    let expected = [&[1; 256][..], &[2; 256], &[3; 256], &[4; 232]].concat();
    assert_eq!(rig.memory.content(region.id)[..1000], expected);
}

#[test]
fn more_responses_behind_the_same_gap_restart_nothing() {
    let (mut rig, _) = reading(1000);
    read_response(&mut rig, Position::Middle, 0x101, &[1; 256]);
    sends(&mut rig, &["100 READ Request 0 A @7f000000+1000"]);
    read_response(&mut rig, Position::Middle, 0x102, &[1; 256]);
    read_response(&mut rig, Position::Last, 0x103, &[1; 232]);
    sends(&mut rig, &[]);
    assert_eq!(rig.count(Counter::ImpliedNakSeqErr), 1);
    assert_eq!(rig.dropped(DropReason::StaleResponse), 2);
}

#[test]
fn a_late_response_of_the_first_request_is_as_good() {
    let (mut rig, _) = reading(1000);
    read_response(&mut rig, Position::First, 0x100, &[1; 256]);
    read_response(&mut rig, Position::Middle, 0x102, &[3; 256]);
    rig.sent();
    read_response(&mut rig, Position::Middle, 0x101, &[2; 256]);
    read_response(&mut rig, Position::Middle, 0x102, &[3; 256]);
    read_response(&mut rig, Position::Last, 0x103, &[4; 232]);
    completes(&rig, &[(1, WcStatus::Success)]);
}

#[test]
fn an_ack_beyond_an_unfinished_read_is_an_implied_nak() {
    let (mut rig, region) = rc();
    rig.post_send(wr(1, SendOp::Send, &[]));
    rig.post_send(wr(2, SendOp::Read(REMOTE), &[region.sge(0, 300)]));
    rig.post_send(wr(3, SendOp::Send, &[]));
    rig.sent();
    ack(&mut rig, 0x103);
    completes(&rig, &[(1, WcStatus::Success)]);
    sends(&mut rig, &["101 READ Request 0 A @7f000000+300", "103 SEND Only 0 A"]);
    assert_eq!(rig.count(Counter::ImpliedNakSeqErr), 1);
    // The duplicate's ACK, sent before the READ was answered again.
    ack(&mut rig, 0x103);
    sends(&mut rig, &[]);
    read_response(&mut rig, Position::First, 0x101, &[1; 256]);
    read_response(&mut rig, Position::Last, 0x102, &[1; 44]);
    ack(&mut rig, 0x103);
    completes(&rig, &[(2, WcStatus::Success), (3, WcStatus::Success)]);
}

#[test]
fn an_ack_of_a_duplicate_before_a_read_does_not_tell_that_the_read_was_lost() {
    let (mut rig, region) = rc();
    rig.post_send(wr(1, SendOp::Send, &[]));
    rig.post_send(wr(2, SendOp::Read(REMOTE), &[region.sge(0, 8)]));
    rig.sent();
    rig.advance(100_000_000);
    sends(&mut rig, &["100 SEND Only 0 A", "101 READ Request 0 A @7f000000+8"]);
    // The peer has both: the duplicate is answered with its latest PSN.
    ack(&mut rig, 0x101);
    completes(&rig, &[(1, WcStatus::Success)]);
    sends(&mut rig, &[]);
    read_response(&mut rig, Position::Only, 0x101, &[1; 8]);
    completes(&rig, &[(2, WcStatus::Success)]);
}

#[test]
fn an_ack_of_something_new_tells_that_a_repeated_read_was_lost_again() {
    let (mut rig, region) = rc();
    rig.post_send(wr(1, SendOp::Send, &[]));
    rig.post_send(wr(2, SendOp::Read(REMOTE), &[region.sge(0, 8)]));
    rig.sent();
    rig.advance(100_000_000);
    rig.sent();
    rig.post_send(wr(3, SendOp::Send, &[]));
    rig.sent();
    ack(&mut rig, 0x102);
    sends(&mut rig, &["101 READ Request 0 A @7f000000+8", "102 SEND Only 0 A"]);
}

#[test]
fn a_timeout_restarts_a_read_where_it_stopped() {
    let (mut rig, _) = reading(600);
    read_response(&mut rig, Position::First, 0x100, &[1; 256]);
    rig.advance(100_000_000);
    sends(&mut rig, &["101 READ Request 0 A @7f000100+344"]);
}

#[test]
fn a_response_of_a_later_read_restarts_the_earlier_one() {
    let (mut rig, region) = rc();
    rig.post_send(wr(1, SendOp::Read(REMOTE), &[region.sge(0, 8)]));
    rig.post_send(wr(2, SendOp::Read(REMOTE), &[region.sge(8, 8)]));
    rig.sent();
    read_response(&mut rig, Position::Only, 0x101, &[1; 8]);
    completes(&rig, &[]);
    sends(&mut rig, &["100 READ Request 0 A @7f000000+8", "101 READ Request 0 A @7f000000+8"]);
}
