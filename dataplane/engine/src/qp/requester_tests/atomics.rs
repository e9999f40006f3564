//! Atomic acknowledgements.

use super::*;
use crate::counters::Counter;

fn fetch_add(id: u64, sges: &[Sge]) -> SendWr {
    wr(id, SendOp::FetchAdd { remote: REMOTE, add: 1 }, sges)
}

#[test]
fn the_original_value_arrives_in_host_order_across_sges() {
    let (mut rig, region) = rc();
    rig.post_send(fetch_add(1, &[region.sge(0, 3), region.sge(100, 5)]));
    rig.sent();
    atomic_ack(&mut rig, 0x100, 0x0102_0304_0506_0708);
    completes(&rig, &[(1, WcStatus::Success)]);
    let memory = rig.memory.content(region.id);
    let result = [&memory[0..3], &memory[100..105]].concat();
    assert_eq!(result, 0x0102_0304_0506_0708u64.to_ne_bytes());
}

#[test]
fn a_plain_ack_does_not_complete_an_atomic() {
    let (mut rig, region) = rc();
    rig.post_send(fetch_add(1, &[region.sge(0, 8)]));
    rig.post_send(wr(2, SendOp::Send, &[]));
    rig.sent();
    ack(&mut rig, 0x101);
    completes(&rig, &[]);
    sends(&mut rig, &["100 FetchAdd 0 A atomic(1, 0)", "101 SEND Only 0 A"]);
    assert_eq!(rig.count(Counter::ImpliedNakSeqErr), 1);
}

#[test]
fn an_atomic_ack_for_something_else_is_a_bad_response() {
    let (mut rig, region) = rc();
    rig.post_send(wr(1, SendOp::Read(REMOTE), &[region.sge(0, 8)]));
    rig.sent();
    atomic_ack(&mut rig, 0x100, 1);
    completes(&rig, &[(1, WcStatus::BadRespErr)]);
    assert_eq!(rig.state(), QpState::Err);
}

#[test]
fn data_for_an_atomic_is_a_bad_response() {
    let (mut rig, region) = rc();
    rig.post_send(fetch_add(1, &[region.sge(0, 8)]));
    rig.sent();
    read_response(&mut rig, Position::Only, 0x100, &[1; 8]);
    completes(&rig, &[(1, WcStatus::BadRespErr)]);
}
