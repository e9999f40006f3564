//! Atomics: executed once, answered with what was there before (rocev2 facts, transport section 8).

use super::help::*;

fn eth(region: &Region, offset: u64, swap_or_add: u64, compare: u64) -> AtomicEth {
    AtomicEth { va: region.addr + offset, rkey: region.rkey(), swap_or_add, compare }
}

fn value(rig: &Rig, region: &Region, offset: usize) -> u64 {
    u64::from_ne_bytes(rig.memory.content(region.id)[offset..offset + 8].try_into().unwrap())
}

fn original(sent: &[Packet]) -> u64 {
    assert_eq!(sent.len(), 1, "{sent:?}");
    assert_eq!(sent[0].kind(), (AtomicAcknowledge, Only));
    assert_eq!(sent[0].syndrome(), Some(Syndrome::ACK));
    sent[0].original().unwrap()
}

#[test]
fn fetch_and_add_adds_and_tells_what_was_there() {
    let mut rig = Rig::new(QpType::Rc);
    let region = rig.region(64, ALL);
    let before = value(&rig, &region, 8);
    let sent = rig.answer(&rig.packet(FetchAdd, Only, FIRST, &[]).with(eth(&region, 8, u64::MAX, 77)));
    assert_eq!(original(&sent), before);
    assert_eq!(sent[0].msn(), Some(Msn::new(1)));
    assert_eq!(sent[0].bth.psn.value(), FIRST);
    assert_eq!(value(&rig, &region, 8), before.wrapping_sub(1), "it wraps, and the compare value is ignored");
    assert_eq!(rig.count(Counter::RxAtomicRequests), 1);
}

#[test]
fn compare_and_swap_swaps_only_what_it_expects() {
    let mut rig = Rig::new(QpType::Rc);
    let region = rig.region(64, ALL);
    let before = value(&rig, &region, 0);
    let wrong = rig.packet(CompareSwap, Only, FIRST, &[]).with(eth(&region, 0, 5, before ^ 1));
    assert_eq!(original(&rig.answer(&wrong)), before);
    assert_eq!(value(&rig, &region, 0), before);
    let right = rig.packet(CompareSwap, Only, FIRST + 1, &[]).with(eth(&region, 0, 5, before));
    assert_eq!(original(&rig.answer(&right)), before);
    assert_eq!(value(&rig, &region, 0), 5);
}

#[test]
fn a_duplicate_gets_the_saved_result_and_changes_nothing() {
    let mut rig = Rig::new(QpType::Rc);
    let region = rig.region(64, ALL);
    let before = value(&rig, &region, 0);
    let packet = rig.packet(FetchAdd, Only, FIRST, &[]).with(eth(&region, 0, 1, 0));
    for _ in 0..3 {
        assert_eq!(original(&rig.answer(&packet)), before);
        assert_eq!(value(&rig, &region, 0), before.wrapping_add(1));
    }
    // Two that arrive together are answered together, once.
    rig.deliver(&packet);
    rig.deliver(&packet);
    assert_eq!(original(&rig.sent()), before);
}

/// rocev2 facts, transport 9: not found → silence, and it is not executed either.
#[test]
fn a_duplicate_older_than_the_slots_is_neither_answered_nor_executed() {
    let mut rig = Rig::new(QpType::Rc);
    let region = rig.region(64, ALL);
    let packet = |rig: &Rig, i: u32| rig.packet(FetchAdd, Only, FIRST + i, &[]).with(eth(&region, 0, 1, 0));
    let before = value(&rig, &region, 0);
    for i in 0..5 {
        let packet = packet(&rig, i);
        assert_eq!(original(&rig.answer(&packet)), before.wrapping_add(u64::from(i)));
    }
    // Four slots: the first one is gone, the second one is not.
    let (gone, kept) = (packet(&rig, 0), packet(&rig, 1));
    assert!(rig.answer(&gone).is_empty());
    assert_eq!(rig.dropped(DropReason::UnknownDuplicate), 1);
    assert_eq!(original(&rig.answer(&kept)), before.wrapping_add(1));
    assert_eq!(value(&rig, &region, 0), before.wrapping_add(5));
    assert_eq!(rig.state(), QpState::Rts);
}

#[test]
fn a_duplicate_of_another_kind_than_its_original_is_dropped() {
    let mut rig = Rig::new(QpType::Rc);
    let region = rig.region(64, ALL);
    rig.answer(&rig.packet(FetchAdd, Only, FIRST, &[]).with(eth(&region, 0, 1, 0)));
    assert!(rig.answer(&rig.packet(CompareSwap, Only, FIRST, &[]).with(eth(&region, 0, 1, 0))).is_empty());
    assert!(rig.answer(&rig.packet(ReadRequest, Only, FIRST, &[]).with(reth(&region, 0, 8))).is_empty());
    rig.answer(&rig.packet(ReadRequest, Only, FIRST + 1, &[]).with(reth(&region, 0, 8)));
    assert!(rig.answer(&rig.packet(FetchAdd, Only, FIRST + 1, &[]).with(eth(&region, 0, 1, 0))).is_empty());
    assert_eq!(rig.dropped(DropReason::UnknownDuplicate), 3);
}

#[test]
fn an_atomic_is_aligned_and_has_the_right_to_its_eight_bytes() {
    let cases = [
        (4, ALL, NakCode::InvalidRequest),
        (1, ALL, NakCode::InvalidRequest),
        (64, ALL, NakCode::RemoteAccess),
        (0, ALL - Access::REMOTE_ATOMIC, NakCode::RemoteAccess),
    ];
    for (offset, access, code) in cases {
        for op in [FetchAdd, CompareSwap] {
            let mut rig = Rig::new(QpType::Rc);
            let region = rig.region(64, access);
            let before = rig.memory.snapshot();
            let sent = rig.answer(&rig.packet(op, Only, FIRST, &[]).with(eth(&region, offset, 1, 0)));
            assert_eq!(acks(&sent), [nak(code, FIRST, 0)], "{offset} {access:?}");
            assert_eq!(rig.memory.snapshot(), before);
            assert_failed(&mut rig);
        }
    }
}

#[test]
fn atomics_and_reads_share_the_slots() {
    let attr = QpAttr { max_dest_rd_atomic: 2, ..attributes() };
    let mut rig = Rig::with(QpType::Rc, QpState::Rts, attr);
    let region = rig.region(64, ALL);
    rig.deliver(&rig.packet(FetchAdd, Only, FIRST, &[]).with(eth(&region, 0, 1, 0)));
    rig.deliver(&rig.packet(ReadRequest, Only, FIRST + 1, &[]).with(reth(&region, 0, 8)));
    rig.deliver(&rig.packet(FetchAdd, Only, FIRST + 2, &[]).with(eth(&region, 0, 1, 0)));
    let sent = rig.sent();
    let kinds: Vec<_> = sent.iter().map(|packet| packet.kind().0).collect();
    assert_eq!(kinds, [AtomicAcknowledge, ReadResponse, Acknowledge]);
    assert_eq!(acks(&sent[2..]), [nak(NakCode::InvalidRequest, FIRST + 2, 2)]);
}

#[test]
fn an_atomic_on_memory_that_was_deregistered_is_a_remote_access_error() {
    let mut rig = Rig::new(QpType::Rc);
    let region = rig.region(64, ALL);
    rig.memory.remove(region.id);
    let sent = rig.answer(&rig.packet(FetchAdd, Only, FIRST, &[]).with(eth(&region, 0, 1, 0)));
    assert_eq!(acks(&sent), [nak(NakCode::RemoteAccess, FIRST, 0)]);
}
