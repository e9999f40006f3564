//! READ: one packet per poll, the rest of it lazily, and what happens when its memory goes away.

use super::help::*;

/// A READ request of a region.
fn read(rig: &Rig, psn: u32, reth: Reth) -> Packet {
    rig.packet(ReadRequest, Only, psn, &[]).with(reth)
}

#[test]
fn a_read_is_answered_with_as_many_responses_as_it_has_packets() {
    let cases: [(usize, &[Position]); 6] = [
        (1, &[Only]),
        (255, &[Only]),
        (256, &[Only]),
        (257, &[First, Last]),
        (512, &[First, Last]),
        (1000, &[First, Middle, Middle, Last]),
    ];
    for (len, positions) in cases {
        let mut rig = Rig::new(QpType::Rc);
        let source = rig.region(1024, ALL);
        let sent = rig.answer(&read(&rig, FIRST, reth(&source, 7, len as u32)));
        let kinds: Vec<_> = sent.iter().map(Packet::kind).collect();
        assert_eq!(kinds, positions.iter().map(|&at| (ReadResponse, at)).collect::<Vec<_>>());
        for (i, packet) in sent.iter().enumerate() {
            assert_eq!(packet.bth.psn.value(), FIRST + i as u32);
            assert_eq!(packet.bth.dest_qpn, PEER_QPN);
            // A Middle has no AETH; the READ counts as a message since it was accepted.
            let aeth = (positions[i] != Middle).then_some(Aeth { syndrome: Syndrome::ACK, msn: Msn::new(1) });
            assert_eq!(packet.header::<Aeth>(), aeth);
        }
        let data: Vec<u8> = sent.iter().flat_map(|packet| packet.payload.clone()).collect();
        assert_eq!(data, rig.memory.content(source.id)[7..7 + len]);
        // The next request comes behind the last response.
        let next = FIRST + positions.len() as u32;
        let write = rig.packet(Write, Only, next, &[]).with(reth(&source, 0, 0)).ack_req();
        assert_eq!(acks(&rig.answer(&write)), [ack(next, 2)]);
    }
}

/// IBA C9-88: no bytes, no key.
#[test]
fn an_empty_read_is_answered_with_an_empty_only_whatever_its_key() {
    let mut rig = Rig::new(QpType::Rc);
    let nowhere = Reth { va: u64::MAX, rkey: RKey::new(0xBAD), dma_len: 0 };
    let sent = rig.answer(&read(&rig, FIRST, nowhere));
    assert_eq!(sent.len(), 1);
    assert_eq!((sent[0].kind(), sent[0].payload.len()), ((ReadResponse, Only), 0));
    assert_eq!(sent[0].syndrome(), Some(Syndrome::ACK));
    // Its duplicate, too.
    assert_eq!(rig.answer(&read(&rig, FIRST, nowhere)).len(), 1);
}

#[test]
fn a_full_sink_costs_the_read_nothing() {
    let mut rig = Rig::new(QpType::Rc);
    let source = rig.region(1024, ALL);
    rig.deliver(&read(&rig, FIRST, reth(&source, 0, 1024)));
    let mut sent = Vec::new();
    for room in [1, 0, 2, 0, 5] {
        sent.extend(rig.sent_into(room));
    }
    let positions: Vec<_> = sent.iter().map(|packet| packet.kind().1).collect();
    assert_eq!(positions, [First, Middle, Middle, Last]);
    let data: Vec<u8> = sent.iter().flat_map(|packet| packet.payload.clone()).collect();
    assert_eq!(data, rig.memory.content(source.id));
}

#[test]
fn a_read_whose_key_goes_away_ends_with_a_nak_where_its_response_would_be() {
    let mut rig = Rig::new(QpType::Rc);
    let source = rig.fast_region(1024, ALL);
    rig.deliver(&read(&rig, FIRST, reth(&source, 0, 1024)));
    assert_eq!(rig.sent_into(2).len(), 2);
    source.mr.invalidate(PD, source.rkey()).unwrap();
    // A SEND behind it is not answered any more.
    rig.post_recv(1, &[]);
    rig.deliver(&rig.packet(Send, Only, FIRST + 4, &[]).ack_req());
    assert_eq!(acks(&rig.sent()), [nak(NakCode::RemoteAccess, FIRST + 2, 2)]);
    assert_failed(&mut rig);
}

#[test]
fn a_read_whose_memory_was_deregistered_ends_with_a_nak() {
    let mut rig = Rig::new(QpType::Rc);
    let source = rig.region(1024, ALL);
    rig.deliver(&read(&rig, FIRST, reth(&source, 0, 1024)));
    rig.memory.remove(source.id);
    assert_eq!(acks(&rig.sent()), [nak(NakCode::RemoteAccess, FIRST, 1)]);
    assert_eq!(rig.count(Counter::RespRemoteAccessErrors), 1);
    assert_failed(&mut rig);
}

#[test]
fn nothing_is_answered_behind_a_read_that_failed() {
    let mut rig = Rig::new(QpType::Rc);
    let (gone, kept) = (rig.region(64, ALL), rig.region(64, ALL));
    rig.deliver(&read(&rig, FIRST, reth(&gone, 0, 4)));
    rig.deliver(&read(&rig, FIRST + 1, reth(&kept, 0, 4)));
    rig.memory.remove(gone.id);
    assert_eq!(acks(&rig.sent()), [nak(NakCode::RemoteAccess, FIRST, 2)]);
    assert_failed(&mut rig);
}

/// rocev2 facts, transport 7: rxe rounds its number of outstanding READs up to a power of two, so 3 allows 4.
#[test]
fn as_many_reads_as_slots_may_wait_for_their_answers() {
    for (agreed, slots) in [(1, 1), (2, 2), (3, 4), (4, 4), (5, 8)] {
        let attr = QpAttr { max_dest_rd_atomic: agreed, ..attributes() };
        let mut rig = Rig::with(QpType::Rc, QpState::Rts, attr);
        let source = rig.region(64, ALL);
        for i in 0..=slots {
            rig.deliver(&read(&rig, FIRST + i, reth(&source, 0, 4)));
        }
        let sent = rig.sent();
        let (answers, last) = sent.split_at(slots as usize);
        assert!(answers.iter().all(|packet| packet.kind() == (ReadResponse, Only)), "{agreed}");
        assert_eq!(acks(last), [nak(NakCode::InvalidRequest, FIRST + slots, slots)]);
        assert_failed(&mut rig);
    }
}

#[test]
fn a_slot_is_free_again_when_its_answer_was_sent() {
    let mut rig = Rig::new(QpType::Rc);
    let source = rig.region(64, ALL);
    for i in 0..20 {
        let sent = rig.answer(&read(&rig, FIRST + i, reth(&source, u64::from(i), 4)));
        assert_eq!(sent[0].payload, rig.memory.content(source.id)[i as usize..][..4]);
    }
}

#[test]
fn without_slots_a_read_is_an_invalid_request() {
    let attr = QpAttr { max_dest_rd_atomic: 0, ..attributes() };
    let mut rig = Rig::with(QpType::Rc, QpState::Rts, attr);
    let source = rig.region(64, ALL);
    let sent = rig.answer(&read(&rig, FIRST, reth(&source, 0, 4)));
    assert_eq!(acks(&sent), [nak(NakCode::InvalidRequest, FIRST, 0)]);
}

#[test]
fn a_read_needs_the_right_to_read_all_of_its_bytes() {
    for (access, len, allowed) in [(ALL, 64, true), (ALL, 65, false), (ALL - Access::REMOTE_READ, 64, false)]
    {
        let mut rig = Rig::new(QpType::Rc);
        let source = rig.region(64, access);
        let sent = rig.answer(&read(&rig, FIRST, reth(&source, 0, len)));
        if allowed {
            assert_eq!(sent[0].payload.len(), 64);
        } else {
            assert_eq!(acks(&sent), [nak(NakCode::RemoteAccess, FIRST, 0)]);
        }
    }
}
