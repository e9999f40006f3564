//! FLUSH: done after all before it, answered with an empty READ response, once.

use super::help::*;
use crate::QpAttrMask;
use wire::Feth;

const GLOBAL: u8 = 1;
const PERSISTENT: u8 = 2;
const BOTH: u8 = 3;
const RANGE: u8 = 0;
const REGION: u8 = 1;

/// Whatever a FLUSH may need, and the right to write.
const RIGHTS: Access = ALL.union(Access::FLUSH_GLOBAL).union(Access::FLUSH_PERSISTENT);

fn flush(rig: &Rig, psn: u32, (plt, sel): (u8, u8), reth: Reth) -> Packet {
    rig.packet(Flush, Only, psn, &[]).with(Feth { plt, sel }).with(reth)
}

/// A region that can persist.
fn durable(rig: &mut Rig) -> Region {
    let region = rig.region(1024, RIGHTS);
    rig.memory.make_durable(region.id);
    region
}

/// The answer at `psn`: an empty READ response Only that says so many messages.
#[track_caller]
fn assert_done(sent: &[Packet], psn: u32, msn: u32) {
    assert_eq!(sent.len(), 1, "{sent:?}");
    assert_eq!((sent[0].kind(), sent[0].payload.len()), ((ReadResponse, Only), 0));
    assert_eq!((sent[0].bth.psn.value(), sent[0].bth.dest_qpn), (psn, PEER_QPN));
    assert_eq!((sent[0].syndrome(), sent[0].msn()), (Some(Syndrome::ACK), Some(Msn::new(msn))));
}

#[test]
fn what_was_written_before_is_persistent_when_the_flush_is_answered() {
    let mut rig = Rig::new(QpType::Rc);
    let target = durable(&mut rig);
    rig.deliver(&rig.packet(Write, Only, FIRST, b"first").with(reth(&target, 0, 5)));
    rig.deliver(&rig.packet(Write, Only, FIRST + 1, b"later").with(reth(&target, 100, 5)));
    assert_ne!(&rig.memory.after_power_loss(target.id)[..5], b"first");
    // The answer stands for the WRITEs, too: no ACK beside it.
    assert_done(&rig.answer(&flush(&rig, FIRST + 2, (PERSISTENT, RANGE), reth(&target, 0, 5))), FIRST + 2, 3);
    let left = rig.memory.after_power_loss(target.id);
    assert_eq!(&left[..5], b"first");
    assert_ne!(&left[100..105], b"later", "the range alone");
    assert_eq!(rig.memory.made_visible(), 0, "it did not ask for that");
    assert_eq!(rig.count(Counter::RxFlushRequests), 1);
}

#[test]
fn a_region_is_flushed_as_a_whole_whatever_address_and_length_say() {
    let mut rig = Rig::new(QpType::Rc);
    let target = durable(&mut rig);
    rig.deliver(&rig.packet(Write, Only, FIRST, b"last").with(reth(&target, 1020, 4)));
    let nonsense = Reth { va: u64::MAX, dma_len: u32::MAX, ..reth(&target, 0, 0) };
    assert_done(&rig.answer(&flush(&rig, FIRST + 1, (BOTH, REGION), nonsense)), FIRST + 1, 2);
    assert_eq!(rig.memory.after_power_loss(target.id), rig.memory.content(target.id));
    assert_eq!(rig.memory.made_visible(), 1);
}

#[test]
fn a_flush_to_visibility_needs_no_storage() {
    let mut rig = Rig::new(QpType::Rc);
    let target = rig.region(1024, ALL | Access::FLUSH_GLOBAL);
    rig.memory.fail_storage(true);
    assert_done(&rig.answer(&flush(&rig, FIRST, (GLOBAL, RANGE), reth(&target, 0, 1024))), FIRST, 1);
    assert_eq!(rig.memory.made_visible(), 1);
}

/// rocev2 facts, transport 6: what the QP does not give is an invalid request; what the key does not, an access error.
#[test]
fn each_placement_takes_its_right_of_the_qp_and_of_the_key() {
    let rights =
        [(GLOBAL, Access::FLUSH_GLOBAL), (PERSISTENT, Access::FLUSH_PERSISTENT), (BOTH, RIGHTS - ALL)];
    for (plt, needed) in rights {
        for sel in [RANGE, REGION] {
            for given in [RIGHTS - ALL, Access::FLUSH_GLOBAL, Access::FLUSH_PERSISTENT, Access::empty()] {
                let allowed = given.contains(needed);
                let mut rig =
                    Rig::with(QpType::Rc, QpState::Rts, QpAttr { access: ALL | given, ..attributes() });
                let target = durable(&mut rig);
                let sent = rig.answer(&flush(&rig, FIRST, (plt, sel), reth(&target, 0, 8)));
                match allowed {
                    true => assert_done(&sent, FIRST, 1),
                    false => assert_eq!(acks(&sent), [nak(NakCode::InvalidRequest, FIRST, 0)]),
                }

                let mut rig = Rig::new(QpType::Rc);
                let target = rig.region(1024, ALL | given);
                rig.memory.make_durable(target.id);
                let sent = rig.answer(&flush(&rig, FIRST, (plt, sel), reth(&target, 0, 8)));
                match allowed {
                    true => assert_done(&sent, FIRST, 1),
                    false => assert_eq!(acks(&sent), [nak(NakCode::RemoteAccess, FIRST, 0)]),
                }
            }
        }
    }
}

#[test]
fn a_range_lies_inside_of_the_region_even_when_it_is_empty() {
    for (offset, len, inside) in
        [(0, 1024, true), (1024, 0, true), (0, 1025, false), (1025, 0, false), (1, 1024, false)]
    {
        let mut rig = Rig::new(QpType::Rc);
        let target = durable(&mut rig);
        let sent = rig.answer(&flush(&rig, FIRST, (PERSISTENT, RANGE), reth(&target, offset, len)));
        match inside {
            true => assert_done(&sent, FIRST, 1),
            false => assert_eq!(acks(&sent), [nak(NakCode::RemoteAccess, FIRST, 0)], "{offset} {len}"),
        }
    }
    for sel in [RANGE, REGION] {
        let mut rig = Rig::new(QpType::Rc);
        let nowhere = Reth { va: 0, rkey: RKey::new(0xBAD), dma_len: 0 };
        let sent = rig.answer(&flush(&rig, FIRST, (GLOBAL, sel), nowhere));
        assert_eq!(acks(&sent), [nak(NakCode::RemoteAccess, FIRST, 0)]);
    }
}

#[test]
fn a_length_above_two_to_the_31_is_refused_for_a_range() {
    let mut rig = Rig::new(QpType::Rc);
    let target = durable(&mut rig);
    let sent = rig.answer(&flush(&rig, FIRST, (GLOBAL, RANGE), reth(&target, 0, (1 << 31) + 1)));
    assert_eq!(acks(&sent), [nak(NakCode::InvalidRequest, FIRST, 0)]);
    assert_failed(&mut rig);
}

/// [?] the facts name neither: we offer no such operation.
#[test]
fn reserved_placements_and_levels_are_invalid_requests() {
    for (plt, sel) in [(0, RANGE), (4, RANGE), (9, RANGE), (GLOBAL, 2), (GLOBAL, 3)] {
        let mut rig = Rig::new(QpType::Rc);
        let target = durable(&mut rig);
        let sent = rig.answer(&flush(&rig, FIRST, (plt, sel), reth(&target, 0, 8)));
        assert_eq!(acks(&sent), [nak(NakCode::InvalidRequest, FIRST, 0)], "{plt} {sel}");
        assert_failed(&mut rig);
    }
}

#[test]
fn memory_that_cannot_persist_refuses_and_a_storage_that_fails_is_our_own_fault() {
    let mut rig = Rig::new(QpType::Rc);
    let target = rig.region(1024, RIGHTS);
    let sent = rig.answer(&flush(&rig, FIRST, (PERSISTENT, RANGE), reth(&target, 0, 8)));
    assert_eq!(acks(&sent), [nak(NakCode::RemoteAccess, FIRST, 0)]);
    assert_failed(&mut rig);

    let mut rig = Rig::new(QpType::Rc);
    let target = durable(&mut rig);
    rig.memory.fail_storage(true);
    let sent = rig.answer(&flush(&rig, FIRST, (PERSISTENT, RANGE), reth(&target, 0, 8)));
    assert_eq!(acks(&sent), [nak(NakCode::RemoteOperational, FIRST, 0)]);
    assert_failed(&mut rig);

    for plt in [GLOBAL, PERSISTENT] {
        let mut rig = Rig::new(QpType::Rc);
        let target = durable(&mut rig);
        rig.memory.remove(target.id);
        let sent = rig.answer(&flush(&rig, FIRST, (plt, RANGE), reth(&target, 0, 8)));
        assert_eq!(acks(&sent), [nak(NakCode::RemoteAccess, FIRST, 0)]);
    }
}

/// rocev2 facts, transport 9 [1: rxe]: answered again, not executed.
#[test]
fn a_duplicate_is_answered_and_not_executed() {
    let mut rig = Rig::new(QpType::Rc);
    let target = durable(&mut rig);
    let request = flush(&rig, FIRST, (BOTH, RANGE), reth(&target, 0, 8));
    assert_done(&rig.answer(&request), FIRST, 1);
    rig.deliver(&rig.packet(Write, Only, FIRST + 1, b"new").with(reth(&target, 0, 3)));
    assert_done(&rig.answer(&request), FIRST, 2);
    assert_eq!(rig.memory.made_visible(), 1);
    assert_ne!(&rig.memory.after_power_loss(target.id)[..3], b"new");
    // Even when the storage fails by now, and one that is not what it was gets nothing.
    rig.memory.fail_storage(true);
    assert_done(&rig.answer(&request), FIRST, 2);
    assert!(rig.answer(&rig.packet(ReadRequest, Only, FIRST, &[]).with(reth(&target, 0, 8))).is_empty());
    let write = rig.packet(AtomicWrite, Only, FIRST, &[0; 8]).with(reth(&target, 0, 8));
    assert!(rig.answer(&write).is_empty());
    assert_eq!(rig.dropped(DropReason::UnknownDuplicate), 2);
}

#[test]
fn it_takes_a_slot_and_waits_behind_a_read() {
    let attr = QpAttr { max_dest_rd_atomic: 2, ..attributes() };
    let mut rig = Rig::with(QpType::Rc, QpState::Rts, attr);
    let target = durable(&mut rig);
    rig.deliver(&rig.packet(ReadRequest, Only, FIRST, &[]).with(reth(&target, 0, 300)));
    rig.deliver(&flush(&rig, FIRST + 2, (GLOBAL, RANGE), reth(&target, 0, 8)));
    rig.deliver(&flush(&rig, FIRST + 3, (GLOBAL, RANGE), reth(&target, 0, 8)));
    let sent = rig.sent();
    let psns: Vec<_> = sent.iter().map(|packet| (packet.bth.psn.value(), packet.kind())).collect();
    let read = |psn, at| (psn, (ReadResponse, at));
    assert_eq!(psns[..3], [read(FIRST, First), read(FIRST + 1, Last), read(FIRST + 2, Only)]);
    assert_eq!(acks(&sent[3..]), [nak(NakCode::InvalidRequest, FIRST + 3, 2)]);
    assert_eq!(rig.memory.made_visible(), 1);

    let none = QpAttr { max_dest_rd_atomic: 0, ..attributes() };
    let mut rig = Rig::with(QpType::Rc, QpState::Rts, none);
    let target = durable(&mut rig);
    let sent = rig.answer(&flush(&rig, FIRST, (GLOBAL, RANGE), reth(&target, 0, 8)));
    assert_eq!(acks(&sent), [nak(NakCode::InvalidRequest, FIRST, 0)]);
}

#[test]
fn a_full_sink_costs_the_answer_nothing() {
    let mut rig = Rig::new(QpType::Rc);
    let target = durable(&mut rig);
    rig.deliver(&flush(&rig, FIRST, (GLOBAL, RANGE), reth(&target, 0, 8)));
    assert!(rig.sent_into(0).is_empty());
    assert_done(&rig.sent(), FIRST, 1);
    assert!(rig.sent().is_empty());
}

#[test]
fn slots_that_are_resized_keep_what_is_done() {
    let mut rig = Rig::new(QpType::Rc);
    let target = durable(&mut rig);
    let request = flush(&rig, FIRST, (GLOBAL, RANGE), reth(&target, 0, 8));
    rig.answer(&request);
    rig.modify(QpState::Sqd);
    let attr = QpAttr { state: QpState::Sqd, max_dest_rd_atomic: 8, ..attributes() };
    let mask = QpAttrMask::STATE | QpAttrMask::MAX_DEST_RD_ATOMIC;
    rig.engine.modify_qp(rig.now, QPN, &attr, mask).unwrap();
    assert_done(&rig.answer(&request), FIRST, 1);
}
