//! NAKs that end a request, and codes that mean nothing.

use super::*;
use crate::counters::{Counter, DropReason};

#[test]
fn each_refusal_has_its_status() {
    for (code, status, counter) in [
        (NakCode::InvalidRequest, WcStatus::RemInvReqErr, Counter::ReqRemoteInvalidRequest),
        (NakCode::RemoteAccess, WcStatus::RemAccessErr, Counter::ReqRemoteAccessErrors),
        (NakCode::RemoteOperational, WcStatus::RemOpErr, Counter::ReqRemoteOperationErrors),
    ] {
        let (mut rig, region) = rc();
        rig.post_send(wr(1, SendOp::Send, &[]));
        rig.post_send(wr(2, SendOp::Write(REMOTE), &[region.sge(0, 600)]));
        rig.post_send(wr(3, SendOp::Send, &[]));
        rig.sent();
        nak(&mut rig, 0x102, code);
        completes(&rig, &[(1, WcStatus::Success), (2, status), (3, WcStatus::WrFlushErr)]);
        assert_eq!((rig.state(), rig.count(counter)), (QpState::Err, 1));
        assert_eq!((rig.count(Counter::ReqCqeError), rig.count(Counter::ReqCqeFlushError)), (1, 1));
    }
}

#[test]
fn a_read_is_refused_at_the_psn_of_a_response() {
    let (mut rig, region) = rc();
    rig.post_send(wr(1, SendOp::Read(REMOTE), &[region.sge(0, 600)]));
    rig.sent();
    read_response(&mut rig, Position::First, 0x100, &[1; 256]);
    nak(&mut rig, 0x101, NakCode::RemoteAccess);
    completes(&rig, &[(1, WcStatus::RemAccessErr)]);
}

#[test]
fn a_refusal_is_told_even_to_the_unsignaled() {
    let (mut rig, _) = rc();
    rig.post_send(with_flags(wr(1, SendOp::Send, &[]), SendFlags::empty()));
    rig.post_send(with_flags(wr(2, SendOp::Send, &[]), SendFlags::empty()));
    rig.sent();
    nak(&mut rig, 0x100, NakCode::InvalidRequest);
    completes(&rig, &[(1, WcStatus::RemInvReqErr), (2, WcStatus::WrFlushErr)]);
}

#[test]
fn reserved_codes_are_dropped() {
    let (mut rig, _) = rc();
    rig.post_send(wr(1, SendOp::Send, &[]));
    rig.post_send(wr(2, SendOp::Send, &[]));
    rig.sent();
    let reserved = (0x40..=0x5F).chain(0x64..=0x7F).chain(0x80..=0xFF);
    let mut count = 0;
    for byte in reserved {
        acknowledge(&mut rig, 0x101, Syndrome::from_byte(byte));
        count += 1;
    }
    completes(&rig, &[]);
    assert_eq!((rig.state(), rig.dropped(DropReason::ReservedSyndrome)), (QpState::Rts, count));
}
