//! QPs on a shared receive queue (rocev2 facts, transport section 17).

use super::help::*;
use crate::mr::PdId;
use crate::queue::{PostError, RecvQueue};
use std::sync::Arc;

const LIMIT: AsyncEvent = AsyncEvent { kind: EventKind::SrqLimitReached, source: EventSource::Srq(7) };
const LAST_WQE: AsyncEvent = AsyncEvent { kind: EventKind::QpLastWqeReached, source: EventSource::Qp(QPN) };

/// QPs on one SRQ, each with an engine of its own, as on several workers. Their regions lie alike.
fn rigs<const N: usize>(qp_type: QpType, srq: &Arc<RecvQueue>) -> [(Rig, Region); N] {
    std::array::from_fn(|_| {
        let mut rig = Rig::on_srq(qp_type, QpState::Rts, attributes(), srq);
        let buffer = rig.region(2048, ALL);
        (rig, buffer)
    })
}

fn one(qp_type: QpType) -> (Rig, Region, Arc<RecvQueue>) {
    let srq = srq(7, 16);
    let [(rig, buffer)] = rigs(qp_type, &srq);
    (rig, buffer, srq)
}

fn post(srq: &RecvQueue, wr_id: u64, buffer: &Region) {
    srq.post(receive(wr_id, &[buffer.sge(0, 1024)])).unwrap();
}

fn completed(rig: &Rig) -> Vec<(u64, WcStatus, u32)> {
    rig.recv_cqes().iter().map(|cqe| (cqe.wr_id, cqe.status, cqe.byte_len)).collect()
}

#[test]
fn receives_go_to_whichever_qp_needs_the_next_one_and_no_doorbell_is_needed() {
    let srq = srq(7, 16);
    let [(mut a, buffer), (mut b, _)] = rigs(QpType::Rc, &srq);
    (1..=3).for_each(|wr_id| post(&srq, wr_id, &buffer));
    // A takes one for a message that goes on; B has one in between.
    a.deliver(&a.packet(Send, First, FIRST, &bytes(MTU)));
    assert_eq!(srq.len(), 2, "taken at the first packet");
    b.deliver(&b.packet(SendImm, Only, FIRST, b"b").with(ImmDt([9; 4])));
    a.deliver(&a.packet(Send, Last, FIRST + 1, b"a"));
    let target = b.region(64, ALL);
    b.deliver(&b.packet(Write, First, FIRST + 1, &bytes(MTU)).with(reth(&target, 0, 0)));
    assert_eq!(completed(&a), [(1, WcStatus::Success, MTU as u32 + 1)]);
    assert_eq!(completed(&b), [(2, WcStatus::Success, 1)]);
    assert_eq!(srq.len(), 1, "a WRITE takes none");
    assert_eq!(a.raised(), []);
}

#[test]
fn a_write_with_immediate_takes_its_receive_at_the_packet_with_the_immediate() {
    let (mut rig, buffer, srq) = one(QpType::Rc);
    post(&srq, 1, &buffer);
    let target = rig.region(1024, ALL);
    rig.deliver(&rig.packet(Write, First, FIRST, &bytes(MTU)).with(reth(&target, 0, 257)));
    assert_eq!(srq.len(), 1);
    rig.deliver(&rig.packet(WriteImm, Last, FIRST + 1, b"x").with(ImmDt([1; 4])));
    assert_eq!((srq.len(), completed(&rig)), (0, vec![(1, WcStatus::Success, 257)]));
}

#[test]
fn without_a_receive_rc_is_told_to_come_again_and_datagrams_are_dropped() {
    let (mut rig, buffer, srq) = one(QpType::Rc);
    let packet = rig.packet(Send, Only, FIRST, b"x").ack_req();
    assert_eq!(acks(&rig.answer(&packet)), [(FIRST, Syndrome::RnrNak { timer: 12 }, 0)]);
    post(&srq, 1, &buffer);
    assert_eq!(acks(&rig.answer(&packet)), [ack(FIRST, 1)]);

    let (mut rig, ..) = one(QpType::Uc);
    rig.deliver(&rig.packet(Send, Only, FIRST, b"x"));
    assert_eq!(rig.dropped(DropReason::NoReceive), 1);
    let (mut rig, ..) = one(QpType::Ud);
    let deth = Deth { qkey: QKey::new(0x1234), src_qpn: PEER_QPN };
    rig.deliver(&rig.packet(Send, Only, FIRST, b"x").with(deth));
    assert_eq!(rig.dropped(DropReason::NoReceive), 1);
}

#[test]
fn receives_are_posted_to_the_srq_and_not_to_its_qps() {
    let (rig, buffer, srq) = one(QpType::Rc);
    assert_eq!(rig.shared.post_recv(receive(1, &[])), Err(PostError::Srq));
    let many: Vec<_> = (0..3).map(|_| buffer.sge(0, 1)).collect();
    let small = RecvQueue::shared(1, PD, 2, 2);
    assert_eq!(small.post(receive(1, &many)), Err(PostError::TooManySges { got: 3, max: 2 }));
    (0..2).for_each(|wr_id| small.post(receive(wr_id, &[])).unwrap());
    assert_eq!((small.post(receive(3, &[])), small.len()), (Err(PostError::Full), 2));
    assert_eq!((srq.srq(), srq.depth(), srq.len()), (Some(7), 16, 0));
}

/// rocev2 facts, transport 17: below the limit, not at it; once; until it is set again.
#[test]
fn the_limit_is_told_once_when_fewer_receives_are_left() {
    let srq = srq(7, 16);
    let [(mut a, buffer), (mut b, _)] = rigs(QpType::Rc, &srq);
    (1..=6).for_each(|wr_id| post(&srq, wr_id, &buffer));
    srq.arm_limit(4);
    a.deliver(&a.packet(Send, Only, FIRST, b"5 left"));
    b.deliver(&b.packet(Send, Only, FIRST, b"4 left"));
    assert_eq!((a.raised(), b.raised(), srq.limit()), (vec![], vec![], 4));
    b.deliver(&b.packet(Send, Only, FIRST + 1, b"3 left"));
    assert_eq!((a.raised(), b.raised(), srq.limit()), (vec![], vec![LIMIT], 0));
    a.deliver(&a.packet(Send, Only, FIRST + 1, b"2 left"));
    assert_eq!((a.raised(), b.raised()), (vec![], vec![]), "disarmed");
    (7..=9).for_each(|wr_id| post(&srq, wr_id, &buffer));
    srq.arm_limit(5);
    assert_eq!(a.raised(), [], "5 are there");
    a.deliver(&a.packet(Send, Only, FIRST + 2, b"4 left"));
    assert_eq!((a.raised(), srq.limit()), (vec![LIMIT], 0));
}

/// Who arms an empty queue, or one that is below the limit already, hears of it at the next message.
#[test]
fn a_limit_above_what_is_there_is_told_by_the_next_message() {
    let (mut rig, buffer, srq) = one(QpType::Rc);
    srq.arm_limit(1);
    assert_eq!(rig.raised(), []);
    rig.deliver(&rig.packet(Send, Only, FIRST, b"x"));
    assert_eq!((rig.raised(), srq.limit()), (vec![LIMIT], 0));
    rig.deliver(&rig.packet(Send, Only, FIRST, b"x"));
    assert_eq!(rig.raised(), []);

    (1..=2).for_each(|wr_id| post(&srq, wr_id, &buffer));
    srq.arm_limit(9);
    rig.deliver(&rig.packet(Send, Only, FIRST, b"x"));
    assert_eq!((rig.raised(), completed(&rig).len()), (vec![LIMIT], 1));
}

#[test]
fn the_keys_of_a_receive_are_those_of_the_srqs_pd() {
    for (srq_pd, key_pd, status) in [
        (PD, PD, WcStatus::Success),
        (PdId(2), PdId(2), WcStatus::Success),
        (PdId(2), PD, WcStatus::LocProtErr),
    ] {
        let srq = Arc::new(RecvQueue::shared(7, srq_pd, 4, 4));
        let mut rig = Rig::on_srq(QpType::Rc, QpState::Rts, attributes(), &srq);
        let buffer = rig.region_of(key_pd, 64, ALL);
        srq.post(receive(1, &[buffer.sge(0, 64)])).unwrap();
        let packet = rig.packet(Send, Only, FIRST, b"x");
        rig.answer(&packet);
        assert_eq!(completed(&rig)[0].1, status, "{srq_pd:?} {key_pd:?}");
    }
}

/// rocev2 facts, transport 15: the receive under way ends, those of the SRQ stay for others, and an event tells that this QP
/// completes no more of them.
#[test]
fn a_qp_in_error_leaves_the_receives_alone_and_tells_its_end() {
    let (mut rig, buffer, srq) = one(QpType::Rc);
    (1..=3).for_each(|wr_id| post(&srq, wr_id, &buffer));
    rig.deliver(&rig.packet(Send, First, FIRST, &bytes(MTU)));
    rig.modify(QpState::Err);
    assert_eq!(completed(&rig), [(1, WcStatus::WrFlushErr, 0)]);
    assert_eq!((srq.len(), rig.raised()), (2, vec![LAST_WQE]));

    // Refused by a NAK: the event comes with the end, behind the completion.
    let (mut rig, buffer, srq) = one(QpType::Rc);
    (1..=3).for_each(|wr_id| post(&srq, wr_id, &buffer));
    rig.deliver(&rig.packet(Send, First, FIRST, &bytes(MTU)));
    rig.deliver(&rig.packet(Send, Only, FIRST + 1, &[]));
    assert_eq!((completed(&rig), rig.raised()), (vec![(1, WcStatus::RemInvReqErr, 0)], vec![]));
    assert_eq!(acks(&rig.sent()), [nak(NakCode::InvalidRequest, FIRST + 1, 0)]);
    assert_eq!((srq.len(), rig.raised()), (2, vec![LAST_WQE]));
    assert_failed(&mut rig);
}

/// rocev2 facts, transport 19 (rxe): the receive of a broken message does not wait for the QP's next one.
#[test]
fn a_broken_uc_message_completes_its_receive_in_error() {
    // Its Last is lost: the next packet is a Last behind a gap, a beginning behind a gap, or one in sequence.
    for (at, psn) in [(Last, 2), (Only, 2), (First, 2), (Only, 1)] {
        let (mut rig, buffer, srq) = one(QpType::Uc);
        (1..=3).for_each(|wr_id| post(&srq, wr_id, &buffer));
        rig.deliver(&rig.packet(Send, First, FIRST, &bytes(MTU)));
        rig.deliver(&rig.packet(Send, at, FIRST + psn, &bytes(if at == First { MTU } else { 1 })));
        let mut expected = vec![(1, WcStatus::RemInvReqErr, 0)];
        expected.extend((at == Only).then_some((2, WcStatus::Success, 1)));
        assert_eq!(completed(&rig), expected, "{at:?} {psn}");
        assert_eq!((srq.len(), rig.raised()), (if at == Last { 2 } else { 1 }, vec![]));
        assert_eq!(rig.state(), QpState::Rts);
    }
    // Nothing to complete: the message was a WRITE, or had its end.
    let (mut rig, buffer, srq) = one(QpType::Uc);
    post(&srq, 1, &buffer);
    rig.deliver(&rig.packet(Write, First, FIRST, &bytes(MTU)).with(reth(&buffer, 0, 600)));
    rig.deliver(&rig.packet(Write, Only, FIRST + 5, &[]).with(reth(&buffer, 0, 0)));
    assert_eq!((completed(&rig), srq.len()), (vec![], 1));
}

#[test]
fn a_message_that_does_not_fit_completes_in_error_on_uc_and_ud() {
    let (mut rig, _, srq) = one(QpType::Uc);
    srq.post(receive(1, &[])).unwrap();
    rig.deliver(&rig.packet(Send, Only, FIRST, b"x"));
    assert_eq!(completed(&rig), [(1, WcStatus::LocLenErr, 0)]);

    let (mut rig, buffer, srq) = one(QpType::Ud);
    (1..=2).for_each(|wr_id| srq.post(receive(wr_id, &[buffer.sge(0, 44)])).unwrap());
    let deth = Deth { qkey: QKey::new(0x1234), src_qpn: PEER_QPN };
    rig.deliver(&rig.packet(Send, Only, FIRST, b"12345").with(deth));
    rig.deliver(&rig.packet(Send, Only, FIRST, b"1234").with(deth));
    assert_eq!(completed(&rig), [(1, WcStatus::LocLenErr, 0), (2, WcStatus::Success, 44)]);
    assert_eq!((rig.dropped(DropReason::ReceiveUnusable), rig.state()), (1, QpState::Rts));
}

/// The message is not broken, as it would be on UC: its packet comes again.
#[test]
fn a_packet_that_is_spoilt_on_rc_keeps_the_receive_that_its_message_has_taken() {
    let (mut rig, buffer, srq) = one(QpType::Rc);
    post(&srq, 1, &buffer);
    let packet = rig.packet(Send, Only, FIRST, &bytes(100)).ack_req();
    rig.deliver_held(&packet, true);
    assert_eq!((completed(&rig), srq.len()), (vec![], 0));
    rig.deliver_held(&packet, false);
    assert_eq!(completed(&rig), [(1, WcStatus::Success, 100)]);
}
