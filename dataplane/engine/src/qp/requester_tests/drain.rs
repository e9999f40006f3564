//! SQD: started messages finish, nothing new begins, and the end is told.

use super::*;
use crate::event::{AsyncEvent, EventKind, EventSource};

const DRAINED: AsyncEvent = AsyncEvent { kind: EventKind::SqDrained, source: EventSource::Qp(QPN) };

fn drain(rig: &mut Rig, notify_drained: bool) {
    let attr = QpAttr { state: QpState::Sqd, notify_drained, ..attributes() };
    let mask = QpAttrMask::STATE | QpAttrMask::EN_SQD_ASYNC_NOTIFY;
    rig.engine.modify_qp(rig.now, QPN, &attr, mask).unwrap();
}

#[test]
fn a_started_message_finishes_and_no_other_begins() {
    let (mut rig, region) = rc();
    rig.post_send(wr(1, SendOp::Send, &[region.sge(0, 600)]));
    rig.post_send(wr(2, SendOp::Send, &[]));
    assert_eq!(rig.sent_into(1).len(), 1);
    drain(&mut rig, true);
    sends(&mut rig, &["101 SEND Middle 256", "102 SEND Last 88 A"]);
    assert!(rig.engine.is_idle());
    ack(&mut rig, 0x101);
    assert_eq!(rig.raised(), []);
    ack(&mut rig, 0x102);
    assert_eq!(rig.raised(), [DRAINED]);
    completes(&rig, &[(1, WcStatus::Success)]);
    rig.modify(QpState::Sqd);
    assert_eq!(rig.raised(), []);
    rig.post_send(wr(3, SendOp::Send, &[]));
    sends(&mut rig, &[]);
    rig.modify(QpState::Rts);
    sends(&mut rig, &["103 SEND Only 0 A", "104 SEND Only 0 A"]);
    ack(&mut rig, 0x104);
    completes(&rig, &[(2, WcStatus::Success), (3, WcStatus::Success)]);
    assert_eq!(rig.raised(), []);
}

#[test]
fn nobody_is_told_who_did_not_ask() {
    let (mut rig, _) = rc();
    rig.post_send(wr(1, SendOp::Send, &[]));
    rig.sent();
    drain(&mut rig, false);
    ack(&mut rig, 0x100);
    completes(&rig, &[(1, WcStatus::Success)]);
    assert_eq!(rig.raised(), []);
}

#[test]
fn a_request_that_waits_for_a_fence_has_not_started() {
    let (mut rig, region) = rc();
    rig.post_send(wr(1, SendOp::Read(REMOTE), &[region.sge(0, 8)]));
    let fenced = SendFlags::FENCE | SendFlags::SIGNALED;
    rig.post_send(with_flags(wr(2, SendOp::Send, &[]), fenced));
    rig.sent();
    drain(&mut rig, true);
    read_response(&mut rig, Position::Only, 0x100, &[1; 8]);
    sends(&mut rig, &[]);
    assert_eq!(rig.raised(), [DRAINED]);
    rig.modify(QpState::Rts);
    sends(&mut rig, &["101 SEND Only 0 A"]);
}

#[test]
fn lost_packets_are_repeated_while_draining() {
    let (mut rig, region) = rc();
    rig.post_send(wr(1, SendOp::Send, &[region.sge(0, 300)]));
    rig.sent();
    drain(&mut rig, true);
    nak(&mut rig, 0x100, NakCode::PsnSequence);
    sends(&mut rig, &["100 SEND First 256", "101 SEND Last 44 A"]);
    rig.advance(100_000_000);
    sends(&mut rig, &["100 SEND First 256", "101 SEND Last 44 A"]);
    ack(&mut rig, 0x101);
    assert_eq!(rig.raised(), [DRAINED]);
}

#[test]
fn uc_drains_with_the_last_packet() {
    let mut rig = Rig::new(QpType::Uc);
    let region = rig.region(1000, Access::empty());
    rig.post_send(wr(1, SendOp::Send, &[region.sge(0, 600)]));
    rig.post_send(wr(2, SendOp::Send, &[]));
    rig.sent_into(1);
    drain(&mut rig, true);
    assert_eq!(rig.raised(), []);
    sends(&mut rig, &["101 SEND Middle 256", "102 SEND Last 88"]);
    assert_eq!(rig.raised(), [DRAINED]);
}

#[test]
fn a_drain_that_failed_is_not_told_later() {
    let mut rig = Rig::new(QpType::Uc);
    let region = rig.region(1000, Access::empty());
    rig.post_send(wr(1, SendOp::Send, &[region.sge(0, 600)]));
    rig.sent_into(1);
    drain(&mut rig, true);
    rig.memory.remove(region.id);
    sends(&mut rig, &[]);
    assert_eq!(rig.state(), QpState::Sqe);
    rig.modify(QpState::Rts);
    rig.post_send(wr(2, SendOp::Send, &[]));
    sends(&mut rig, &["101 SEND Only 0"]);
    assert_eq!(rig.raised(), []);
}

#[test]
fn a_drain_that_ends_in_error_is_not_told() {
    let mut rig = Rig::with_capacities(QpType::Rc, QpState::Rts, attributes(), 8, 1);
    rig.post_send(wr(1, SendOp::Send, &[]));
    rig.post_send(wr(2, SendOp::Send, &[]));
    rig.sent();
    drain(&mut rig, true);
    ack(&mut rig, 0x101);
    assert_eq!(rig.state(), QpState::Err);
    let kinds: Vec<EventKind> = rig.raised().iter().map(|event| event.kind).collect();
    assert_eq!(kinds, [EventKind::CqErr]);
}
