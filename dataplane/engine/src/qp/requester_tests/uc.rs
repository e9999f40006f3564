//! UC: nothing is acknowledged; a request completes when its last packet left.

use super::*;

fn uc() -> (Rig, Region) {
    let mut rig = Rig::new(QpType::Uc);
    let region = rig.region(0x2_0000, Access::LOCAL_WRITE);
    (rig, region)
}

#[test]
fn requests_complete_when_their_last_packet_left() {
    let (mut rig, region) = uc();
    rig.post_send(wr(1, SendOp::WriteImm(REMOTE, [1; 4]), &[region.sge(0, 600)]));
    rig.post_send(wr(2, SendOp::Send, &[]));
    assert_eq!(show(&rig.sent_into(2)), ["100 WRITE First 256 @7f000000+600", "101 WRITE Middle 256"]);
    completes(&rig, &[]);
    assert_eq!(show(&rig.sent_into(1)), ["102 WRITE Last w/ Imm 88 imm([1, 1, 1, 1])"]);
    completes(&rig, &[(1, WcStatus::Success)]);
    sends(&mut rig, &["103 SEND Only 0"]);
    completes(&rig, &[(2, WcStatus::Success)]);
}

#[test]
fn no_window_and_no_timer_hold_it() {
    let (mut rig, region) = uc();
    rig.post_send(wr(1, SendOp::Send, &[region.sge(0, 256 * 500)]));
    assert_eq!(rig.sent().len(), 500);
    assert_eq!(rig.engine.next_timeout(), None);
    completes(&rig, &[(1, WcStatus::Success)]);
    rig.advance(10_000_000_000);
    sends(&mut rig, &[]);
}

#[test]
fn a_local_fault_stops_the_send_queue_and_not_the_receive_queue() {
    let (mut rig, region) = uc();
    rig.post_recv(9, &[]);
    rig.post_send(wr(1, SendOp::Send, &[]));
    rig.post_send(wr(2, SendOp::Send, &[region.sge(0x2_0000, 1)]));
    rig.post_send(wr(3, SendOp::Send, &[]));
    sends(&mut rig, &["100 SEND Only 0"]);
    completes(&rig, &[(1, WcStatus::Success), (2, WcStatus::LocProtErr), (3, WcStatus::WrFlushErr)]);
    assert_eq!((rig.state(), rig.recv_cqes().len()), (QpState::Sqe, 0));
    rig.post_send(wr(4, SendOp::Send, &[]));
    completes(&rig, &[(4, WcStatus::WrFlushErr)]);
    rig.modify(QpState::Rts);
    rig.post_send(wr(5, SendOp::Send, &[]));
    sends(&mut rig, &["101 SEND Only 0"]);
}

#[test]
fn a_region_that_goes_in_the_middle_of_a_message() {
    let (mut rig, region) = uc();
    rig.post_send(wr(1, SendOp::Send, &[region.sge(0, 600)]));
    rig.sent_into(1);
    rig.memory.remove(region.id);
    sends(&mut rig, &[]);
    completes(&rig, &[(1, WcStatus::LocProtErr)]);
    assert_eq!(rig.state(), QpState::Sqe);
    rig.modify(QpState::Rts);
    rig.post_send(wr(2, SendOp::Send, &[]));
    sends(&mut rig, &["101 SEND Only 0"]);
}
