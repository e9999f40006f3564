//! Faults of our own side: they end a request when its turn comes, after all before it.

use super::*;
use crate::queue::PostError;
use crate::{Access, PdId, QpState};
use wire::LKey;

/// Posts a good SEND, the bad request and another SEND; the bad one must end with `status`.
#[track_caller]
fn fails(rig: &mut Rig, bad: SendWr, status: WcStatus) {
    rig.post_send(wr(1, SendOp::Send, &[]));
    rig.post_send(SendWr { wr_id: 2, ..bad });
    rig.post_send(wr(3, SendOp::Send, &[]));
    sends(rig, &["100 SEND Only 0 A"]);
    assert!(rig.engine.is_idle());
    assert_eq!(rig.state(), QpState::Rts);
    ack(rig, 0x100);
    completes(rig, &[(1, WcStatus::Success), (2, status), (3, WcStatus::WrFlushErr)]);
    assert_eq!(rig.state(), QpState::Err);
}

#[test]
fn an_unknown_key() {
    let (mut rig, region) = rc();
    let sge = Sge { lkey: LKey::new(0xBAD_0000), ..region.sge(0, 4) };
    fails(&mut rig, wr(2, SendOp::Send, &[region.sge(0, 4), sge]), WcStatus::LocProtErr);
}

#[test]
fn a_range_outside_of_the_region() {
    let (mut rig, region) = rc();
    fails(&mut rig, wr(2, SendOp::Send, &[region.sge(0x8_0000 - 3, 4)]), WcStatus::LocProtErr);
}

#[test]
fn a_region_of_another_pd() {
    let (mut rig, _) = rc();
    let foreign = rig.region_of(PdId(PD.0 + 1), 64, Access::LOCAL_WRITE);
    fails(&mut rig, wr(2, SendOp::Write(REMOTE), &[foreign.sge(0, 4)]), WcStatus::LocProtErr);
}

#[test]
fn a_result_buffer_that_may_not_be_written() {
    for op in [SendOp::Read(REMOTE), SendOp::FetchAdd { remote: REMOTE, add: 1 }] {
        let (mut rig, _) = rc();
        let constant = rig.region(64, Access::empty());
        fails(&mut rig, wr(2, op, &[constant.sge(0, 8)]), WcStatus::LocProtErr);
    }
}

#[test]
fn data_to_send_needs_no_right_to_write() {
    let (mut rig, _) = rc();
    let constant = rig.region(64, Access::empty());
    rig.post_send(wr(1, SendOp::Send, &[constant.sge(0, 8)]));
    sends(&mut rig, &["100 SEND Only 8 A"]);
}

#[test]
fn an_atomic_result_that_is_not_eight_bytes() {
    for len in [0, 7, 9] {
        let (mut rig, region) = rc();
        let atomic = SendOp::CompareSwap { remote: REMOTE, compare: 0, swap: 0 };
        fails(&mut rig, wr(2, atomic, &[region.sge(0, len)]), WcStatus::LocLenErr);
    }
}

#[test]
fn a_message_above_the_limit_is_refused_at_the_post() {
    let (rig, region) = rc();
    for lens in [&[1 << 31, 1][..], &[u32::MAX, u32::MAX]] {
        let sges: Vec<Sge> = lens.iter().map(|&len| region.sge(0, len)).collect();
        assert_eq!(rig.shared.post_send(wr(1, SendOp::Send, &sges)), Err(PostError::TooLong));
    }
}

fn get_past(rig: &Rig, mut wr: SendWr) {
    rig.shared.sq().push(&mut wr, wire::Srqn::default()).unwrap();
    // The next post rings.
    rig.shared.answer();
}

#[test]
fn a_request_that_got_past_the_post_checks_fails_here() {
    let (mut rig, region) = rc();
    get_past(&rig, wr(1, SendOp::Send, &[region.sge(0, 1 << 31), region.sge(0, 1)]));
    rig.post_send(wr(2, SendOp::Send, &[]));
    sends(&mut rig, &[]);
    completes(&rig, &[(1, WcStatus::LocLenErr), (2, WcStatus::WrFlushErr)]);

    let mut rig = Rig::new(QpType::Uc);
    get_past(&rig, wr(1, SendOp::SendInv(REMOTE.rkey), &[]));
    rig.post_send(wr(2, SendOp::Send, &[]));
    sends(&mut rig, &[]);
    completes(&rig, &[(1, WcStatus::LocQpOpErr), (2, WcStatus::WrFlushErr)]);

    let (mut rig, _) = rc();
    get_past(&rig, inline(1, SendOp::Read(REMOTE), b"x"));
    rig.post_send(wr(2, SendOp::Send, &[]));
    sends(&mut rig, &[]);
    completes(&rig, &[(1, WcStatus::LocQpOpErr), (2, WcStatus::WrFlushErr)]);
}

#[test]
fn a_region_that_goes_while_it_is_sent() {
    let (mut rig, region) = rc();
    rig.post_send(wr(1, SendOp::Send, &[]));
    rig.post_send(wr(2, SendOp::Send, &[region.sge(0, 600)]));
    rig.post_send(wr(3, SendOp::Send, &[]));
    assert_eq!(rig.sent_into(2).len(), 2);
    rig.memory.remove(region.id);
    sends(&mut rig, &[]);
    assert_eq!(rig.state(), QpState::Rts);
    ack(&mut rig, 0x100);
    completes(&rig, &[(1, WcStatus::Success), (2, WcStatus::LocProtErr), (3, WcStatus::WrFlushErr)]);
}

#[test]
fn a_region_that_goes_before_a_repetition_which_a_late_ack_spares() {
    let (mut rig, region) = rc();
    rig.post_send(wr(1, SendOp::Send, &[]));
    rig.post_send(wr(2, SendOp::Send, &[region.sge(0, 4)]));
    rig.sent();
    rig.advance(100_000_000);
    rig.memory.remove(region.id);
    sends(&mut rig, &["100 SEND Only 0 A"]);
    ack(&mut rig, 0x101);
    completes(&rig, &[(1, WcStatus::Success), (2, WcStatus::Success)]);
    rig.post_send(wr(3, SendOp::Send, &[]));
    sends(&mut rig, &["102 SEND Only 0 A"]);
}

#[test]
fn requests_before_a_faulty_one_are_still_retried() {
    let (mut rig, region) = rc();
    rig.post_send(wr(1, SendOp::Send, &[]));
    rig.post_send(wr(2, SendOp::Send, &[region.sge(0x8_0000, 1)]));
    rig.sent();
    rig.advance(100_000_000);
    sends(&mut rig, &["100 SEND Only 0 A"]);
    ack(&mut rig, 0x100);
    completes(&rig, &[(1, WcStatus::Success), (2, WcStatus::LocProtErr)]);
}
