//! Fast registration: done in order, without a packet; completes in order.

use super::*;
use crate::mr::MemoryRegion;
use crate::wr::FastReg;
use wire::LKey;

fn register(mr: &Arc<MemoryRegion>, key: u32, len: u64) -> SendOp {
    let (mr, key, access) = (Arc::clone(mr), RKey::new(key), Access::LOCAL_WRITE);
    SendOp::RegMr(Arc::new(FastReg { mr, key, addr: 0x5000, len, access }))
}

fn free_region(rig: &mut Rig) -> Arc<MemoryRegion> {
    let id = rig.memory.add(vec![7; 64]);
    let mr = Arc::new(MemoryRegion::fast(PD, id, 0x9900, 64));
    rig.engine.add_mr(Arc::clone(&mr));
    mr
}

#[test]
fn the_next_request_may_use_the_key_and_completions_keep_the_order() {
    let (mut rig, _) = rc();
    let mr = free_region(&mut rig);
    let sge = Sge { addr: 0x5000, len: 4, lkey: LKey::new(0x9901) };
    rig.post_send(wr(1, SendOp::Send, &[]));
    rig.post_send(wr(2, register(&mr, 0x9901, 64), &[]));
    rig.post_send(wr(3, SendOp::Send, &[sge]));
    sends(&mut rig, &["100 SEND Only 0 A", "101 SEND Only 4 A"]);
    completes(&rig, &[]);
    ack(&mut rig, 0x100);
    completes(&rig, &[(1, WcStatus::Success), (2, WcStatus::Success)]);
    ack(&mut rig, 0x101);
    completes(&rig, &[(3, WcStatus::Success)]);
}

#[test]
fn going_back_passes_it_by() {
    let (mut rig, _) = rc();
    let mr = free_region(&mut rig);
    passes_by_when_it_goes_back(&mut rig, wr(2, register(&mr, 0x9901, 64), &[]));
}

#[test]
fn alone_it_completes_at_once_and_lets_go_of_the_region() {
    let (mut rig, _) = rc();
    let mr = free_region(&mut rig);
    rig.post_send(wr(1, register(&mr, 0x9901, 64), &[]));
    sends(&mut rig, &[]);
    completes(&rig, &[(1, WcStatus::Success)]);
    // The test's and the engine's table.
    assert_eq!(Arc::strong_count(&mr), 2);
}

#[test]
fn a_registration_that_does_not_fit_fails() {
    let (mut rig, _) = rc();
    let mr = free_region(&mut rig);
    rig.post_send(wr(1, register(&mr, 0x9901, 65), &[]));
    sends(&mut rig, &[]);
    completes(&rig, &[(1, WcStatus::LocQpOpErr)]);
    assert_eq!(rig.state(), QpState::Err);
}
