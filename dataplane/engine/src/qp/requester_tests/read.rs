//! READ responses: placed in order, checked against what is due.

use super::*;
use crate::counters::{Counter, DropReason};

/// A READ of 600 bytes into two pieces, in flight.
fn reading() -> (Rig, Region) {
    let (mut rig, region) = rc();
    rig.post_send(wr(1, SendOp::Read(REMOTE), &[region.sge(10, 300), region.sge(1000, 300)]));
    rig.sent();
    (rig, region)
}

#[test]
fn responses_are_scattered_over_the_sges() {
    let (mut rig, region) = reading();
    read_response(&mut rig, Position::First, 0x100, &[1; 256]);
    read_response(&mut rig, Position::Middle, 0x101, &[2; 256]);
    completes(&rig, &[]);
    read_response(&mut rig, Position::Last, 0x102, &[3; 88]);
    completes(&rig, &[(1, WcStatus::Success)]);
    let memory = rig.memory.content(region.id);
    let first = [&[1; 256][..], &[2; 44]].concat();
    let second = [&[2; 212][..], &[3; 88]].concat();
    assert_eq!((&memory[10..310], &memory[1000..1300]), (&first[..], &second[..]));
    assert_eq!((&memory[..10], &memory[310..1000]), (&pattern(0, 10)[..], &pattern(310, 690)[..]));
    assert_eq!(memory[1300..], pattern(1300, memory.len() - 1300));
}

#[test]
fn a_response_in_segments_is_placed_whole() {
    use crate::packet::{Payload, RxPacket};
    let (mut rig, region) = reading();
    let bytes: Vec<u8> = (0..=255).collect();
    let frame = response(&rig, Operation::ReadResponse, Position::First, 0x100, &bytes).frame(&rig.from_peer);
    let parsed = wire::Frame::parse(&frame, frame.len()).unwrap();
    let rest = [&bytes[100..101], &[], &bytes[101..]];
    let payload = Payload::segmented(&bytes[..100], &rest);
    rig.engine.on_packet(rig.now, &RxPacket { frame: &parsed, head: &frame, payload });
    assert_eq!(rig.memory.content(region.id)[10..266], bytes);
}

/// Piece by piece: behind one of them the message goes on elsewhere.
#[test]
fn memory_is_told_how_much_of_a_read_follows() {
    let (mut rig, _) = reading();
    let positions = [Position::First, Position::Middle, Position::Last];
    let follows = [0x100, 0x101, 0x102].map(|psn| {
        let number = psn as usize - 0x100;
        let bytes = [3; 256];
        let bytes = &bytes[..if number == 2 { 88 } else { 256 }];
        let packet = response(&rig, Operation::ReadResponse, positions[number], psn, bytes);
        rig.deliver_held(&packet, false);
        rig.memory.follows()
    });
    assert_eq!(follows, [vec![44], vec![0, 88], vec![0]]);
    completes(&rig, &[(1, WcStatus::Success)]);
}

#[test]
fn a_response_that_is_spoilt_is_asked_for_again() {
    let (mut rig, region) = reading();
    let first = response(&rig, Operation::ReadResponse, Position::First, 0x100, &[1; 256]);
    let middle = response(&rig, Operation::ReadResponse, Position::Middle, 0x101, &[2; 256]);
    rig.deliver_held(&first, false);
    rig.deliver_held(&middle, true);
    assert_eq!((rig.dropped(DropReason::Spoilt), rig.count(Counter::BadIcrc)), (1, 1));
    completes(&rig, &[]);
    sends(&mut rig, &[]);
    read_response(&mut rig, Position::Last, 0x102, &[3; 88]);
    assert_eq!(rig.sent().len(), 1, "a READ of the rest");
    let rest = response(&rig, Operation::ReadResponse, Position::First, 0x101, &[2; 256]);
    rig.deliver_held(&rest, false);
    read_response(&mut rig, Position::Last, 0x102, &[3; 88]);
    completes(&rig, &[(1, WcStatus::Success)]);
    let memory = rig.memory.content(region.id);
    assert_eq!((&memory[266..310], &memory[1000..1212]), (&[2; 44][..], &[2; 212][..]));
}

#[test]
fn a_response_again_is_stale() {
    let (mut rig, region) = reading();
    read_response(&mut rig, Position::First, 0x100, &[1; 256]);
    read_response(&mut rig, Position::First, 0x100, &[9; 256]);
    assert_eq!(rig.dropped(DropReason::StaleResponse), 1);
    assert_eq!(rig.memory.content(region.id)[10..20], [1; 10]);
    sends(&mut rig, &[]);
}

#[test]
fn an_opcode_out_of_place_is_a_bad_response() {
    for (at, psn, len) in [
        (Position::Middle, 0x100, 256),
        (Position::Only, 0x100, 256),
        (Position::Last, 0x100, 256),
        (Position::First, 0x101, 256),
        (Position::Last, 0x101, 256),
        (Position::Middle, 0x102, 88),
    ] {
        let (mut rig, _) = reading();
        for (before, at) in [(0x100, Position::First), (0x101, Position::Middle)] {
            if before < psn {
                read_response(&mut rig, at, before, &[1; 256]);
            }
        }
        read_response(&mut rig, at, psn, &vec![1; len]);
        completes(&rig, &[(1, WcStatus::BadRespErr)]);
        assert_eq!(rig.state(), QpState::Err, "{at:?} at {psn:x}");
    }
}

#[test]
fn a_response_of_the_wrong_length_is_a_length_error() {
    for (at, psn, len) in [
        (Position::First, 0x100, 255),
        (Position::First, 0x100, 257),
        (Position::First, 0x100, 0),
        (Position::Last, 0x102, 87),
        (Position::Last, 0x102, 89),
    ] {
        let (mut rig, region) = reading();
        for (before, at) in [(0x100, Position::First), (0x101, Position::Middle)] {
            if before < psn {
                read_response(&mut rig, at, before, &[1; 256]);
            }
        }
        let before = rig.memory.content(region.id);
        read_response(&mut rig, at, psn, &vec![1; len]);
        completes(&rig, &[(1, WcStatus::LocLenErr)]);
        assert_eq!(rig.memory.content(region.id), before, "{at:?} of {len}");
    }
}

/// The peer cuts what we read by a path MTU of its own: told apart from a response that is just wrong.
#[test]
fn responses_of_a_peer_with_another_path_mtu_are_counted() {
    for (at, len, expected) in [
        (Position::First, 2048, (1, 0)),
        (Position::Only, 1500, (1, 0)),
        (Position::First, 512, (0, 1)),
        (Position::First, 513, (0, 0)),
        (Position::Last, 476, (0, 0)),
    ] {
        let (mut rig, region) = rc_with(QpAttr { path_mtu: Mtu::Mtu1024, ..attributes() });
        rig.post_send(wr(1, SendOp::Read(REMOTE), &[region.sge(0, 1500)]));
        rig.sent();
        read_response(&mut rig, at, 0x100, &vec![1; len]);
        assert_ne!(rig.send_cqes()[0].status, WcStatus::Success);
        let counted = (rig.count(Counter::OverPathMtu), rig.count(Counter::UnderPathMtu));
        assert_eq!(counted, expected, "{at:?} of {len}");
    }
}

#[test]
fn data_for_a_send_is_a_bad_response() {
    let (mut rig, _) = rc();
    rig.post_send(wr(1, SendOp::Send, &[]));
    rig.post_send(wr(2, SendOp::Send, &[]));
    rig.sent();
    read_response(&mut rig, Position::Only, 0x101, &[]);
    completes(&rig, &[(1, WcStatus::Success), (2, WcStatus::BadRespErr)]);
    assert_eq!(rig.state(), QpState::Err);
}

#[test]
fn a_result_buffer_that_is_gone_fails_the_read() {
    let (mut rig, region) = reading();
    rig.memory.remove(region.id);
    read_response(&mut rig, Position::First, 0x100, &[1; 256]);
    completes(&rig, &[(1, WcStatus::LocProtErr)]);
}

#[test]
fn a_refusal_with_data_is_dropped() {
    let (mut rig, region) = reading();
    let refusal = Aeth { syndrome: Syndrome::Nak(NakCode::RemoteAccess), msn: Msn::new(0) };
    let packet = rig.packet(Operation::ReadResponse, Position::First, 0x100, &[9; 256]).with(refusal);
    rig.deliver(&packet);
    assert_eq!(rig.dropped(DropReason::ReservedSyndrome), 1);
    assert_eq!(rig.memory.content(region.id)[10..20], pattern(10, 10));
}
