//! RNR NAKs: everything waits for the peer's timer, then goes on from the refused packet.

use super::*;
use crate::counters::{Counter, DropReason};

/// Code 14 is 1.28 ms.
const CODE: u8 = 14;
const DELAY: u64 = 1_280_000;
const SLACK: u64 = 10_000;

fn refused(rnr_retry: u8) -> (Rig, Region) {
    let (mut rig, region) = rc_with(QpAttr { timeout: 8, rnr_retry, retry_cnt: 0, ..attributes() });
    rig.post_send(wr(1, SendOp::Send, &[]));
    rig.post_send(wr(2, SendOp::Send, &[region.sge(0, 300)]));
    rig.sent();
    rnr_nak(&mut rig, 0x101, CODE);
    (rig, region)
}

#[test]
fn everything_waits_and_then_goes_on_from_there() {
    let (mut rig, _) = refused(7);
    completes(&rig, &[(1, WcStatus::Success)]);
    rig.post_send(wr(3, SendOp::Send, &[]));
    sends(&mut rig, &[]);
    assert!(rig.engine.is_idle());
    // Longer than the ACK timeout, which does not run meanwhile.
    rig.advance(DELAY - SLACK);
    sends(&mut rig, &[]);
    rig.advance(2 * SLACK);
    sends(&mut rig, &["101 SEND First 256", "102 SEND Last 44 A", "103 SEND Only 0 A"]);
    assert_eq!(rig.count(Counter::RnrNakRetry), 1);
    assert_eq!(rig.count(Counter::LocalAckTimeoutErr), 0);
    ack(&mut rig, 0x103);
    completes(&rig, &[(2, WcStatus::Success), (3, WcStatus::Success)]);
}

#[test]
fn code_zero_is_the_longest_delay() {
    let (mut rig, _) = rc();
    rig.post_send(wr(1, SendOp::Send, &[]));
    rig.sent();
    rnr_nak(&mut rig, 0x100, 0);
    rig.advance(655_000_000);
    sends(&mut rig, &[]);
    rig.advance(400_000);
    sends(&mut rig, &["100 SEND Only 0 A"]);
}

#[test]
fn naks_during_the_wait_change_nothing() {
    let (mut rig, _) = refused(7);
    // What was behind the refused packet is out of sequence at the peer.
    nak(&mut rig, 0x101, NakCode::PsnSequence);
    rnr_nak(&mut rig, 0x101, CODE);
    sends(&mut rig, &[]);
    assert_eq!(rig.dropped(DropReason::StaleResponse), 2);
    assert_eq!((rig.count(Counter::RnrNakRetry), rig.count(Counter::PacketSeqErr)), (1, 0));
    rig.advance(DELAY + SLACK);
    sends(&mut rig, &["101 SEND First 256", "102 SEND Last 44 A"]);
}

#[test]
fn seven_is_without_end() {
    let (mut rig, _) = refused(7);
    for _ in 0..50 {
        rig.advance(DELAY + SLACK);
        assert_eq!(rig.sent().len(), 2);
        rnr_nak(&mut rig, 0x101, CODE);
    }
    assert_eq!(rig.state(), QpState::Rts);
}

#[test]
fn rnr_retries_run_out() {
    let (mut rig, _) = refused(2);
    rig.advance(DELAY + SLACK);
    rig.sent();
    rnr_nak(&mut rig, 0x101, CODE);
    rig.advance(DELAY + SLACK);
    rig.sent();
    rnr_nak(&mut rig, 0x101, CODE);
    completes(&rig, &[(1, WcStatus::Success), (2, WcStatus::RnrRetryExcErr)]);
    assert_eq!((rig.state(), rig.count(Counter::RnrRetryExceeded)), (QpState::Err, 1));
}

#[test]
fn zero_fails_at_the_first() {
    let (rig, _) = refused(0);
    completes(&rig, &[(1, WcStatus::Success), (2, WcStatus::RnrRetryExcErr)]);
}

#[test]
fn progress_restores_rnr_retries() {
    let (mut rig, _) = refused(1);
    rig.advance(DELAY + SLACK);
    rig.sent();
    rnr_nak(&mut rig, 0x102, CODE);
    // The second refusal, at 0x102, acknowledged 0x101, so the count began anew.
    assert_eq!(rig.state(), QpState::Rts);
    rig.advance(DELAY + SLACK);
    sends(&mut rig, &["102 SEND Last 44 A"]);
}

#[test]
fn a_late_ack_ends_the_wait() {
    let (mut rig, _) = refused(7);
    rig.post_send(wr(3, SendOp::Send, &[]));
    ack(&mut rig, 0x102);
    completes(&rig, &[(1, WcStatus::Success), (2, WcStatus::Success)]);
    sends(&mut rig, &["103 SEND Only 0 A"]);
}

#[test]
fn an_ack_beyond_a_read_that_was_not_taken_does_not_end_the_wait() {
    let (mut rig, region) = rc();
    rig.post_send(wr(1, SendOp::Read(REMOTE), &[region.sge(0, 8)]));
    rig.post_send(wr(2, SendOp::Send, &[]));
    rig.sent();
    rnr_nak(&mut rig, 0x100, CODE);
    ack(&mut rig, 0x101);
    rig.advance(DELAY - SLACK);
    sends(&mut rig, &[]);
    assert_eq!((rig.count(Counter::ImpliedNakSeqErr), rig.dropped(DropReason::StaleResponse)), (0, 1));
    rig.advance(2 * SLACK);
    sends(&mut rig, &["100 READ Request 0 A @7f000000+8", "101 SEND Only 0 A"]);
}

/// A READ without its response at 0x100, and a SEND at 0x101 that is refused.
fn refused_behind_a_read() -> Rig {
    let (mut rig, region) = rc_with(QpAttr { timeout: 8, rnr_retry: 0, ..attributes() });
    rig.post_send(wr(1, SendOp::Read(REMOTE), &[region.sge(0, 8)]));
    rig.post_send(wr(2, SendOp::Send, &[]));
    rig.sent();
    rnr_nak(&mut rig, 0x101, CODE);
    rig
}

#[test]
fn behind_an_unfinished_read_the_read_comes_first_and_the_refused_request_waits() {
    let mut rig = refused_behind_a_read();
    sends(&mut rig, &["100 READ Request 0 A @7f000000+8"]);
    assert_eq!(rig.count(Counter::ImpliedNakSeqErr), 1);
    read_response(&mut rig, Position::Only, 0x100, &[1; 8]);
    completes(&rig, &[(1, WcStatus::Success)]);
    sends(&mut rig, &[]);
    rig.advance(DELAY - SLACK);
    sends(&mut rig, &[]);
    rig.advance(2 * SLACK);
    sends(&mut rig, &["101 SEND Only 0 A"]);
}

#[test]
fn a_second_refusal_behind_a_read_does_not_lengthen_the_wait() {
    let mut rig = refused_behind_a_read();
    sends(&mut rig, &["100 READ Request 0 A @7f000000+8"]);
    rig.advance(DELAY / 2);
    rnr_nak(&mut rig, 0x101, CODE);
    read_response(&mut rig, Position::Only, 0x100, &[1; 8]);
    rig.advance(DELAY / 2 + SLACK);
    sends(&mut rig, &["101 SEND Only 0 A"]);
}

#[test]
fn the_timer_of_a_read_goes_on_while_a_request_behind_it_waits() {
    let mut rig = refused_behind_a_read();
    rig.sent();
    // Code 8: 1.05 ms.
    rig.advance(1_060_000);
    sends(&mut rig, &["100 READ Request 0 A @7f000000+8"]);
    assert_eq!(rig.count(Counter::LocalAckTimeoutErr), 1);
    rig.advance(DELAY);
    sends(&mut rig, &["100 READ Request 0 A @7f000000+8", "101 SEND Only 0 A"]);
}

#[test]
fn a_refusal_during_a_repetition_makes_what_it_refuses_wait() {
    let (mut rig, region) = rc();
    rig.post_send(wr(1, SendOp::Read(REMOTE), &[region.sge(0, 8)]));
    rig.post_send(wr(2, SendOp::Read(REMOTE), &[region.sge(8, 8)]));
    rig.post_send(wr(3, SendOp::Send, &[]));
    rig.sent();
    // The first response was lost: all goes out again, and then the refusal comes of what went out before.
    read_response(&mut rig, Position::Only, 0x101, &[1; 8]);
    rnr_nak(&mut rig, 0x102, CODE);
    sends(&mut rig, &["100 READ Request 0 A @7f000000+8", "101 READ Request 0 A @7f000000+8"]);
    rig.advance(DELAY + SLACK);
    sends(&mut rig, &["102 SEND Only 0 A"]);
}
