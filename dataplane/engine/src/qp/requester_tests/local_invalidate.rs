//! LOCAL_INV: no packet, and only after everything before it is complete.

use super::*;
use crate::status::WcOpcode;

#[test]
fn it_waits_for_all_before_it_and_holds_back_all_behind() {
    let (mut rig, _) = rc();
    let fast = rig.fast_region(64, Access::LOCAL_WRITE);
    rig.post_send(wr(1, SendOp::Send, &[fast.sge(0, 4)]));
    rig.post_send(wr(2, SendOp::LocalInv(fast.rkey()), &[]));
    rig.post_send(wr(3, SendOp::Send, &[]));
    sends(&mut rig, &["100 SEND Only 4 A"]);
    assert!(rig.engine.is_idle() && fast.mr.is_valid());
    ack(&mut rig, 0x100);
    sends(&mut rig, &["101 SEND Only 0 A"]);
    assert!(!fast.mr.is_valid());
    let cqes = rig.send_cqes();
    assert_eq!((cqes.len(), cqes[1].wr_id, cqes[1].opcode), (2, 2, WcOpcode::LocalInv));
    ack(&mut rig, 0x101);
    completes(&rig, &[(3, WcStatus::Success)]);
}

#[test]
fn unsignaled_it_completes_in_silence() {
    let (mut rig, _) = rc();
    let fast = rig.fast_region(64, Access::LOCAL_WRITE);
    rig.post_send(with_flags(wr(1, SendOp::LocalInv(fast.rkey()), &[]), SendFlags::empty()));
    sends(&mut rig, &[]);
    completes(&rig, &[]);
    assert!(!fast.mr.is_valid());
    assert_eq!(rig.shared.sq().outstanding(), 0);
}

#[test]
fn a_key_that_cannot_be_invalidated_fails_the_request() {
    let (mut rig, region) = rc();
    rig.post_send(wr(1, SendOp::Send, &[]));
    rig.post_send(wr(2, SendOp::LocalInv(region.rkey()), &[]));
    rig.post_send(wr(3, SendOp::Send, &[]));
    sends(&mut rig, &["100 SEND Only 0 A"]);
    ack(&mut rig, 0x100);
    sends(&mut rig, &[]);
    completes(&rig, &[(1, WcStatus::Success), (2, WcStatus::LocQpOpErr), (3, WcStatus::WrFlushErr)]);
    assert_eq!(rig.state(), QpState::Err);
}
