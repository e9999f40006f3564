//! XRC targets: every request names the SRQ that it is for.

use super::help::*;
use crate::mr::PdId;
use crate::queue::{PostError, RecvQueue, XrcdId};
use std::sync::Arc;
use wire::{Srqn, XrcEth};

const XRC: XrcEth = XrcEth { srqn: SRQN.value() };

fn post(srq: &RecvQueue, wr_id: u64, buffer: &Region) {
    srq.post(receive(wr_id, &[buffer.sge(0, 1024)])).unwrap();
}

fn xrc(rig: &Rig, op: Operation, at: Position, psn: u32, payload: &[u8]) -> Packet {
    rig.packet(op, at, psn, payload).with(XRC)
}

/// Answers are XRC packets too.
fn answer(rig: &mut Rig, packet: &Packet) -> Vec<Packet> {
    let sent = rig.answer(packet);
    assert!(sent.iter().all(|packet| packet.info().service == wire::Service::Xrc), "{sent:?}");
    sent
}

#[test]
fn a_send_lands_in_the_srq_that_it_names_and_completes_there() {
    let (mut rig, srq, cq) = Rig::xrc_target(attributes());
    let (other, other_cq) = xrc_srq(PD, Srqn::new(0x77), DOMAIN);
    rig.engine.add_srq(Arc::clone(&other));
    let buffer = rig.region(2048, ALL);
    post(&srq, 1, &buffer);
    post(&other, 2, &buffer);
    let first = xrc(&rig, Send, First, FIRST, &bytes(MTU));
    rig.deliver(&first);
    let last = xrc(&rig, SendImm, Last, FIRST + 1, b"end").with(ImmDt([4; 4])).ack_req().solicited();
    assert_eq!(acks(&answer(&mut rig, &last)), [ack(FIRST + 1, 1)]);
    let cqe = Cqe {
        byte_len: MTU as u32 + 3,
        imm: Some([4; 4]),
        solicited: true,
        srqn: Some(SRQN),
        ..Cqe::new(1, WcStatus::Success, WcOpcode::Recv, QPN)
    };
    assert_eq!((cq.poll(), cq.poll()), (Some(cqe), None));
    rig.deliver(&rig.packet(Send, Only, FIRST + 2, b"x").with(XrcEth { srqn: 0x77 }));
    let cqe = other_cq.poll().unwrap();
    assert_eq!((cqe.wr_id, cqe.qpn, cqe.srqn), (2, QPN, Some(Srqn::new(0x77))));
    assert_eq!((cq.poll(), rig.recv_cqes(), srq.len(), other.len()), (None, vec![], 0, 0));
}

#[test]
fn write_read_and_atomics_are_those_of_rc() {
    let (mut rig, srq, cq) = Rig::xrc_target(attributes());
    let target = rig.region(1024, ALL);
    srq.post(receive(1, &[])).unwrap();
    let write = xrc(&rig, Write, First, FIRST, &bytes(MTU)).with(reth(&target, 0, 300));
    assert!(answer(&mut rig, &write).is_empty());
    let last = xrc(&rig, WriteImm, Last, FIRST + 1, &bytes(44)).with(ImmDt([1; 4])).ack_req();
    assert_eq!(acks(&answer(&mut rig, &last)), [ack(FIRST + 1, 1)]);
    assert_eq!(rig.memory.content(target.id)[256..300], bytes(44));
    let told = cq.poll().unwrap();
    assert_eq!((told.opcode, told.byte_len, told.srqn), (WcOpcode::RecvRdmaWithImm, 300, Some(SRQN)));

    let read = xrc(&rig, ReadRequest, Only, FIRST + 2, &[]).with(reth(&target, 0, 300));
    let data = answer(&mut rig, &read);
    assert_eq!(
        data.iter().map(Packet::kind).collect::<Vec<_>>(),
        [(ReadResponse, First), (ReadResponse, Last)]
    );
    assert_eq!(
        data.iter().flat_map(|packet| packet.payload.clone()).collect::<Vec<_>>(),
        rig.memory.content(target.id)[..300]
    );
    assert_eq!(answer(&mut rig, &read).len(), 2, "again, as a duplicate");
    let atomic = AtomicEth { va: target.addr + 512, rkey: target.rkey(), swap_or_add: 1, compare: 0 };
    let add = xrc(&rig, FetchAdd, Only, FIRST + 4, &[]).with(atomic);
    let before = rig.memory.content(target.id);
    let original = u64::from_ne_bytes(before[512..520].try_into().unwrap());
    for _ in 0..2 {
        assert_eq!(answer(&mut rig, &add)[0].original(), Some(original), "once");
    }
}

#[test]
fn an_empty_srq_is_not_ready() {
    let (mut rig, srq, cq) = Rig::xrc_target(attributes());
    let buffer = rig.region(2048, ALL);
    let send = xrc(&rig, Send, Only, FIRST, b"x").ack_req();
    assert_eq!(acks(&answer(&mut rig, &send)), [(FIRST, Syndrome::RnrNak { timer: 12 }, 0)]);
    srq.arm_limit(1);
    post(&srq, 1, &buffer);
    assert_eq!(acks(&answer(&mut rig, &send)), [ack(FIRST, 1)]);
    let limit = AsyncEvent { kind: EventKind::SrqLimitReached, source: EventSource::Srq(7) };
    assert_eq!((rig.raised(), cq.len()), (vec![limit], 1));
}

/// [?] the facts do not name the answer. Asked for whatever the request does, so also of one that takes no receive.
#[test]
fn a_number_that_names_no_srq_of_the_domain_is_an_invalid_request() {
    for case in ["unknown", "another domain", "destroyed"] {
        for op in [Send, Write, ReadRequest] {
            let (mut rig, ..) = Rig::xrc_target(attributes());
            let target = rig.region(64, ALL);
            let (foreign, _) = xrc_srq(PD, Srqn::new(0x77), XrcdId(4));
            let srqn = match case {
                "another domain" => {
                    rig.engine.add_srq(foreign);
                    0x77
                }
                "destroyed" => {
                    assert!(rig.engine.remove_srq(SRQN).is_some());
                    SRQN.value()
                }
                _ => 0xBAD,
            };
            let packet = rig.packet(op, Only, FIRST, &[]).with(XrcEth { srqn });
            let packet = if op == Send { packet } else { packet.with(reth(&target, 0, 0)) };
            let sent = answer(&mut rig, &packet);
            assert_eq!(acks(&sent), [nak(NakCode::InvalidRequest, FIRST, 0)], "{case} {op:?}");
            let kinds: Vec<_> = rig.raised().iter().map(|event| event.kind).collect();
            assert_eq!(kinds, [EventKind::QpReqErr, EventKind::QpLastWqeReached]);
            assert_failed(&mut rig);
        }
    }
}

#[test]
fn a_message_stays_with_its_srq() {
    let (mut rig, srq, cq) = Rig::xrc_target(attributes());
    let (other, _) = xrc_srq(PD, Srqn::new(0x77), DOMAIN);
    rig.engine.add_srq(other);
    let buffer = rig.region(2048, ALL);
    (1..=2).for_each(|wr_id| post(&srq, wr_id, &buffer));
    rig.deliver(&xrc(&rig, Send, First, FIRST, &bytes(MTU)));
    let astray = rig.packet(Send, Last, FIRST + 1, b"x").with(XrcEth { srqn: 0x77 });
    assert_eq!(acks(&answer(&mut rig, &astray)), [nak(NakCode::InvalidRequest, FIRST + 1, 0)]);
    let cqe = cq.poll().unwrap();
    assert_eq!((cqe.wr_id, cqe.status, cqe.srqn), (1, WcStatus::RemInvReqErr, Some(SRQN)));
    assert_eq!((srq.len(), cq.len()), (1, 0), "the other receive stays");
}

#[test]
fn an_srq_that_goes_in_the_middle_of_a_message_ends_it() {
    let (mut rig, srq, cq) = Rig::xrc_target(attributes());
    let buffer = rig.region(2048, ALL);
    post(&srq, 1, &buffer);
    rig.deliver(&xrc(&rig, Send, First, FIRST, &bytes(MTU)));
    rig.engine.remove_srq(SRQN);
    let sent = rig.answer(&xrc(&rig, Send, Last, FIRST + 1, b"x"));
    assert_eq!(acks(&sent), [nak(NakCode::InvalidRequest, FIRST + 1, 0)]);
    assert_eq!(cq.len(), 0, "nobody is left to be told");
    assert_failed(&mut rig);
}

/// [?] A target belongs to a domain and not to a PD, so keys are those of the SRQ's.
#[test]
fn keys_are_those_of_the_pd_of_the_srq() {
    for (pd, granted) in [(PdId(8), true), (PD, false)] {
        let (mut rig, ..) = Rig::xrc_target(attributes());
        let (srq, cq) = xrc_srq(PdId(8), Srqn::new(0x77), DOMAIN);
        rig.engine.add_srq(Arc::clone(&srq));
        let target = rig.region_of(pd, 600, ALL);
        srq.post(receive(1, &[target.sge(0, 64)])).unwrap();
        let to = |packet: Packet| packet.with(XrcEth { srqn: 0x77 });
        // A request for another SRQ comes before the READ is answered: the READ keeps its own PD.
        let read = to(rig.packet(ReadRequest, Only, FIRST, &[])).with(reth(&target, 0, 600));
        rig.deliver(&read);
        rig.deliver(&xrc(&rig, Write, Only, FIRST + 3, &[]).with(reth(&target, 0, 0)));
        let sent = rig.sent();
        assert_eq!(sent[0].kind() == (ReadResponse, First), granted, "{sent:?}");
        if granted {
            assert_eq!(sent.iter().filter(|packet| packet.kind().0 == ReadResponse).count(), 3);
            rig.answer(&to(rig.packet(Send, Only, FIRST + 4, b"x")));
            assert_eq!(cq.poll().unwrap().status, WcStatus::Success);
        } else {
            assert_eq!(acks(&sent), [nak(NakCode::RemoteAccess, FIRST, 0)]);
        }
    }
}

#[test]
fn a_target_in_error_flushes_the_receive_under_way_to_its_srq() {
    let (mut rig, srq, cq) = Rig::xrc_target(attributes());
    let buffer = rig.region(2048, ALL);
    (1..=2).for_each(|wr_id| post(&srq, wr_id, &buffer));
    rig.deliver(&xrc(&rig, Send, First, FIRST, &bytes(MTU)));
    rig.modify(QpState::Err);
    let cqe = cq.poll().unwrap();
    assert_eq!((cqe.wr_id, cqe.status, cqe.srqn), (1, WcStatus::WrFlushErr, Some(SRQN)));
    assert_eq!((cq.len(), srq.len(), rig.recv_cqes()), (0, 1, vec![]));
    let last = AsyncEvent { kind: EventKind::QpLastWqeReached, source: EventSource::Qp(QPN) };
    assert_eq!(rig.raised(), [last]);
}

/// Each half hears its own side of the service only.
#[test]
fn an_initiator_hears_no_requests_and_a_target_no_responses() {
    let aeth = Aeth { syndrome: Syndrome::ACK, msn: Msn::new(0) };
    let (mut target, ..) = Rig::xrc_target(attributes());
    target.deliver(&target.packet(Acknowledge, Only, FIRST, &[]).with(aeth));
    assert_eq!(target.dropped(DropReason::WrongService), 1);
    let mut initiator = Rig::xrc_initiator(attributes());
    initiator.deliver(&xrc(&initiator, Send, Only, FIRST, &[]));
    assert_eq!(initiator.dropped(DropReason::WrongService), 1);
    assert_untouched(&mut initiator, QpState::Rts);
    let rc = Rig::new(QpType::Rc);
    target.deliver(&rc.packet(Send, Only, FIRST, &[]));
    assert_eq!(target.dropped(DropReason::WrongService), 2);
}

#[test]
fn neither_half_takes_receives_and_a_target_no_sends() {
    let (target, ..) = Rig::xrc_target(attributes());
    let initiator = Rig::xrc_initiator(attributes());
    assert_eq!(target.shared.post_recv(receive(1, &[])), Err(PostError::Srq));
    assert_eq!(initiator.shared.post_recv(receive(1, &[])), Err(PostError::NoReceives));
    let send = || crate::SendWr {
        wr_id: 1,
        op: crate::SendOp::Send,
        data: crate::WrData::Inline(Default::default()),
        flags: crate::SendFlags::SIGNALED,
    };
    assert_eq!(target.shared.post_send(send()), Err(PostError::Operation(QpType::XrcTgt)));
    assert_eq!(target.shared.post_send_xrc(send(), SRQN), Err(PostError::Operation(QpType::XrcTgt)));
    assert_eq!(initiator.shared.post_send(send()), Err(PostError::NoSrqn));
    let rc = Rig::new(QpType::Rc);
    assert_eq!(rc.shared.post_send_xrc(send(), SRQN), Err(PostError::Operation(QpType::Rc)));
}
