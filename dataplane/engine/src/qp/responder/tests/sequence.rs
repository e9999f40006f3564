//! PSNs and opcodes out of sequence.

use super::help::*;

/// An empty WRITE: a message that needs nothing.
fn write(rig: &Rig, psn: u32) -> Packet {
    let nowhere = Reth { va: 0, rkey: RKey::new(0), dma_len: 0 };
    rig.packet(Write, Only, psn, &[]).with(nowhere).ack_req()
}

/// rocev2 facts, transport 6: one sequence NAK, then silence until the expected PSN arrives.
#[test]
fn a_gap_is_told_once() {
    let mut rig = Rig::new(QpType::Rc);
    assert_eq!(acks(&rig.answer(&write(&rig, FIRST + 2))), [nak(NakCode::PsnSequence, FIRST, 0)]);
    for ahead in 1..10 {
        assert!(rig.answer(&write(&rig, FIRST + ahead)).is_empty());
    }
    // Duplicates are answered meanwhile, and end the silence for nobody.
    assert_eq!(acks(&rig.answer(&write(&rig, FIRST - 1))), [ack(FIRST - 1, 0)]);
    assert!(rig.answer(&write(&rig, FIRST + 1)).is_empty());
    // The next gap is told again.
    assert_eq!(acks(&rig.answer(&write(&rig, FIRST))), [ack(FIRST, 1)]);
    assert_eq!(acks(&rig.answer(&write(&rig, FIRST + 2))), [nak(NakCode::PsnSequence, FIRST + 1, 1)]);
    assert_eq!(rig.dropped(DropReason::AheadOfSequence), 12);
    assert_eq!((rig.count(Counter::OutOfSequence), rig.count(Counter::SeqNakSent)), (12, 2));
    assert_eq!(rig.state(), QpState::Rts);
}

#[test]
fn a_gap_within_a_burst_is_told_with_what_is_missing_at_its_end() {
    let mut rig = Rig::new(QpType::Rc);
    rig.deliver(&write(&rig, FIRST + 2));
    rig.deliver(&write(&rig, FIRST));
    assert_eq!(acks(&rig.sent()), [nak(NakCode::PsnSequence, FIRST + 1, 1)]);
    assert!(rig.answer(&write(&rig, FIRST + 3)).is_empty(), "it has been told");
}

#[test]
fn a_gap_that_closes_within_a_burst_is_not_told() {
    let mut rig = Rig::new(QpType::Rc);
    for psn in [2, 0, 1, 2] {
        rig.deliver(&write(&rig, FIRST + psn));
    }
    assert_eq!(acks(&rig.sent()), [ack(FIRST + 2, 3)]);
    // And a new one is told again.
    assert_eq!(acks(&rig.answer(&write(&rig, FIRST + 4))), [nak(NakCode::PsnSequence, FIRST + 3, 3)]);
}

/// The first that came ahead is here again, the last one is not.
#[test]
fn a_gap_that_closes_in_part_is_told() {
    let mut rig = Rig::new(QpType::Rc);
    for psn in [1, 3, 0, 1] {
        rig.deliver(&write(&rig, FIRST + psn));
    }
    assert_eq!(acks(&rig.sent()), [nak(NakCode::PsnSequence, FIRST + 2, 2)]);
}

#[test]
fn the_psn_wraps() {
    let attr = QpAttr { rq_psn: Psn::new(0xFF_FFFE), ..attributes() };
    let mut rig = Rig::with(QpType::Rc, QpState::Rts, attr);
    for (psn, msn) in [(0xFF_FFFE, 1), (0xFF_FFFF, 2), (0, 3), (1, 4)] {
        assert_eq!(acks(&rig.answer(&write(&rig, psn))), [ack(psn, msn)]);
    }
    assert_eq!(acks(&rig.answer(&write(&rig, 0xFF_FFFE))), [ack(1, 4)], "a duplicate from before the wrap");
}

#[test]
fn a_read_wraps_the_psn_and_is_found_across_it() {
    let attr = QpAttr { rq_psn: Psn::new(0xFF_FFFE), ..attributes() };
    let mut rig = Rig::with(QpType::Rc, QpState::Rts, attr);
    let source = rig.region(1024, ALL);
    let sent = rig.answer(&rig.packet(ReadRequest, Only, 0xFF_FFFE, &[]).with(reth(&source, 0, 1024)));
    let psns: Vec<_> = sent.iter().map(|packet| packet.bth.psn.value()).collect();
    assert_eq!(psns, [0xFF_FFFE, 0xFF_FFFF, 0, 1]);
    let sent = rig.answer(&rig.packet(ReadRequest, Only, 0, &[]).with(reth(&source, 512, 512)));
    let psns: Vec<_> = sent.iter().map(|packet| packet.bth.psn.value()).collect();
    assert_eq!(psns, [0, 1]);
    assert_eq!(acks(&rig.answer(&write(&rig, 2))), [ack(2, 2)]);
}

/// rocev2 facts, transport 1: half of the space lies behind the expected PSN, half ahead.
#[test]
fn half_of_the_space_is_ahead() {
    let farthest_ahead = FIRST + 0x7F_FFFF;
    let mut rig = Rig::new(QpType::Rc);
    assert_eq!(acks(&rig.answer(&write(&rig, farthest_ahead))), [nak(NakCode::PsnSequence, FIRST, 0)]);
    let mut rig = Rig::new(QpType::Rc);
    assert_eq!(acks(&rig.answer(&write(&rig, farthest_ahead + 1))), [ack(FIRST - 1, 0)]);
    assert_eq!(rig.count(Counter::DuplicateRequest), 1);
}

/// What may come after what: SEND and WRITE do not mix, a message goes on or a new one begins.
#[test]
fn only_what_goes_on_with_a_message_may_follow_its_beginning() {
    let steps = [
        (Send, First),
        (Send, Middle),
        (Send, Last),
        (SendImm, Last),
        (SendInv, Last),
        (Send, Only),
        (Write, First),
        (Write, Middle),
        (Write, Last),
        (WriteImm, Last),
        (Write, Only),
        (ReadRequest, Only),
        (FetchAdd, Only),
    ];
    for before in [None, Some(Send), Some(Write)] {
        for (op, at) in steps {
            let mut rig = Rig::new(QpType::Rc);
            let region = rig.region(4096, ALL);
            let inv = rig.fast_region(8, ALL);
            for wr_id in 0..2 {
                rig.post_recv(wr_id, &[region.sge(0, 4096)]);
            }
            let mut psn = FIRST;
            if let Some(op) = before {
                let mut first = rig.packet(op, First, psn, &bytes(MTU));
                if op == Write {
                    // Long enough for a Middle or a First, which the second packet may be; a Last gets its
                    // own.
                    let len = if at == Last { MTU + 1 } else { 3 * MTU } as u32;
                    first = first.with(reth(&region, 0, len));
                }
                assert!(rig.answer(&first).is_empty());
                psn += 1;
            }
            let payload = match at {
                First | Middle => bytes(MTU),
                Last => bytes(1),
                Only => bytes(0),
            };
            let mut packet = rig.packet(op, at, psn, &payload).ack_req();
            let info = packet.info();
            if info.has(wire::ExtKind::Reth) {
                packet = packet.with(reth(&region, 0, if at == First { 3 * MTU as u32 } else { 0 }));
            }
            if op == FetchAdd {
                packet = packet.with(AtomicEth {
                    va: region.addr,
                    rkey: region.rkey(),
                    swap_or_add: 1,
                    compare: 0,
                });
            }
            if info.has(wire::ExtKind::ImmDt) {
                packet = packet.with(ImmDt([0; 4]));
            }
            if info.has(wire::ExtKind::Ieth) {
                packet = packet.with(Ieth { rkey: inv.rkey() });
            }
            let sent = rig.answer(&packet);
            let legal = match before {
                None => at.begins(),
                Some(op_before) => !at.begins() && op.base() == op_before,
            };
            if legal {
                assert_eq!(rig.state(), QpState::Rts, "{before:?} then {op:?} {at:?}: {sent:?}");
                assert!(!sent.is_empty());
            } else {
                let expected = nak(NakCode::InvalidRequest, psn, 0);
                assert_eq!(acks(&sent), [expected], "{before:?} then {op:?} {at:?}");
                assert_failed(&mut rig);
            }
        }
    }
}
