//! PSN sequence NAKs: all before is acknowledged, all from there goes out again with the opcodes it had.

use super::*;
use crate::counters::{Counter, DropReason};
use wire::Psn;

#[test]
fn a_nak_at_the_first_packet_repeats_the_reth() {
    let (mut rig, region) = rc();
    rig.post_send(wr(1, SendOp::Send, &[]));
    rig.post_send(wr(2, SendOp::WriteImm(REMOTE, [1; 4]), &[region.sge(0, 300)]));
    rig.sent();
    nak(&mut rig, 0x101, NakCode::PsnSequence);
    completes(&rig, &[(1, WcStatus::Success)]);
    sends(&mut rig, &["101 WRITE First 256 @7f000000+300", "102 WRITE Last w/ Imm 44 A imm([1, 1, 1, 1])"]);
    assert_eq!(rig.count(Counter::PacketSeqErr), 1);
    assert_eq!(rig.count(Counter::Retransmitted), 2);
}

#[test]
fn a_nak_inside_a_message_goes_on_with_the_opcodes_it_had() {
    let (mut rig, region) = rc();
    rig.post_send(wr(1, SendOp::Write(REMOTE), &[region.sge(0, 1000)]));
    rig.post_send(wr(2, SendOp::Send, &[]));
    rig.sent();
    nak(&mut rig, 0x102, NakCode::PsnSequence);
    let sent = rig.sent();
    assert_eq!(show(&sent), ["102 WRITE Middle 256", "103 WRITE Last 232 A", "104 SEND Only 0 A"]);
    assert_eq!(sent[0].payload, pattern(512, 256));
    ack(&mut rig, 0x104);
    completes(&rig, &[(1, WcStatus::Success), (2, WcStatus::Success)]);
}

/// Who sends without a copy wants to know.
#[test]
fn what_is_sent_again_says_so() {
    let (mut rig, region) = rc();
    let again = |rig: &mut Rig| rig.sent().iter().map(|packet| packet.again).collect::<Vec<_>>();
    rig.post_send(wr(1, SendOp::Write(REMOTE), &[region.sge(0, 700)]));
    assert_eq!(again(&mut rig), [false; 3]);
    rig.post_send(wr(2, SendOp::Send, &[]));
    nak(&mut rig, 0x101, NakCode::PsnSequence);
    let sent = again(&mut rig);
    assert_eq!(sent, [true, true, false], "the SEND goes out for the first time");
}

#[test]
fn new_requests_follow_what_is_repeated() {
    let (mut rig, region) = rc();
    rig.post_send(wr(1, SendOp::Send, &[region.sge(0, 300)]));
    rig.sent();
    nak(&mut rig, 0x101, NakCode::PsnSequence);
    rig.post_send(wr(2, SendOp::Send, &[]));
    sends(&mut rig, &["101 SEND Last 44 A", "102 SEND Only 0 A"]);
    assert_eq!(rig.count(Counter::Retransmitted), 1);
}

#[test]
fn more_naks_for_the_same_gap_do_not_count() {
    let (mut rig, _) = rc_with(QpAttr { retry_cnt: 1, ..attributes() });
    for id in 1..=3 {
        rig.post_send(wr(id, SendOp::Send, &[]));
    }
    rig.sent();
    for _ in 0..3 {
        nak(&mut rig, 0x100, NakCode::PsnSequence);
    }
    sends(&mut rig, &["100 SEND Only 0 A", "101 SEND Only 0 A", "102 SEND Only 0 A"]);
    nak(&mut rig, 0x100, NakCode::PsnSequence);
    sends(&mut rig, &[]);
    assert_eq!(rig.count(Counter::PacketSeqErr), 1);
    assert_eq!(rig.dropped(DropReason::StaleResponse), 3);
    // A NAK further on tells of progress, and of another gap.
    nak(&mut rig, 0x101, NakCode::PsnSequence);
    completes(&rig, &[(1, WcStatus::Success)]);
    sends(&mut rig, &["101 SEND Only 0 A", "102 SEND Only 0 A"]);
    assert_eq!(rig.count(Counter::PacketSeqErr), 2);
}

#[test]
fn after_a_timeout_a_nak_means_something_again() {
    let (mut rig, _) = rc();
    rig.post_send(wr(1, SendOp::Send, &[]));
    rig.post_send(wr(2, SendOp::Send, &[]));
    rig.sent();
    rig.advance(100_000_000);
    rig.sent();
    nak(&mut rig, 0x100, NakCode::PsnSequence);
    sends(&mut rig, &["100 SEND Only 0 A", "101 SEND Only 0 A"]);
}

#[test]
fn a_nak_behind_an_unfinished_read_goes_back_to_the_read() {
    let (mut rig, region) = rc();
    rig.post_send(wr(1, SendOp::Read(REMOTE), &[region.sge(0, 8)]));
    rig.post_send(wr(2, SendOp::Send, &[]));
    rig.post_send(wr(3, SendOp::Send, &[]));
    rig.sent();
    nak(&mut rig, 0x101, NakCode::PsnSequence);
    sends(&mut rig, &["100 READ Request 0 A @7f000000+8", "101 SEND Only 0 A", "102 SEND Only 0 A"]);
    assert_eq!(rig.count(Counter::ImpliedNakSeqErr), 1);
    assert_eq!(rig.count(Counter::PacketSeqErr), 0);
}

/// Found by the simulator: the cursor stayed in what was acknowledged, and nothing was ever sent again.
#[test]
fn an_ack_that_overtakes_what_is_repeated_takes_the_cursor_along() {
    let (mut rig, region) = rc();
    rig.post_send(wr(1, SendOp::Write(REMOTE), &[region.sge(0, 1000)]));
    rig.sent();
    nak(&mut rig, 0x100, NakCode::PsnSequence);
    assert_eq!(show(&rig.sent_into(1)), ["100 WRITE First 256 @7f000000+1000"]);
    // The packets that seemed lost had only been late.
    ack(&mut rig, 0x102);
    sends(&mut rig, &["103 WRITE Last 232 A"]);
    ack(&mut rig, 0x103);
    completes(&rig, &[(1, WcStatus::Success)]);
}

#[test]
fn retries_run_out_without_progress() {
    let (mut rig, _) = rc_with(QpAttr { retry_cnt: 0, ..attributes() });
    rig.post_send(wr(1, SendOp::Send, &[]));
    rig.post_send(wr(2, SendOp::Send, &[]));
    rig.sent();
    nak(&mut rig, 0x100, NakCode::PsnSequence);
    completes(&rig, &[(1, WcStatus::RetryExcErr), (2, WcStatus::WrFlushErr)]);
    assert_eq!((rig.state(), rig.count(Counter::RetryExceeded)), (QpState::Err, 1));
}

#[test]
fn going_back_works_across_the_wrap() {
    let (mut rig, region) = rc_with(QpAttr { sq_psn: Psn::new(0xFF_FFFE), ..attributes() });
    rig.post_send(wr(1, SendOp::Write(REMOTE), &[region.sge(0, 1000)]));
    rig.sent();
    nak(&mut rig, 0, NakCode::PsnSequence);
    sends(&mut rig, &["0 WRITE Middle 256", "1 WRITE Last 232 A"]);
    nak(&mut rig, 1, NakCode::PsnSequence);
    sends(&mut rig, &["1 WRITE Last 232 A"]);
    ack(&mut rig, 1);
    completes(&rig, &[(1, WcStatus::Success)]);
}
