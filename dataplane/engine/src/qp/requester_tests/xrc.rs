//! XRC initiators: RC's requester, with the number of an SRQ in front of every request.

use super::*;
use crate::testkit::SRQN;
use wire::{Operation::*, Position::*, Service, Srqn, XrcEth};

fn initiator() -> (Rig, Region) {
    let mut rig = Rig::xrc_initiator(attributes());
    let region = rig.region(4096, Access::LOCAL_WRITE);
    (rig, region)
}

#[test]
fn every_request_names_its_srq_and_the_rest_is_rc() {
    let (mut rig, region) = initiator();
    let other = Srqn::new(0x77);
    let buffer = [region.sge(0, 300)];
    rig.post_send_xrc(wr(1, SendOp::SendImm([7; 4]), &buffer), SRQN);
    rig.post_send_xrc(wr(2, SendOp::WriteImm(REMOTE, [8; 4]), &buffer), other);
    rig.post_send_xrc(wr(3, SendOp::Read(REMOTE), &buffer), SRQN);
    rig.post_send_xrc(wr(4, SendOp::FetchAdd { remote: REMOTE, add: 1 }, &[region.sge(0, 8)]), other);
    rig.post_send_xrc(
        wr(5, SendOp::CompareSwap { remote: REMOTE, compare: 1, swap: 2 }, &[region.sge(8, 8)]),
        SRQN,
    );
    rig.post_send_xrc(wr(6, SendOp::SendInv(RKey::new(9)), &[]), SRQN);
    let sent = rig.sent();
    let kinds: Vec<_> = sent.iter().map(Packet::kind).collect();
    let expected = [
        (Send, First),
        (SendImm, Last),
        (Write, First),
        (WriteImm, Last),
        (ReadRequest, Only),
        (FetchAdd, Only),
        (CompareSwap, Only),
        (SendInv, Only),
    ];
    assert_eq!(kinds, expected);
    let named: Vec<_> = sent.iter().map(|packet| packet.header::<XrcEth>().unwrap().srqn).collect();
    let (own, other) = (SRQN.value(), other.value());
    assert_eq!(named, [own, own, other, other, own, other, own, own]);
    assert!(sent.iter().all(|packet| packet.info().service == Service::Xrc));
    assert!(sent[1].bth.ack_req, "asked for as on RC");
    assert_eq!(sent[2].header::<Reth>().map(|reth| reth.dma_len), Some(300));
    assert_eq!(sent[3].header::<ImmDt>().map(|imm| imm.0), Some([8; 4]));

    ack(&mut rig, 0x103);
    read_response(&mut rig, First, 0x104, &[5; 256]);
    read_response(&mut rig, Last, 0x105, &[6; 44]);
    atomic_ack(&mut rig, 0x106, 42);
    atomic_ack(&mut rig, 0x107, 43);
    ack(&mut rig, 0x108);
    completes(&rig, &[1, 2, 3, 4, 5, 6].map(|wr_id| (wr_id, WcStatus::Success)));
    assert_eq!(rig.memory.content(region.id)[..8], 42u64.to_ne_bytes());
    assert_eq!(rig.memory.content(region.id)[16..300], [[5; 240].as_slice(), &[6; 44]].concat());
}

#[test]
fn a_repeated_request_names_the_same_srq() {
    let (mut rig, _) = initiator();
    rig.post_send_xrc(inline(1, SendOp::Send, b"again"), SRQN);
    assert_eq!(rig.sent().len(), 1);
    nak(&mut rig, 0x100, NakCode::PsnSequence);
    let again = rig.sent();
    assert_eq!(again[0].header::<XrcEth>(), Some(XrcEth { srqn: SRQN.value() }));
    rnr_nak(&mut rig, 0x100, 1);
    rig.advance(20_000);
    assert_eq!(rig.sent()[0].payload, b"again");
    ack(&mut rig, 0x100);
    completes(&rig, &[(1, WcStatus::Success)]);
}

#[test]
fn a_refusal_and_silence_end_in_error_as_on_rc() {
    let (mut rig, _) = initiator();
    rig.post_send_xrc(inline(1, SendOp::Send, b"x"), SRQN);
    rig.post_send_xrc(inline(2, SendOp::Send, b"y"), SRQN);
    rig.sent();
    nak(&mut rig, 0x100, NakCode::InvalidRequest);
    completes(&rig, &[(1, WcStatus::RemInvReqErr), (2, WcStatus::WrFlushErr)]);
    assert_eq!((rig.state(), rig.raised()), (QpState::Err, vec![]), "no receive was ever its own");

    let (mut rig, _) = initiator();
    rig.post_send_xrc(inline(1, SendOp::Send, b"x"), SRQN);
    for _ in 0..8 {
        rig.sent();
        rig.advance(1_000_000_000);
    }
    completes(&rig, &[(1, WcStatus::RetryExcErr)]);
}
