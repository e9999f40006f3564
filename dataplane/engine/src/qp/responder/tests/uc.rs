//! UC: loss breaks a message, and nothing is ever answered (rocev2 facts, transport section 19).

use super::help::*;

/// A QP with one buffer behind three receives.
fn rig() -> (Rig, Region) {
    let mut rig = Rig::new(QpType::Uc);
    let buffer = rig.region(2048, ALL);
    for wr_id in 1..4 {
        rig.post_recv(wr_id, &[buffer.sge(0, 600)]);
    }
    (rig, buffer)
}

/// Delivers a SEND packet; nothing is ever answered.
fn send(rig: &mut Rig, at: Position, psn: u32, payload: &[u8]) {
    let packet = rig.packet(Send, at, psn, payload).ack_req();
    assert!(rig.answer(&packet).is_empty());
}

fn completed(rig: &Rig) -> Vec<(u64, u32)> {
    let cqes = rig.recv_cqes();
    assert!(cqes.iter().all(Cqe::is_success));
    cqes.iter().map(|cqe| (cqe.wr_id, cqe.byte_len)).collect()
}

#[test]
fn messages_arrive_without_an_answer() {
    let (mut rig, buffer) = rig();
    let data = bytes(MTU + 10);
    send(&mut rig, First, FIRST, &data[..MTU]);
    send(&mut rig, Last, FIRST + 1, &data[MTU..]);
    assert_eq!(completed(&rig), [(1, 266)]);
    assert_eq!(rig.memory.content(buffer.id)[..266], data);
    let imm = rig.packet(SendImm, Only, FIRST + 2, &[]).with(ImmDt([1; 4])).solicited();
    assert!(rig.answer(&imm).is_empty());
    let cqe = rig.recv_cqes()[0];
    assert_eq!((cqe.wr_id, cqe.imm, cqe.solicited), (2, Some([1; 4]), true));
}

#[test]
fn a_write_arrives_without_an_answer() {
    let (mut rig, _) = rig();
    let target = rig.region(1024, ALL);
    let data = bytes(MTU + 1);
    let first = rig.packet(Write, First, FIRST, &data[..MTU]).with(reth(&target, 3, data.len() as u32));
    assert!(rig.answer(&first).is_empty());
    let last = rig.packet(WriteImm, Last, FIRST + 1, &data[MTU..]).with(ImmDt([2; 4])).ack_req();
    assert!(rig.answer(&last).is_empty());
    assert_eq!(rig.memory.content(target.id)[3..3 + data.len()], data);
    let cqe = rig.recv_cqes()[0];
    assert_eq!((cqe.opcode, cqe.byte_len), (WcOpcode::RecvRdmaWithImm, data.len() as u32));
}

/// A lost packet costs its message; the receive is used again from its beginning.
#[test]
fn a_gap_breaks_the_message_and_its_receive_waits_for_the_next() {
    let (mut rig, buffer) = rig();
    send(&mut rig, First, FIRST, &[0xAA; MTU]);
    send(&mut rig, Last, FIRST + 2, &[0xBB; 4]);
    assert_eq!(completed(&rig), []);
    send(&mut rig, Middle, FIRST + 3, &[0xCC; MTU]);
    send(&mut rig, Last, FIRST + 4, &[0xCC; 4]);
    assert_eq!(rig.dropped(DropReason::UcBroken), 3);
    assert_eq!(rig.count(Counter::OutOfSequence), 1);
    send(&mut rig, Only, FIRST + 5, b"whole");
    assert_eq!(completed(&rig), [(1, 5)]);
    assert_eq!(rig.memory.content(buffer.id)[..5], *b"whole");
    assert_eq!(rig.state(), QpState::Rts);
}

#[test]
fn a_beginning_is_taken_with_any_psn() {
    let (mut rig, _) = rig();
    send(&mut rig, Only, 0x777, b"a");
    send(&mut rig, First, 0x10, &bytes(MTU));
    // In order or not: a beginning ends what was under way.
    send(&mut rig, First, 0x11, &bytes(MTU));
    send(&mut rig, Last, 0x12, b"b");
    assert_eq!(completed(&rig), [(1, 1), (2, 257)]);
    assert_eq!(rig.count(Counter::OutOfSequence), 2);
}

#[test]
fn a_write_with_immediate_behind_a_gap_is_dropped_whole() {
    let (mut rig, _) = rig();
    let target = rig.region(1024, ALL);
    rig.deliver(&rig.packet(Write, First, FIRST, &bytes(MTU)).with(reth(&target, 0, 600)));
    let written = rig.memory.snapshot();
    rig.deliver(&rig.packet(WriteImm, Last, FIRST + 2, &[0xEE; 88]).with(ImmDt([0; 4])));
    assert_eq!(rig.memory.snapshot(), written, "what was written stays, and nothing is added");
    assert_eq!(rig.recv_cqes(), []);
    assert_eq!(rig.shared.rq().len(), 3);
}

/// Whatever is wrong: no answer, no event, no completion, no other state; and the rest of the message is
/// dropped, too.
#[test]
fn a_fault_drops_the_message_and_nothing_else() {
    let target = |rig: &mut Rig, access| rig.region(1024, access);
    type Make = fn(&mut Rig, fn(&mut Rig, Access) -> Region) -> Packet;
    let too_long: Make = |rig, _| {
        rig.post_recv(9, &[]);
        rig.packet(Send, First, FIRST, &bytes(MTU))
    };
    let no_receive: Make = |rig, _| rig.packet(Send, First, FIRST, &bytes(MTU));
    let short_first: Make = |rig, target| {
        let target = target(rig, ALL);
        rig.post_recv(9, &[target.sge(0, 1024)]);
        rig.packet(Send, First, FIRST, &bytes(MTU - 4))
    };
    let bad_key: Make = |rig, target| {
        let target = target(rig, ALL - Access::REMOTE_WRITE);
        rig.packet(Write, First, FIRST, &bytes(MTU)).with(reth(&target, 0, 1024))
    };
    let bad_length: Make = |rig, target| {
        let target = target(rig, ALL);
        rig.packet(Write, First, FIRST, &bytes(MTU)).with(reth(&target, 0, MTU as u32))
    };
    let cases = [
        (too_long, DropReason::ReceiveUnusable),
        (no_receive, DropReason::NoReceive),
        (short_first, DropReason::InvalidRequest),
        (bad_key, DropReason::UcAccess),
        (bad_length, DropReason::InvalidRequest),
    ];
    for (make, reason) in cases {
        let mut rig = Rig::new(QpType::Uc);
        let packet = make(&mut rig, target);
        let before = rig.memory.snapshot();
        rig.deliver(&packet);
        assert_eq!(rig.dropped(reason), 1, "{reason:?}");
        let last = rig.packet(packet.info().operation, Last, FIRST + 1, &[1]);
        rig.deliver(&last);
        assert_eq!(rig.dropped(DropReason::UcBroken), 1, "{reason:?}");
        assert_eq!(rig.memory.snapshot(), before);
        assert_eq!(rig.raised(), []);
        assert_untouched(&mut rig, QpState::Rts);
    }
}

/// A message that was too long leaves its receive for the next.
#[test]
fn a_receive_that_was_too_short_is_not_lost() {
    let (mut rig, _) = rig();
    send(&mut rig, First, FIRST, &bytes(MTU));
    send(&mut rig, Middle, FIRST + 1, &bytes(MTU));
    send(&mut rig, Middle, FIRST + 2, &bytes(MTU));
    assert_eq!(rig.dropped(DropReason::ReceiveUnusable), 1);
    send(&mut rig, Only, FIRST + 3, b"next");
    assert_eq!(completed(&rig), [(1, 4)]);
}

/// Our own fault is told to our own side: the receive completes in error, and the QP stops.
#[test]
fn a_receive_that_cannot_be_written_ends_the_qp() {
    let mut rig = Rig::new(QpType::Uc);
    rig.post_recv(1, &[crate::Sge { addr: 0, len: 8, lkey: wire::LKey::new(0x7777_7700) }]);
    rig.post_recv(2, &[]);
    send(&mut rig, Only, FIRST, b"data");
    let ends: Vec<_> = rig.recv_cqes().iter().map(|cqe| (cqe.wr_id, cqe.status)).collect();
    assert_eq!(ends, [(1, WcStatus::LocProtErr), (2, WcStatus::WrFlushErr)]);
    assert_eq!(rig.state(), QpState::Err);
}

#[test]
fn the_rights_of_the_qp_are_asked_for() {
    let attr = QpAttr { access: Access::empty(), ..attributes() };
    let mut rig = Rig::with(QpType::Uc, QpState::Rts, attr);
    let target = rig.region(64, ALL);
    rig.deliver(&rig.packet(Write, Only, FIRST, &[0xEE]).with(reth(&target, 0, 1)));
    assert_eq!(rig.dropped(DropReason::InvalidRequest), 1);
    assert_eq!(rig.memory.content(target.id)[0], 1);
}
