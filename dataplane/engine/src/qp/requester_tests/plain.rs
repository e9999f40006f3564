//! Plain requests: whatever way one goes, by itself or like any other, the packet and all that follows are the same.

use super::*;
use crate::counters::Counter;
use crate::queue::{PostError, SendList};
use crate::wr::Sge;

/// A request that found the sink full goes like any other.
fn send_the_other_way(rig: &mut Rig) -> Vec<Packet> {
    assert!(rig.sent_into(0).is_empty());
    rig.sent()
}

#[test]
fn both_ways_make_the_same_packet() {
    let kinds = [SendOp::Write(REMOTE), SendOp::Send];
    let flags = [SendFlags::empty(), SendFlags::SIGNALED, SendFlags::SOLICITED];
    for (op, flags) in kinds.iter().flat_map(|op| flags.map(|flags| (op, flags))) {
        for len in [0, 1, 2, 3, 4, 64, 255, 256] {
            let [(mut one, region), (mut other, _)] = [rc(), rc()];
            let request = || with_flags(wr(1, op.clone(), &[region.sge(9, len)]), flags);
            one.post_send(request());
            other.post_send(request());
            let (sent, again) = (one.sent(), send_the_other_way(&mut other));
            let what = |packets: &[Packet]| {
                let parts = packets.iter().map(|it| (it.bth, it.ext, it.payload.clone(), it.again));
                parts.collect::<Vec<_>>()
            };
            assert_eq!(what(&sent), what(&again), "{op:?} of {len} bytes");
            assert_eq!(sent[0].payload, pattern(9, len as usize));
            assert_eq!(one.engine.next_timeout(), other.engine.next_timeout());
            for counter in Counter::ALL {
                assert_eq!(one.count(*counter), other.count(*counter), "{}", counter.name());
            }
            for rig in [&mut one, &mut other] {
                ack(rig, 0x100);
                let told = flags.contains(SendFlags::SIGNALED);
                completes(rig, &[(1, WcStatus::Success)][..usize::from(told)]);
                assert_eq!(rig.shared.sq().outstanding(), 0, "unsignaled ones are done, too");
                rig.post_send(wr(2, SendOp::Send, &[]));
                sends(rig, &["101 SEND Only 0 A"]);
            }
        }
    }
}

#[test]
fn what_is_longer_than_a_packet_is_several() {
    let (mut rig, region) = rc();
    rig.post_send(wr(1, SendOp::Write(REMOTE), &[region.sge(0, 257)]));
    sends(&mut rig, &["100 WRITE First 256 @7f000000+257", "101 WRITE Last 1 A"]);
}

#[test]
fn memory_that_is_not_the_domains_ends_the_request_before_it_leaves() {
    for id in 1..=2 {
        let (mut rig, region) = rc();
        let stranger = Sge { lkey: wire::LKey::new(0xBAD0), ..region.sge(0, 8) };
        let flags = if id == 1 { SendFlags::empty() } else { SendFlags::SIGNALED };
        rig.post_send(with_flags(wr(1, SendOp::Write(REMOTE), &[stranger]), flags));
        sends(&mut rig, &[]);
        completes(&rig, &[(1, WcStatus::LocProtErr)]);
    }
}

/// Requests that nobody is told of, with one among them that somebody is; of those that are covered all are done.
#[test]
fn an_ack_ends_the_quiet_ones_that_it_covers_and_no_more() {
    for (covered, told) in [(1, None), (2, None), (3, Some(3)), (4, Some(3)), (5, Some(3))] {
        let (mut rig, region) = rc();
        for id in 1..=5 {
            let flags = if id == 3 { SendFlags::SIGNALED } else { SendFlags::empty() };
            rig.post_send(with_flags(wr(id, SendOp::Write(REMOTE), &[region.sge(0, 8)]), flags));
        }
        rig.sent();
        ack(&mut rig, 0xFF + covered);
        completes(&rig, &told.map_or(vec![], |id| vec![(id, WcStatus::Success)]));
        assert_eq!(rig.shared.sq().outstanding(), 5 - covered);
        nak(&mut rig, 0x100 + covered.min(4), NakCode::PsnSequence);
        let again = rig.sent();
        assert_eq!(again.len() as u32, 5 - covered, "what is not covered goes out again");
        assert!(again.iter().all(|packet| packet.again));
    }
}

/// The way back to the first of four, and then an answer that covers two of them: they do not go out again.
#[test]
fn an_ack_of_quiet_ones_that_were_to_be_sent_again_moves_the_cursor_along() {
    let (mut rig, _) = rc();
    for id in 1..=4 {
        rig.post_send(with_flags(wr(id, SendOp::Send, &[]), SendFlags::empty()));
    }
    rig.sent();
    rig.advance(100_000_000);
    ack(&mut rig, 0x101);
    assert_eq!(rig.shared.sq().outstanding(), 2);
    sends(&mut rig, &["102 SEND Only 0 A", "103 SEND Only 0 A"]);
}

/// The same place, quiet at first and then not.
#[test]
fn a_place_forgets_that_it_was_quiet() {
    let mut rig = Rig::with_capacities(QpType::Rc, QpState::Rts, attributes(), 1, 8);
    let region = rig.region(64, Access::LOCAL_WRITE);
    rig.post_send(with_flags(wr(1, SendOp::Send, &[]), SendFlags::empty()));
    rig.sent();
    ack(&mut rig, 0x100);
    for (id, op) in [(2, SendOp::Send), (3, SendOp::Read(REMOTE))] {
        rig.post_send(wr(id, op, &[region.sge(0, 8)]));
        rig.sent();
        match id {
            2 => ack(&mut rig, 0x101),
            _ => read_response(&mut rig, Position::Only, 0x102, &[7; 8]),
        }
        completes(&rig, &[(id, WcStatus::Success)]);
    }
}

/// Every request of such a queue gives a completion.
#[test]
fn nothing_is_quiet_where_all_is_signaled() {
    let memory = crate::testkit::HeapMemory::default();
    let mut own = Own::new(memory.clone(), true, Arc::new(RecvQueue::new(1, 1)));
    own.connect(&attributes());
    own.post(with_flags(wr(1, SendOp::Send, &[]), SendFlags::empty()));
    own.engine.poll_transmit(0, &mut crate::testkit::ListSink::new(memory, 9));
    let packet =
        Packet::new(QpType::Rc, Operation::Acknowledge, Position::Only, QPN, wire::Psn::new(0x100), &[]);
    own.deliver(&packet.with(Aeth { syndrome: Syndrome::ACK, msn: Msn::new(0) }));
    assert_eq!(own.cq.poll().map(|cqe| cqe.wr_id), Some(1));
}

/// Pushes a request of one piece.
type Push = fn(&mut SendList<'_>, &SendOp, Sge) -> Result<(), PostError>;

/// What is pushed as a piece, or as a piece of its kind, is what is pushed as a request of it, whatever the place held before.
#[test]
fn a_piece_goes_out_as_the_request_of_it_does() {
    let mut rig = Rig::with_capacities(QpType::Rc, QpState::Rts, attributes(), 1, 8);
    let region = rig.region(0x8_0000, Access::LOCAL_WRITE);
    let pieces = [region.sge(0, 8), region.sge(8, 8)];
    let mut psn = 0x100;
    let odd = wr(9, SendOp::WriteImm(REMOTE, [5; 4]), &pieces);
    let odd = with_flags(odd, SendFlags::SIGNALED | SendFlags::SOLICITED);
    for before in [inline(9, SendOp::Send, b"inline"), wr(9, SendOp::Send, &pieces), odd] {
        for op in [SendOp::Write(REMOTE), SendOp::WriteImm(REMOTE, [1, 2, 3, 4]), SendOp::Send] {
            let ways: [Push; 3] = [
                |list, op, sge| list.push(wr(1, op.clone(), &[sge])),
                |list, op, sge| list.push_piece(1, op.clone(), sge, SendFlags::SIGNALED),
                |list, op, sge| match op {
                    SendOp::Write(remote) => list.push_write(1, *remote, sge, SendFlags::SIGNALED),
                    SendOp::Send => list.push_send(1, sge, SendFlags::SIGNALED),
                    other => list.push_piece(1, other.clone(), sge, SendFlags::SIGNALED),
                },
            ];
            let mut seen = Vec::new();
            for way in ways {
                for wr in [Some(before.clone()), None] {
                    let mut list = rig.shared.send_list().unwrap();
                    match wr {
                        Some(wr) => list.push(wr).unwrap(),
                        None => way(&mut list, &op, region.sge(40, 30)).unwrap(),
                    }
                    assert!(list.post());
                    rig.engine.on_doorbell(rig.now, QPN);
                    let sent = rig.sent();
                    let Packet { bth, ext, payload, .. } = &sent[0];
                    seen.push((bth.opcode, bth.solicited, *ext, payload.clone()));
                    ack(&mut rig, psn);
                    psn += 1;
                    assert_eq!(rig.send_cqes().len(), 1);
                }
            }
            assert_eq!((&seen[1], &seen[1]), (&seen[3], &seen[5]), "{op:?}");
        }
    }
}

/// Of what a request was that nobody is told of nothing is left either.
#[test]
fn a_send_takes_the_place_of_a_quiet_write() {
    let mut rig = Rig::with_capacities(QpType::Rc, QpState::Rts, attributes(), 1, 8);
    let region = rig.region(0x8_0000, Access::LOCAL_WRITE);
    let (write, send) = (region.sge(0, 8), region.sge(40, 30));
    let mut list = rig.shared.send_list().unwrap();
    list.push_write(1, REMOTE, write, SendFlags::empty()).unwrap();
    assert!(list.post());
    rig.engine.on_doorbell(rig.now, QPN);
    assert_eq!(rig.sent().len(), 1);
    ack(&mut rig, 0x100);
    assert!(rig.send_cqes().is_empty());
    let mut list = rig.shared.send_list().unwrap();
    list.push_send(2, send, SendFlags::SIGNALED).unwrap();
    assert!(list.post());
    rig.engine.on_doorbell(rig.now, QPN);
    let sent = rig.sent();
    assert_eq!(sent[0].bth.opcode.info().map(|info| info.operation), Some(Operation::Send));
    assert_eq!(sent[0].payload, pattern(40, 30));
    ack(&mut rig, 0x101);
    assert_eq!(rig.send_cqes().iter().map(|cqe| cqe.wr_id).collect::<Vec<_>>(), [2]);
}
