//! The ACK timer: when it runs, what restarts it, and the end of retries.

use super::*;
use crate::counters::Counter;

/// 4.096 µs × 2^8.
const TIMEOUT: u64 = 4096 << 8;

fn quick(retry_cnt: u8) -> (Rig, Region) {
    rc_with(QpAttr { timeout: 8, retry_cnt, ..attributes() })
}

/// Timers fire a bucket of the wheel late at most.
const SLACK: u64 = 10_000;

#[test]
fn everything_unacknowledged_goes_out_again() {
    let (mut rig, region) = quick(7);
    rig.post_send(wr(1, SendOp::Send, &[]));
    rig.post_send(wr(2, SendOp::Write(REMOTE), &[region.sge(0, 300)]));
    rig.sent();
    rig.advance(TIMEOUT - SLACK);
    sends(&mut rig, &[]);
    rig.advance(2 * SLACK);
    sends(&mut rig, &["100 SEND Only 0 A", "101 WRITE First 256 @7f000000+300", "102 WRITE Last 44 A"]);
    assert_eq!(rig.count(Counter::LocalAckTimeoutErr), 1);
}

#[test]
fn progress_restarts_the_timer_and_sending_does_not() {
    let (mut rig, _) = quick(7);
    rig.post_send(wr(1, SendOp::Send, &[]));
    rig.post_send(wr(2, SendOp::Send, &[]));
    rig.sent();
    rig.advance(TIMEOUT / 2);
    ack(&mut rig, 0x100);
    rig.advance(TIMEOUT * 3 / 4);
    sends(&mut rig, &[]);
    rig.post_send(wr(3, SendOp::Send, &[]));
    sends(&mut rig, &["102 SEND Only 0 A"]);
    rig.advance(TIMEOUT / 4 + SLACK);
    sends(&mut rig, &["101 SEND Only 0 A", "102 SEND Only 0 A"]);
}

#[test]
fn a_ghost_does_not_restart_the_timer() {
    let (mut rig, _) = quick(7);
    rig.post_send(wr(1, SendOp::Send, &[]));
    rig.sent();
    rig.advance(TIMEOUT / 2);
    ack(&mut rig, 0x50);
    rig.advance(TIMEOUT / 2 + SLACK);
    sends(&mut rig, &["100 SEND Only 0 A"]);
}

#[test]
fn no_timer_runs_with_nothing_outstanding() {
    let (mut rig, _) = quick(7);
    rig.post_send(wr(1, SendOp::Send, &[]));
    rig.sent();
    ack(&mut rig, 0x100);
    rig.advance(10 * TIMEOUT);
    sends(&mut rig, &[]);
    assert_eq!(rig.count(Counter::LocalAckTimeoutErr), 0);
}

#[test]
fn after_a_pause_the_timer_starts_anew() {
    let (mut rig, _) = quick(7);
    rig.post_send(wr(1, SendOp::Send, &[]));
    rig.sent();
    ack(&mut rig, 0x100);
    rig.advance(TIMEOUT * 3 / 4);
    rig.post_send(wr(2, SendOp::Send, &[]));
    rig.sent();
    rig.advance(TIMEOUT / 2);
    sends(&mut rig, &[]);
    rig.advance(TIMEOUT / 2 + SLACK);
    sends(&mut rig, &["101 SEND Only 0 A"]);
}

#[test]
fn a_reset_stops_the_timer() {
    let (mut rig, _) = quick(7);
    rig.post_send(wr(1, SendOp::Send, &[]));
    rig.sent();
    rig.advance(TIMEOUT * 3 / 4);
    for state in [QpState::Reset, QpState::Init, QpState::Rtr, QpState::Rts] {
        rig.modify(state);
    }
    rig.post_send(wr(2, SendOp::Send, &[]));
    sends(&mut rig, &["100 SEND Only 0 A"]);
    rig.advance(TIMEOUT / 2);
    sends(&mut rig, &[]);
}

#[test]
fn timeout_zero_means_none() {
    let (mut rig, _) = rc_with(QpAttr { timeout: 0, ..attributes() });
    rig.post_send(wr(1, SendOp::Send, &[]));
    rig.sent();
    rig.advance(u64::MAX / 4);
    sends(&mut rig, &[]);
}

#[test]
fn retry_cnt_timeouts_are_survived_and_the_next_is_not() {
    let (mut rig, _) = quick(2);
    rig.post_send(wr(1, SendOp::Send, &[]));
    rig.post_send(wr(2, SendOp::Send, &[]));
    rig.sent();
    for _ in 0..2 {
        rig.advance(TIMEOUT + SLACK);
        assert_eq!(rig.sent().len(), 2);
        completes(&rig, &[]);
    }
    rig.advance(TIMEOUT + SLACK);
    completes(&rig, &[(1, WcStatus::RetryExcErr), (2, WcStatus::WrFlushErr)]);
    sends(&mut rig, &[]);
    assert_eq!((rig.state(), rig.count(Counter::RetryExceeded)), (QpState::Err, 1));
}

#[test]
fn seven_means_seven() {
    let (mut rig, _) = quick(7);
    rig.post_send(wr(1, SendOp::Send, &[]));
    rig.sent();
    for _ in 0..7 {
        rig.advance(TIMEOUT + SLACK);
        assert_eq!(rig.sent().len(), 1);
    }
    rig.advance(TIMEOUT + SLACK);
    completes(&rig, &[(1, WcStatus::RetryExcErr)]);
}

#[test]
fn progress_restores_the_retries() {
    let (mut rig, _) = quick(1);
    for id in 1..=5 {
        rig.post_send(wr(id, SendOp::Send, &[]));
    }
    rig.sent();
    for id in 1..=5u64 {
        rig.advance(TIMEOUT + SLACK);
        assert_eq!(rig.sent().len(), 6 - id as usize);
        ack(&mut rig, 0xFF + id as u32);
        completes(&rig, &[(id, WcStatus::Success)]);
    }
}
