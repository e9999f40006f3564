//! READs and atomics in flight: at most `max_rd_atomic`, both counted together.

use super::*;

#[test]
fn reads_beyond_the_limit_wait_and_hold_back_what_is_behind() {
    let (mut rig, region) = rc_with(QpAttr { max_rd_atomic: 2, ..attributes() });
    rig.post_send(wr(1, SendOp::Read(REMOTE), &[region.sge(0, 8)]));
    rig.post_send(wr(2, SendOp::FetchAdd { remote: REMOTE, add: 1 }, &[region.sge(0, 8)]));
    rig.post_send(wr(3, SendOp::Read(REMOTE), &[region.sge(0, 8)]));
    rig.post_send(wr(4, SendOp::Send, &[]));
    sends(&mut rig, &["100 READ Request 0 A @7f000000+8", "101 FetchAdd 0 A atomic(1, 0)"]);
    assert!(rig.engine.is_idle());
    read_response(&mut rig, Position::Only, 0x100, &[1; 8]);
    sends(&mut rig, &["102 READ Request 0 A @7f000000+8", "103 SEND Only 0 A"]);
}

#[test]
fn a_repeated_read_counts_once() {
    let (mut rig, region) = rc_with(QpAttr { max_rd_atomic: 1, ..attributes() });
    rig.post_send(wr(1, SendOp::Read(REMOTE), &[region.sge(0, 8)]));
    rig.post_send(wr(2, SendOp::Read(REMOTE), &[region.sge(0, 8)]));
    rig.sent();
    rig.advance(100_000_000);
    sends(&mut rig, &["100 READ Request 0 A @7f000000+8"]);
    read_response(&mut rig, Position::Only, 0x100, &[1; 8]);
    sends(&mut rig, &["101 READ Request 0 A @7f000000+8"]);
    read_response(&mut rig, Position::Only, 0x101, &[1; 8]);
    rig.post_send(wr(3, SendOp::Read(REMOTE), &[region.sge(0, 8)]));
    sends(&mut rig, &["102 READ Request 0 A @7f000000+8"]);
}

#[test]
fn a_connection_without_reads_refuses_them() {
    let (mut rig, region) = rc_with(QpAttr { max_rd_atomic: 0, ..attributes() });
    rig.post_send(wr(1, SendOp::Read(REMOTE), &[region.sge(0, 8)]));
    sends(&mut rig, &[]);
    completes(&rig, &[(1, WcStatus::LocQpOpErr)]);
}
