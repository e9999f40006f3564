//! What ACKs complete: in posting order, all before too, signaled or not; and what they do not.

use super::*;
use crate::counters::DropReason;
use crate::testkit::{HeapMemory, ListSink};

#[test]
fn an_ack_completes_all_before_it() {
    let (mut rig, _) = rc();
    for id in 1..=3 {
        rig.post_send(wr(id, SendOp::Send, &[]));
    }
    rig.sent();
    ack(&mut rig, 0x101);
    completes(&rig, &[(1, WcStatus::Success), (2, WcStatus::Success)]);
    ack(&mut rig, 0x102);
    completes(&rig, &[(3, WcStatus::Success)]);
}

#[test]
fn an_ack_inside_a_message_does_not_complete_it() {
    let (mut rig, region) = rc();
    rig.post_send(wr(1, SendOp::Send, &[region.sge(0, 600)]));
    rig.sent();
    ack(&mut rig, 0x101);
    completes(&rig, &[]);
    ack(&mut rig, 0x102);
    completes(&rig, &[(1, WcStatus::Success)]);
}

#[test]
fn ghost_acks_are_ignored() {
    let (mut rig, _) = rc();
    rig.post_send(wr(1, SendOp::Send, &[]));
    rig.sent();
    for psn in [0xFF, 0x101, 0x80_0100, 0x100 - 5] {
        ack(&mut rig, psn);
    }
    completes(&rig, &[]);
    assert_eq!(rig.dropped(DropReason::GhostResponse), 4);
    ack(&mut rig, 0x100);
    completes(&rig, &[(1, WcStatus::Success)]);
    ack(&mut rig, 0x100);
    completes(&rig, &[]);
    assert_eq!(rig.dropped(DropReason::GhostResponse), 5);
}

#[test]
fn unsignaled_requests_complete_in_silence_and_free_their_places() {
    let (mut rig, _) = rc();
    rig.post_send(with_flags(wr(1, SendOp::Send, &[]), SendFlags::empty()));
    rig.post_send(wr(2, SendOp::Send, &[]));
    rig.sent();
    assert_eq!(rig.shared.sq().outstanding(), 2);
    ack(&mut rig, 0x101);
    completes(&rig, &[(2, WcStatus::Success)]);
    assert_eq!(rig.shared.sq().outstanding(), 0);
}

#[test]
fn a_data_response_acknowledges_sends_before_it() {
    let (mut rig, region) = rc();
    rig.post_send(wr(1, SendOp::Send, &[]));
    rig.post_send(wr(2, SendOp::Read(REMOTE), &[region.sge(0, 8)]));
    rig.sent();
    read_response(&mut rig, Position::Only, 0x101, &[7; 8]);
    completes(&rig, &[(1, WcStatus::Success), (2, WcStatus::Success)]);
}

#[test]
fn the_ring_turns_many_times() {
    let attr = attributes();
    let mut rig = Rig::with_capacities(QpType::Rc, QpState::Rts, attr, 3, 8);
    let region = rig.region(64, Access::empty());
    for id in 0..20 {
        let (request, bytes) = match id % 3 {
            0 => (inline(id, SendOp::Send, &[id as u8; 3]), vec![id as u8; 3]),
            1 => (wr(id, SendOp::Send, &[region.sge(id, 2)]), pattern(id as usize, 2)),
            _ => (wr(id, SendOp::Send, &[]), vec![]),
        };
        rig.post_send(request);
        assert_eq!(rig.sent()[0].payload, bytes);
        ack(&mut rig, 0x100 + id as u32);
        completes(&rig, &[(id, WcStatus::Success)]);
    }
}

#[test]
fn a_qp_may_signal_all() {
    let memory = HeapMemory::default();
    let mut own = Own::new(memory.clone(), true, Arc::new(RecvQueue::new(1, 1)));
    own.connect(&attributes());
    own.post(with_flags(wr(1, SendOp::Send, &[]), SendFlags::empty()));
    own.engine.poll_transmit(0, &mut ListSink::new(memory, 9));
    let packet =
        Packet::new(QpType::Rc, Operation::Acknowledge, Position::Only, QPN, wire::Psn::new(0x100), &[]);
    own.deliver(&packet.with(Aeth { syndrome: Syndrome::ACK, msn: Msn::new(0) }));
    assert_eq!(own.cq.poll().map(|cqe| cqe.wr_id), Some(1));
}
