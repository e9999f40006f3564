//! ATOMIC WRITE: eight bytes at once, in the order they came, once.

use super::help::*;

const BYTES: [u8; 8] = [1, 2, 3, 4, 5, 6, 7, 8];

fn atomic_write(rig: &Rig, psn: u32, reth: Reth, bytes: &[u8]) -> Packet {
    rig.packet(AtomicWrite, Only, psn, bytes).with(reth)
}

#[track_caller]
fn assert_done(sent: &[Packet], psn: u32, msn: u32) {
    assert_eq!(sent.len(), 1, "{sent:?}");
    assert_eq!((sent[0].kind(), sent[0].payload.len()), ((ReadResponse, Only), 0));
    assert_eq!((sent[0].bth.psn.value(), sent[0].syndrome()), (psn, Some(Syndrome::ACK)));
    assert_eq!(sent[0].msn(), Some(Msn::new(msn)));
}

#[test]
fn eight_bytes_arrive_as_they_were_sent_and_an_empty_read_response_tells() {
    let mut rig = Rig::new(QpType::Rc);
    let target = rig.region(64, ALL);
    let before = rig.memory.content(target.id);
    let packet = atomic_write(&rig, FIRST, reth(&target, 8, 8), &BYTES);
    // In pieces, as a buffer of segments brings it.
    rig.deliver_cut(&packet, &[3]);
    assert_done(&rig.sent(), FIRST, 1);
    let after = rig.memory.content(target.id);
    assert_eq!(after[8..16], BYTES);
    assert_eq!((&after[..8], &after[16..]), (&before[..8], &before[16..]));
    assert_eq!(rig.count(Counter::RxAtomicWriteRequests), 1);
    assert_eq!(rig.count(Counter::RxWriteRequests), 0);
}

#[test]
fn what_is_wrong_with_it_is_refused_and_writes_nothing() {
    let cases = [
        (ALL, 4, 8, 8, NakCode::InvalidRequest),
        (ALL, 0, 8, 7, NakCode::InvalidRequest),
        (ALL, 0, 8, 12, NakCode::InvalidRequest),
        (ALL, 0, 8, 0, NakCode::InvalidRequest),
        (ALL, 0, 4, 8, NakCode::InvalidRequest),
        (ALL, 0, 0, 8, NakCode::InvalidRequest),
        (ALL, 64, 8, 8, NakCode::RemoteAccess),
        (ALL - Access::REMOTE_WRITE, 0, 8, 8, NakCode::RemoteAccess),
    ];
    for (access, offset, len, payload, code) in cases {
        let mut rig = Rig::new(QpType::Rc);
        let target = rig.region(64, access);
        let before = rig.memory.snapshot();
        let sent = rig.answer(&atomic_write(&rig, FIRST, reth(&target, offset, len), &bytes(payload)));
        assert_eq!(acks(&sent), [nak(code, FIRST, 0)], "{access:?} {offset} {len} {payload}");
        assert_eq!(rig.memory.snapshot(), before);
        assert_failed(&mut rig);
    }
    let mut rig = Rig::new(QpType::Rc);
    let target = rig.region(64, ALL);
    rig.memory.remove(target.id);
    let sent = rig.answer(&atomic_write(&rig, FIRST, reth(&target, 0, 8), &BYTES));
    assert_eq!(acks(&sent), [nak(NakCode::RemoteAccess, FIRST, 0)]);
}

/// rocev2 facts, transport 9 [1: rxe].
#[test]
fn a_duplicate_is_answered_and_writes_nothing() {
    let mut rig = Rig::new(QpType::Rc);
    let target = rig.region(64, ALL);
    let old = atomic_write(&rig, FIRST, reth(&target, 0, 8), &BYTES);
    rig.answer(&old);
    rig.answer(&atomic_write(&rig, FIRST + 1, reth(&target, 0, 8), &[9; 8]));
    assert_done(&rig.answer(&old), FIRST, 2);
    assert_eq!(rig.memory.content(target.id)[..8], [9; 8]);
    assert_eq!(rig.count(Counter::RxAtomicWriteRequests), 2);
    // Past the slots there is silence, and nothing is written either.
    for i in 2..6 {
        rig.answer(&atomic_write(&rig, FIRST + i, reth(&target, 8, 8), &[i as u8; 8]));
    }
    assert!(rig.answer(&old).is_empty());
    assert_eq!(rig.dropped(DropReason::UnknownDuplicate), 1);
    assert_eq!(rig.memory.content(target.id)[..8], [9; 8]);
}

#[test]
fn it_is_a_beginning_and_an_end() {
    let mut rig = Rig::new(QpType::Rc);
    let target = rig.region(1024, ALL);
    rig.deliver(&rig.packet(Write, First, FIRST, &bytes(MTU)).with(reth(&target, 0, 300)));
    let sent = rig.answer(&atomic_write(&rig, FIRST + 1, reth(&target, 512, 8), &BYTES));
    assert_eq!(acks(&sent), [nak(NakCode::InvalidRequest, FIRST + 1, 0)]);
    let mut rig = Rig::new(QpType::Rc);
    let target = rig.region(1024, ALL);
    rig.answer(&atomic_write(&rig, FIRST, reth(&target, 512, 8), &BYTES));
    let sent = rig.answer(&rig.packet(Write, Last, FIRST + 1, &bytes(9)));
    assert_eq!(acks(&sent), [nak(NakCode::InvalidRequest, FIRST + 1, 1)]);
}
