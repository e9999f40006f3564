//! Payloads that the memory holds: placed as others are, and when they turn out to be spoilt, as if they had not come.

use super::help::*;

/// RC with two receives over one buffer, in two pieces each.
fn rig(qp_type: QpType) -> (Rig, Region) {
    let mut rig = Rig::new(qp_type);
    let buffer = rig.region(2048, ALL);
    for wr_id in 1..3 {
        rig.post_recv(wr_id, &[buffer.sge(0, 300), buffer.sge(1000, 600)]);
    }
    (rig, buffer)
}

fn spoilt(rig: &Rig) -> (u64, u64) {
    (rig.count(Counter::BadIcrc), rig.dropped(DropReason::Spoilt))
}

#[test]
fn a_write_that_is_spoilt_arrives_when_it_comes_again() {
    let (mut rig, _) = rig(QpType::Rc);
    let target = rig.region(1024, ALL);
    let data = bytes(2 * MTU + 10);
    let first = rig.packet(Write, First, FIRST, &data[..MTU]).with(reth(&target, 3, data.len() as u32));
    let middle = rig.packet(Write, Middle, FIRST + 1, &data[MTU..2 * MTU]);
    let last = rig.packet(Write, Last, FIRST + 2, &data[2 * MTU..]).ack_req();
    for (number, packet) in [&first, &middle, &last].into_iter().enumerate() {
        rig.deliver_held(packet, true);
        assert_eq!(spoilt(&rig), (number as u64 + 1, number as u64 + 1));
        assert!(rig.sent().is_empty(), "nothing is said of it");
        assert_eq!(rig.state(), QpState::Rts);
        rig.deliver_held(packet, false);
    }
    let answers = rig.sent();
    assert_eq!(answers.len(), 1);
    assert_eq!(answers[0].bth.psn, Psn::new(FIRST + 2));
    assert_eq!(rig.memory.content(target.id)[3..3 + data.len()], data);
}

/// Not a byte more: what lies behind a message may be somebody else's, and busy.
#[test]
fn memory_is_told_how_much_of_a_write_follows() {
    let (mut rig, _) = rig(QpType::Rc);
    let target = rig.region(1024, ALL);
    let data = bytes(2 * MTU + 10);
    let first = rig.packet(Write, First, FIRST, &data[..MTU]).with(reth(&target, 3, data.len() as u32));
    let middle = rig.packet(Write, Middle, FIRST + 1, &data[MTU..2 * MTU]);
    let last = rig.packet(Write, Last, FIRST + 2, &data[2 * MTU..]);
    let follows = [&first, &middle, &last].map(|packet| {
        rig.deliver_held(packet, false);
        rig.memory.follows()
    });
    assert_eq!(follows, [vec![MTU as u32 + 10], vec![10], vec![0]]);
}

/// How long it is going to be, nobody knows, but until it ends all of the receive is for it alone. What is behind a piece may be somebody
/// else's.
#[test]
fn a_send_may_fill_what_is_left_of_a_piece_of_its_receive() {
    let (mut rig, _) = rig(QpType::Rc);
    let data = bytes(2 * MTU + 10);
    let first = rig.packet(Send, First, FIRST, &data[..MTU]);
    let middle = rig.packet(Send, Middle, FIRST + 1, &data[MTU..2 * MTU]);
    let last = rig.packet(Send, Last, FIRST + 2, &data[2 * MTU..]);
    let follows = [&first, &middle, &last].map(|packet| {
        rig.deliver_held(packet, false);
        rig.memory.follows()
    });
    let (in_first, in_second) = (300 - MTU, 2 * MTU - 300);
    assert_eq!(follows, [vec![in_first as u32], vec![0, (600 - in_second) as u32], vec![0]]);
}

/// What is behind it is ahead of its turn, and the peer is told to go back.
#[test]
fn what_follows_a_spoilt_packet_asks_for_it() {
    let (mut rig, _) = rig(QpType::Rc);
    let target = rig.region(1024, ALL);
    let data = bytes(MTU + 10);
    let first = rig.packet(Write, First, FIRST, &data[..MTU]).with(reth(&target, 3, data.len() as u32));
    rig.deliver_held(&first, true);
    let last = rig.packet(Write, Last, FIRST + 1, &data[MTU..]).ack_req();
    rig.deliver_held(&last, false);
    let answers = rig.sent();
    assert_eq!(answers.len(), 1);
    assert_eq!((answers[0].bth.psn, rig.count(Counter::SeqNakSent)), (Psn::new(FIRST), 1));
}

/// The receive stays taken, at the place where it was, and is filled by the repetition.
#[test]
fn a_send_that_is_spoilt_fills_its_receive_when_it_comes_again() {
    let (mut rig, buffer) = rig(QpType::Rc);
    let data = bytes(2 * MTU);
    for (at, psn, payload) in [(First, FIRST, &data[..MTU]), (Last, FIRST + 1, &data[MTU..])] {
        let packet = rig.packet(Send, at, psn, payload).ack_req();
        rig.deliver_held(&packet, true);
        assert!(rig.recv_cqes().is_empty());
        rig.deliver_held(&packet, false);
    }
    let cqes = rig.recv_cqes();
    assert_eq!(cqes.len(), 1);
    assert!(cqes[0].is_success());
    assert_eq!((cqes[0].wr_id, cqes[0].byte_len as usize), (1, data.len()));
    let memory = rig.memory.content(buffer.id);
    assert_eq!((&memory[..300], &memory[1000..1000 + data.len() - 300]), (&data[..300], &data[300..]));
    assert_eq!(spoilt(&rig), (2, 2));
}

#[test]
fn a_spoilt_packet_breaks_a_message_of_uc() {
    let (mut rig, _) = rig(QpType::Uc);
    let data = bytes(2 * MTU);
    let first = rig.packet(Send, First, FIRST, &data[..MTU]);
    rig.deliver_held(&first, true);
    let last = rig.packet(Send, Last, FIRST + 1, &data[MTU..]);
    rig.deliver_held(&last, false);
    assert!(rig.recv_cqes().is_empty());
    assert_eq!((spoilt(&rig), rig.dropped(DropReason::UcBroken)), ((1, 1), 1));
    let only = rig.packet(Send, Only, FIRST + 2, &data[..10]);
    rig.deliver_held(&only, false);
    let cqes = rig.recv_cqes();
    assert_eq!((cqes.len(), cqes[0].wr_id, cqes[0].byte_len), (1, 1, 10));
}
