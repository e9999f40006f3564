//! A full sink costs nothing: the same packet is offered again later.

use super::*;
use crate::counters::Counter;

#[test]
fn sending_goes_on_where_the_sink_was_full() {
    let (mut rig, region) = rc();
    rig.post_send(wr(1, SendOp::Write(REMOTE), &[region.sge(0, 600)]));
    rig.post_send(wr(2, SendOp::Read(REMOTE), &[region.sge(0, 8)]));
    let mut lines = Vec::new();
    for _ in 0..6 {
        assert!(rig.sent_into(0).is_empty());
        lines.extend(show(&rig.sent_into(1)));
    }
    let expected = [
        "100 WRITE First 256 @7f000000+600",
        "101 WRITE Middle 256",
        "102 WRITE Last 88 A",
        "103 READ Request 0 A @7f000000+8",
    ];
    assert_eq!(lines, expected);
    assert_eq!(rig.count(Counter::TxPackets), 4);
    assert_eq!(rig.count(Counter::TxPayloadBytes), 600);
    assert_eq!(rig.count(Counter::Retransmitted), 0);
}

#[test]
fn going_back_survives_a_full_sink() {
    let (mut rig, region) = rc();
    rig.post_send(wr(1, SendOp::Send, &[region.sge(0, 1000)]));
    rig.sent();
    nak(&mut rig, 0x101, NakCode::PsnSequence);
    assert_eq!(show(&rig.sent_into(1)), ["101 SEND Middle 256"]);
    assert_eq!(show(&rig.sent_into(1)), ["102 SEND Middle 256"]);
    // What is acknowledged meanwhile is not sent again.
    ack(&mut rig, 0x102);
    sends(&mut rig, &["103 SEND Last 232 A"]);
}

#[test]
fn a_timer_that_fires_before_anything_was_resent_costs_no_retry() {
    let attr = QpAttr { retry_cnt: 1, ..attributes() };
    let (mut rig, _) = rc_with(attr);
    rig.post_send(wr(1, SendOp::Send, &[]));
    rig.sent();
    rig.advance(100_000_000);
    for _ in 0..5 {
        assert!(rig.sent_into(0).is_empty());
        rig.advance(100_000_000);
    }
    completes(&rig, &[]);
    sends(&mut rig, &["100 SEND Only 0 A"]);
}

#[test]
fn an_ack_of_what_was_to_be_sent_again_moves_the_cursor_along() {
    let (mut rig, region) = rc();
    rig.post_send(wr(1, SendOp::Send, &[region.sge(0, 300)]));
    rig.post_send(wr(2, SendOp::Send, &[region.sge(0, 600)]));
    rig.sent();
    rig.advance(100_000_000);
    // The answer to the first transmission was only late.
    ack(&mut rig, 0x102);
    completes(&rig, &[(1, WcStatus::Success)]);
    sends(&mut rig, &["103 SEND Middle 256", "104 SEND Last 88 A"]);
}
