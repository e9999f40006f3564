//! Fence: the request waits for all READs and atomics before it, and for nothing else.

use super::*;

const FENCED: SendFlags = SendFlags::FENCE.union(SendFlags::SIGNALED);

#[test]
fn a_fenced_request_waits_for_reads_and_atomics() {
    let (mut rig, region) = rc();
    rig.post_send(wr(1, SendOp::Read(REMOTE), &[region.sge(0, 8)]));
    rig.post_send(wr(2, SendOp::FetchAdd { remote: REMOTE, add: 1 }, &[region.sge(8, 8)]));
    rig.post_send(wr(3, SendOp::Send, &[]));
    rig.post_send(with_flags(wr(4, SendOp::Send, &[]), FENCED));
    rig.post_send(wr(5, SendOp::Send, &[]));
    sends(
        &mut rig,
        &["100 READ Request 0 A @7f000000+8", "101 FetchAdd 0 A atomic(1, 0)", "102 SEND Only 0 A"],
    );
    read_response(&mut rig, Position::Only, 0x100, &[1; 8]);
    sends(&mut rig, &[]);
    assert!(rig.engine.is_idle());
    atomic_ack(&mut rig, 0x101, 1);
    // The SEND before it is not acknowledged yet, which does not matter.
    sends(&mut rig, &["103 SEND Only 0 A", "104 SEND Only 0 A"]);
}

#[test]
fn a_fence_with_nothing_to_wait_for_waits_for_nothing() {
    let (mut rig, _) = rc();
    rig.post_send(wr(1, SendOp::Send, &[]));
    rig.post_send(with_flags(wr(2, SendOp::Send, &[]), FENCED));
    sends(&mut rig, &["100 SEND Only 0 A", "101 SEND Only 0 A"]);
}

#[test]
fn a_fenced_read_waits_for_the_read_before_it() {
    let (mut rig, region) = rc();
    rig.post_send(wr(1, SendOp::Read(REMOTE), &[region.sge(0, 8)]));
    rig.post_send(with_flags(wr(2, SendOp::Read(REMOTE), &[region.sge(0, 8)]), FENCED));
    sends(&mut rig, &["100 READ Request 0 A @7f000000+8"]);
    read_response(&mut rig, Position::Only, 0x100, &[1; 8]);
    sends(&mut rig, &["101 READ Request 0 A @7f000000+8"]);
}
