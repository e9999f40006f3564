//! WRITE: where bytes go, with and without immediate, of no length, and with a key that goes away.

use super::help::*;

#[test]
fn a_write_of_one_packet_lands_where_its_reth_says() {
    let mut rig = Rig::new(QpType::Rc);
    let target = rig.region(64, ALL);
    let data = bytes(10);
    let packet = rig.packet(Write, Only, FIRST, &data).with(reth(&target, 5, 10)).ack_req();
    assert_eq!(acks(&rig.answer(&packet)), [ack(FIRST, 1)]);
    let content = rig.memory.content(target.id);
    assert_eq!(content[5..15], data);
    assert_eq!((content[4], content[15]), (5, 16));
    assert_eq!(rig.recv_cqes(), [], "nobody is told");
    assert_eq!(rig.count(Counter::RxWriteRequests), 1);
}

#[test]
fn a_write_of_several_packets_goes_on_where_it_was() {
    let mut rig = Rig::new(QpType::Rc);
    let target = rig.region(1024, ALL);
    let data = bytes(MTU * 3 - 1);
    let first = rig.packet(Write, First, FIRST, &data[..MTU]).with(reth(&target, 100, data.len() as u32));
    rig.deliver(&first);
    rig.deliver(&rig.packet(Write, Middle, FIRST + 1, &data[MTU..2 * MTU]).ack_req());
    assert_eq!(acks(&rig.sent()), [ack(FIRST + 1, 0)], "the message is not complete");
    rig.deliver(&rig.packet(Write, Last, FIRST + 2, &data[2 * MTU..]).ack_req());
    assert_eq!(acks(&rig.sent()), [ack(FIRST + 2, 1)]);
    assert_eq!(rig.memory.content(target.id)[100..100 + data.len()], data);
    assert_eq!(rig.count(Counter::RxWriteRequests), 1);
}

/// rocev2 facts, transport 12: the RETH length, in a completion of its own kind; the receive's memory is not
/// touched, so its key does not matter.
#[test]
fn a_write_with_immediate_completes_a_receive_with_the_reth_length() {
    let mut rig = Rig::new(QpType::Rc);
    let target = rig.region(1024, ALL);
    rig.post_recv(3, &[crate::Sge { addr: 0, len: 1, lkey: wire::LKey::new(0x7777_7700) }]);
    let data = bytes(MTU + 1);
    let reth = reth(&target, 0, data.len() as u32);
    rig.deliver(&rig.packet(Write, First, FIRST, &data[..MTU]).with(reth));
    assert_eq!(rig.shared.rq().len(), 1, "taken at the packet with the immediate");
    let last = rig.packet(WriteImm, Last, FIRST + 1, &data[MTU..]).with(ImmDt([9, 8, 7, 6]));
    rig.deliver(&last.ack_req().solicited());
    assert_eq!(acks(&rig.sent()), [ack(FIRST + 1, 1)]);
    let cqe = Cqe {
        byte_len: MTU as u32 + 1,
        imm: Some([9, 8, 7, 6]),
        solicited: true,
        ..Cqe::new(3, WcStatus::Success, WcOpcode::RecvRdmaWithImm, QPN)
    };
    assert_eq!(rig.recv_cqes(), [cqe]);
    assert_eq!(rig.memory.content(target.id)[..data.len()], data);
}

/// IBA C9-88: no bytes, no key. The QP's own right is asked for all the same.
#[test]
fn an_empty_write_needs_no_key() {
    let mut rig = Rig::new(QpType::Rc);
    let nowhere = Reth { va: u64::MAX, rkey: RKey::new(0xBAD), dma_len: 0 };
    assert_eq!(
        acks(&rig.answer(&rig.packet(Write, Only, FIRST, &[]).with(nowhere).ack_req())),
        [ack(FIRST, 1)]
    );
    rig.post_recv(1, &[]);
    let imm = rig.packet(WriteImm, Only, FIRST + 1, &[]).with(nowhere).with(ImmDt([0; 4])).ack_req();
    assert_eq!(acks(&rig.answer(&imm)), [ack(FIRST + 1, 2)]);
    assert_eq!(rig.recv_cqes()[0].byte_len, 0);
}

/// rocev2 facts, transport 21: nothing of the packet is written, and the message goes on when it comes again.
#[test]
fn a_write_with_immediate_that_finds_no_receive_writes_nothing_and_may_come_again() {
    let mut rig = Rig::new(QpType::Rc);
    let target = rig.region(1024, ALL);
    let data = bytes(MTU + 8);
    let first = rig.packet(Write, First, FIRST, &data[..MTU]).with(reth(&target, 0, data.len() as u32));
    rig.deliver(&first);
    let before = rig.memory.snapshot();
    let last = rig.packet(WriteImm, Last, FIRST + 1, &data[MTU..]).with(ImmDt([1; 4])).ack_req();
    assert_eq!(acks(&rig.answer(&last)), [(FIRST + 1, Syndrome::RnrNak { timer: 12 }, 0)]);
    assert_eq!(rig.memory.snapshot(), before);
    rig.post_recv(1, &[]);
    assert_eq!(acks(&rig.answer(&last)), [ack(FIRST + 1, 1)]);
    assert_eq!(rig.memory.content(target.id)[..data.len()], data);
    assert_eq!(rig.recv_cqes()[0].byte_len as usize, data.len());
}

#[test]
fn a_key_that_is_invalidated_under_way_stops_the_write() {
    let mut rig = Rig::new(QpType::Rc);
    let target = rig.fast_region(1024, ALL);
    rig.deliver(&rig.packet(Write, First, FIRST, &bytes(MTU)).with(reth(&target, 0, 1024)));
    target.mr.invalidate(PD, target.rkey()).unwrap();
    let before = rig.memory.snapshot();
    let sent = rig.answer(&rig.packet(Write, Middle, FIRST + 1, &bytes(MTU)));
    assert_eq!(acks(&sent), [nak(NakCode::RemoteAccess, FIRST + 1, 0)]);
    assert_eq!(rig.memory.snapshot(), before);
    assert_failed(&mut rig);
}

#[test]
fn memory_that_was_deregistered_is_a_remote_access_error() {
    let mut rig = Rig::new(QpType::Rc);
    let target = rig.region(1024, ALL);
    rig.memory.remove(target.id);
    let sent = rig.answer(&rig.packet(Write, Only, FIRST, &[1]).with(reth(&target, 0, 1)));
    assert_eq!(acks(&sent), [nak(NakCode::RemoteAccess, FIRST, 0)]);
    assert_failed(&mut rig);
}

/// The payloads add up to the RETH length (rocev2 facts, wire 8): everything else is an invalid request that
/// writes nothing.
#[test]
fn payloads_must_add_up_to_the_reth_length() {
    let mtu = MTU as u32;
    // RETH length, then position and payload of the packets. The last one is the wrong one.
    type Case = (u32, &'static [(Position, usize)]);
    let cases: [Case; 8] = [
        (9, &[(Only, 10)]),
        (11, &[(Only, 10)]),
        (0, &[(Only, 4)]),
        (mtu + 1, &[(Only, 256)]),
        (mtu, &[(First, 256)]),
        (2 * mtu, &[(First, 256), (Middle, 256)]),
        (mtu + 5, &[(First, 256), (Last, 4)]),
        (3 * mtu, &[(First, 256), (Last, 256)]),
    ];
    for (len, packets) in cases {
        let mut rig = Rig::new(QpType::Rc);
        let target = rig.region(1024, ALL);
        for (i, &(at, payload)) in packets.iter().enumerate() {
            let before = rig.memory.snapshot();
            let mut packet = rig.packet(Write, at, FIRST + i as u32, &bytes(payload));
            if at.begins() {
                packet = packet.with(reth(&target, 0, len));
            }
            let sent = rig.answer(&packet);
            if i + 1 < packets.len() {
                assert!(sent.is_empty(), "{len} {packets:?}");
            } else {
                let expected = nak(NakCode::InvalidRequest, FIRST + i as u32, 0);
                assert_eq!(acks(&sent), [expected], "{len} {packets:?}");
                assert_eq!(rig.memory.snapshot(), before);
                assert_failed(&mut rig);
            }
        }
    }
}

/// rocev2 facts, wire 8: 2^31 is a message, more is an invalid request. (The region is too small for either,
/// which is an access error, and comes later.)
#[test]
fn a_reth_may_say_two_to_the_31_and_no_more() {
    for (len, code) in [(1 << 31, NakCode::RemoteAccess), ((1 << 31) + 1, NakCode::InvalidRequest)] {
        for op in [Write, ReadRequest] {
            let mut rig = Rig::new(QpType::Rc);
            let target = rig.region(1024, ALL);
            let (at, payload) = if op == Write { (First, bytes(MTU)) } else { (Only, Vec::new()) };
            let packet = rig.packet(op, at, FIRST, &payload).with(reth(&target, 0, len));
            assert_eq!(acks(&rig.answer(&packet)), [nak(code, FIRST, 0)], "{op:?} of {len}");
            assert_failed(&mut rig);
        }
    }
}

/// Keys are checked as rocev2 facts, transport 18 say, and nothing beyond the region is touched, also not
/// around the end of the address space.
#[test]
fn a_write_needs_a_key_of_the_pd_with_the_right_for_all_of_its_bytes() {
    let good = |rig: &mut Rig| {
        let r = rig.region(64, ALL);
        reth(&r, 60, 4)
    };
    let past_end = |rig: &mut Rig| {
        let r = rig.region(64, ALL);
        reth(&r, 61, 4)
    };
    let before_start = |rig: &mut Rig| {
        let r = rig.region(64, ALL);
        Reth { va: r.addr - 1, ..reth(&r, 0, 4) }
    };
    let wraps = |rig: &mut Rig| {
        let r = rig.region(64, ALL);
        Reth { va: u64::MAX - 1, ..reth(&r, 0, 4) }
    };
    let no_right = |rig: &mut Rig| {
        let r = rig.region(64, ALL - Access::REMOTE_WRITE);
        reth(&r, 0, 4)
    };
    let other_pd = |rig: &mut Rig| {
        let r = rig.region_of(crate::PdId(9), 64, ALL);
        reth(&r, 0, 4)
    };
    let other_low_byte = |rig: &mut Rig| {
        let r = rig.region(64, ALL);
        Reth { rkey: RKey::new(r.mr.key() ^ 1), ..reth(&r, 0, 4) }
    };
    let unknown = |_: &mut Rig| Reth { va: 0, rkey: RKey::new(0), dma_len: 4 };
    type Make = fn(&mut Rig) -> Reth;
    let cases: [(Make, bool); 8] = [
        (good, true),
        (past_end, false),
        (before_start, false),
        (wraps, false),
        (no_right, false),
        (other_pd, false),
        (other_low_byte, false),
        (unknown, false),
    ];
    for (number, (make, allowed)) in cases.into_iter().enumerate() {
        let mut rig = Rig::new(QpType::Rc);
        let reth = make(&mut rig);
        let before = rig.memory.snapshot();
        let sent = rig.answer(&rig.packet(Write, Only, FIRST, &[0xEE; 4]).with(reth).ack_req());
        if allowed {
            assert_eq!(acks(&sent), [ack(FIRST, 1)]);
        } else {
            assert_eq!(acks(&sent), [nak(NakCode::RemoteAccess, FIRST, 0)], "case {number}");
            assert_eq!(rig.memory.snapshot(), before);
            let event = AsyncEvent { kind: EventKind::QpAccessErr, source: EventSource::Qp(QPN) };
            assert_eq!(rig.raised(), [event]);
            assert_failed(&mut rig);
        }
    }
}
