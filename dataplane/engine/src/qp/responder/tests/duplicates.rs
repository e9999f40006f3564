//! Duplicates (rocev2 facts, transport section 9). Those of atomics are with the atomics.

use super::help::*;

fn read(rig: &Rig, psn: u32, reth: Reth) -> Packet {
    rig.packet(ReadRequest, Only, psn, &[]).with(reth)
}

/// PSN and position of READ responses.
fn places(sent: &[Packet]) -> Vec<(u32, Position)> {
    sent.iter()
        .map(|packet| {
            assert_eq!(packet.info().operation, ReadResponse, "{packet:?}");
            (packet.bth.psn.value(), packet.kind().1)
        })
        .collect()
}

#[test]
fn a_duplicate_send_is_acknowledged_with_all_that_is_done_and_not_executed() {
    let mut rig = Rig::new(QpType::Rc);
    let buffer = rig.region(64, ALL);
    for wr_id in 0..3 {
        rig.post_recv(wr_id, &[buffer.sge(0, 8)]);
    }
    let first = rig.packet(Send, Only, FIRST, b"first");
    rig.deliver(&first);
    rig.deliver(&rig.packet(Send, Only, FIRST + 1, b"other"));
    assert_eq!(rig.recv_cqes().len(), 2);
    // It did not ask for an ACK, and gets one.
    assert_eq!(acks(&rig.answer(&first)), [ack(FIRST + 1, 2)]);
    assert_eq!(rig.recv_cqes(), []);
    assert_eq!(rig.shared.rq().len(), 1);
    assert_eq!(rig.memory.content(buffer.id)[..5], *b"other");
    assert_eq!(rig.count(Counter::DuplicateRequest), 1);
}

#[test]
fn a_duplicate_write_does_not_write() {
    let mut rig = Rig::new(QpType::Rc);
    let target = rig.region(64, ALL);
    let write = |rig: &Rig, psn, data: &[u8]| rig.packet(Write, Only, psn, data).with(reth(&target, 0, 4));
    let (old, new) = (write(&rig, FIRST, b"old."), write(&rig, FIRST + 1, b"new."));
    rig.deliver(&old);
    rig.deliver(&new);
    assert_eq!(acks(&rig.answer(&old)), [ack(FIRST + 1, 2)]);
    assert_eq!(rig.memory.content(target.id)[..4], *b"new.");
}

/// Inside a message ePSN−1 is a packet of it.
#[test]
fn a_duplicate_within_a_message_is_acknowledged_up_to_where_the_message_is() {
    let mut rig = Rig::new(QpType::Rc);
    let target = rig.region(1024, ALL);
    let first = rig.packet(Write, First, FIRST, &bytes(MTU)).with(reth(&target, 0, 3 * MTU as u32));
    rig.deliver(&first);
    rig.deliver(&rig.packet(Write, Middle, FIRST + 1, &bytes(MTU)));
    assert_eq!(acks(&rig.answer(&first)), [ack(FIRST + 1, 0)]);
    // And the message goes on as if nothing had happened.
    assert_eq!(
        acks(&rig.answer(&rig.packet(Write, Last, FIRST + 2, &bytes(MTU)).ack_req())),
        [ack(FIRST + 2, 1)]
    );
}

#[test]
fn a_malformed_duplicate_is_dropped() {
    let mut rig = Rig::new(QpType::Rc);
    rig.post_recv(1, &[]);
    rig.deliver(&rig.packet(Send, Only, FIRST, &[]));
    assert!(rig.answer(&rig.packet(Send, First, FIRST, &bytes(MTU - 4))).is_empty());
    assert!(
        rig.answer(&rig.packet(Flush, Only, FIRST, &[]).with(wire::Feth { plt: 1, sel: 0 }).with(NOWHERE))
            .is_empty()
    );
    assert_eq!(rig.dropped(DropReason::UnknownDuplicate), 2);
    assert_eq!(rig.state(), QpState::Rts);
}

const NOWHERE: Reth = Reth { va: 0, rkey: RKey::new(0), dma_len: 0 };

#[test]
fn a_duplicate_read_reads_memory_again() {
    let mut rig = Rig::new(QpType::Rc);
    let source = rig.region(1024, ALL);
    let request = read(&rig, FIRST, reth(&source, 0, 600));
    assert_eq!(places(&rig.answer(&request)), [(FIRST, First), (FIRST + 1, Middle), (FIRST + 2, Last)]);
    // The MSN in between, and the memory, may have changed.
    rig.deliver(&rig.packet(Write, Only, FIRST + 3, &[0xEE; 4]).with(reth(&source, 0, 4)));
    let sent = rig.answer(&request);
    assert_eq!(places(&sent), [(FIRST, First), (FIRST + 1, Middle), (FIRST + 2, Last)]);
    assert_eq!(sent[0].payload[..4], [0xEE; 4]);
    assert_eq!(sent[0].msn(), Some(Msn::new(2)));
}

#[test]
fn a_duplicate_read_may_begin_in_the_middle() {
    let mut rig = Rig::new(QpType::Rc);
    let source = rig.region(1024, ALL);
    rig.answer(&read(&rig, FIRST, reth(&source, 10, 1000)));
    let sent = rig.answer(&read(&rig, FIRST + 2, reth(&source, 10 + 512, 1000 - 512)));
    assert_eq!(places(&sent), [(FIRST + 2, First), (FIRST + 3, Last)]);
    let data: Vec<u8> = sent.iter().flat_map(|packet| packet.payload.clone()).collect();
    assert_eq!(data, rig.memory.content(source.id)[522..1010]);
    let sent = rig.answer(&read(&rig, FIRST + 3, reth(&source, 10 + 768, 1000 - 768)));
    assert_eq!(places(&sent), [(FIRST + 3, Only)]);
}

#[test]
fn a_duplicate_read_lies_inside_its_original() {
    let mut rig = Rig::new(QpType::Rc);
    let source = rig.region(2048, ALL);
    let other = rig.region(2048, ALL);
    rig.answer(&read(&rig, FIRST, reth(&source, 0, 1000)));
    let wrong = [
        (FIRST, reth(&source, 0, 1001)),
        (FIRST, reth(&source, 1, 999)),
        (FIRST, reth(&source, 0, 0)),
        (FIRST, Reth { rkey: other.rkey(), ..reth(&source, 0, 1000) }),
        (FIRST + 1, reth(&source, 0, 744)),
        (FIRST + 1, reth(&source, 256, 745)),
        (FIRST - 1, reth(&source, 0, 1000)),
    ];
    for (psn, reth) in wrong {
        assert!(rig.answer(&read(&rig, psn, reth)).is_empty(), "{psn:#x} {reth:?}");
    }
    assert_eq!(rig.dropped(DropReason::UnknownDuplicate), wrong.len() as u64);
    // A part of it is fine.
    assert_eq!(places(&rig.answer(&read(&rig, FIRST + 1, reth(&source, 256, 256)))), [(FIRST + 1, Only)]);
}

#[test]
fn a_duplicate_read_with_a_dead_key_is_dropped() {
    let mut rig = Rig::new(QpType::Rc);
    let source = rig.fast_region(1024, ALL);
    let request = read(&rig, FIRST, reth(&source, 0, 1000));
    rig.answer(&request);
    // Once the key goes away while the duplicate is being answered …
    rig.deliver(&request);
    assert_eq!(rig.sent_into(1).len(), 1);
    source.mr.invalidate(PD, source.rkey()).unwrap();
    assert!(rig.sent().is_empty());
    // … and once before it comes.
    assert!(rig.answer(&request).is_empty());
    assert_eq!(rig.dropped(DropReason::UnknownDuplicate), 2);
    assert_eq!(rig.state(), QpState::Rts);
}

/// It starts again from the PSN asked for, and nothing is sent twice.
#[test]
fn a_duplicate_of_a_read_that_is_being_answered_moves_its_place() {
    let mut rig = Rig::new(QpType::Rc);
    let source = rig.region(1024, ALL);
    let request = read(&rig, FIRST, reth(&source, 0, 1024));
    rig.deliver(&request);
    rig.deliver(&request);
    assert_eq!(places(&rig.sent_into(3)), [(FIRST, First), (FIRST + 1, Middle), (FIRST + 2, Middle)]);
    rig.deliver(&read(&rig, FIRST + 1, reth(&source, 256, 768)));
    assert_eq!(places(&rig.sent()), [(FIRST + 1, First), (FIRST + 2, Middle), (FIRST + 3, Last)]);
}

#[test]
fn an_older_read_is_answered_again_before_a_younger_one_goes_on() {
    let mut rig = Rig::new(QpType::Rc);
    let source = rig.region(1024, ALL);
    let older = read(&rig, FIRST, reth(&source, 0, 512));
    rig.deliver(&older);
    rig.deliver(&read(&rig, FIRST + 2, reth(&source, 0, 512)));
    assert_eq!(rig.sent_into(3).len(), 3);
    rig.deliver(&older);
    assert_eq!(places(&rig.sent()), [(FIRST, First), (FIRST + 1, Last), (FIRST + 3, Last)]);
}

/// A slot whose answer is on its way a second time may be replaced: the peer has had the answer.
#[test]
fn a_slot_that_answers_a_duplicate_gives_way_to_a_new_read() {
    let attr = QpAttr { max_dest_rd_atomic: 1, ..attributes() };
    let mut rig = Rig::with(QpType::Rc, QpState::Rts, attr);
    let source = rig.region(1024, ALL);
    let old = read(&rig, FIRST, reth(&source, 0, 512));
    rig.answer(&old);
    rig.deliver(&old);
    rig.deliver(&read(&rig, FIRST + 2, reth(&source, 0, 4)));
    assert_eq!(places(&rig.sent()), [(FIRST + 2, Only)]);
    assert_eq!(rig.state(), QpState::Rts);
}

/// Also when the slot that gives way is the one to be answered next: the rest stays in PSN order.
#[test]
fn a_slot_that_gives_way_does_not_pull_the_new_one_forward() {
    let attr = QpAttr { max_dest_rd_atomic: 2, ..attributes() };
    let mut rig = Rig::with(QpType::Rc, QpState::Rts, attr);
    let source = rig.region(1024, ALL);
    let old = [0, 1].map(|i| read(&rig, FIRST + i, reth(&source, 0, 4)));
    old.iter().for_each(|request| rig.deliver(request));
    assert_eq!(rig.sent().len(), 2);
    old.iter().for_each(|request| rig.deliver(request));
    rig.deliver(&read(&rig, FIRST + 2, reth(&source, 0, 4)));
    assert_eq!(places(&rig.sent()), [(FIRST + 1, Only), (FIRST + 2, Only)]);
}

#[test]
fn responses_to_a_duplicate_read_say_that_they_were_sent_before() {
    let mut rig = Rig::new(QpType::Rc);
    let source = rig.region(1024, ALL);
    let again = |sent: &[Packet]| sent.iter().map(|packet| packet.again).collect::<Vec<_>>();
    let request = read(&rig, FIRST, reth(&source, 0, 2 * MTU as u32));
    let sent = rig.answer(&request);
    assert_eq!(again(&sent), [false; 2]);
    let sent = rig.answer(&request);
    assert_eq!(again(&sent), [true; 2]);
    let next = read(&rig, FIRST + 2, reth(&source, 0, 2 * MTU as u32));
    let sent = rig.answer(&next);
    assert_eq!(again(&sent), [false; 2]);
}
