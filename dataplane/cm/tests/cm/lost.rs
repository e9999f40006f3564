//! Messages that were lost, or came twice (rocev2 facts, CM 11).

use crate::support::*;
use cm::*;
use wire::mad::{CmMad, CmMessage, MessageKind};

fn kind(mad: &CmMad) -> MessageKind {
    mad.message.kind()
}

#[test]
fn a_lost_rtu_is_made_good_by_data() {
    let mut pair = Pair::new();
    let (a, b) = pair.replied();
    pair.a.cm.send_rtu(0, a, b"").unwrap();
    pair.a.sent_one();
    pair.b.cm.establish(0, b).unwrap();
    assert_eq!(pair.b.event(), Event::Established { conn: b, private_data: None });
    pair.b.cm.establish(0, b).unwrap();
    assert_eq!(
        (pair.b.events(), pair.b.cm.next_timeout()),
        (vec![], None),
        "once, and nothing is sent again"
    );
}

#[test]
fn a_lost_rtu_is_made_good_by_the_reply_that_comes_again() {
    let mut pair = Pair::new();
    let (a, b) = pair.replied();
    pair.a.cm.send_rtu(0, a, b"ready").unwrap();
    let rtu = pair.a.sent_one();
    pair.b.pass(200 * MS);
    let reply = pair.b.sent_one();
    assert_eq!(kind(&reply), MessageKind::Rep);
    pair.a.take(&reply);
    assert_eq!(pair.a.sent_one(), rtu, "with the same private data");
    pair.b.take(&rtu);
    let Event::Established { conn, private_data: Some(data) } = pair.b.event() else { panic!() };
    assert_eq!((conn, &data.bytes()[..6]), (b, &b"ready\0"[..]));
    assert_eq!(pair.a.events(), []);
}

#[test]
fn an_rtu_that_comes_again_is_nothing_new() {
    let mut pair = Pair::new();
    let (a, _) = pair.replied();
    pair.a.cm.send_rtu(0, a, b"").unwrap();
    let rtu = pair.a.sent_one();
    pair.b.take(&rtu);
    pair.b.take(&rtu);
    assert_eq!(pair.b.events().len(), 1);
    assert_eq!(pair.b.cm.counters().dropped(DropReason::Duplicate), 1);
}

#[test]
fn a_lost_drep_is_sent_again_in_timewait_and_afterwards() {
    let mut pair = Pair::new();
    let (a, _) = pair.connected();
    pair.a.cm.send_dreq(0, a, b"").unwrap();
    let dreq = pair.a.sent_one();
    let mut answers = Vec::new();
    for after in [0, 100 * MS, 1_000 * MS] {
        pair.b.pass(after);
        pair.b.take(&dreq);
        answers.push(pair.b.sent_one());
    }
    assert_eq!(kind(&answers[0]), MessageKind::Drep);
    assert!(answers.iter().all(|drep| drep == &answers[0]), "the last one from no memory at all");
    assert!(matches!(pair.b.events()[..], [Event::Disconnected { .. }, Event::TimewaitExit { .. }]));
    pair.a.take(&answers[2]);
    assert!(matches!(pair.a.event(), Event::Disconnected { cause: DisconnectCause::Answered(_), .. }));
}

#[test]
fn both_may_disconnect_at_once() {
    let mut pair = Pair::new();
    let (a, b) = pair.connected();
    pair.a.cm.send_dreq(0, a, b"").unwrap();
    pair.b.cm.send_dreq(0, b, b"").unwrap();
    pair.settle();
    for end in [&mut pair.a, &mut pair.b] {
        assert!(matches!(end.event(), Event::Disconnected { cause: DisconnectCause::Peer(_), .. }));
        end.pass(1_000 * MS);
        assert!(matches!(end.event(), Event::TimewaitExit { .. }));
        assert_eq!(end.sent(), []);
    }
}

/// Whose giving up was lost is told again: neither end goes on alone.
#[test]
fn a_peer_that_goes_on_after_we_gave_up_is_told() {
    let mut pair = Pair::new();
    let (a, b) = pair.replied();
    pair.b.pass(1_000 * MS);
    assert!(matches!(pair.b.event(), Event::Unreachable { conn, .. } if conn == b));
    pair.b.sent();
    pair.a.cm.send_rtu(0, a, b"").unwrap();
    pair.settle();
    assert!(
        matches!(pair.a.event(), Event::Disconnected { conn, cause: DisconnectCause::Rejected(_) } if conn == a)
    );
}

#[test]
fn a_reply_to_a_request_that_is_unknown_is_rejected() {
    let mut pair = Pair::new();
    let (a, b) = pair.asked();
    pair.b.cm.send_rep(0, b, &rep()).unwrap();
    let reply = pair.b.sent_one();
    pair.a.cm.destroy(0, a);
    pair.a.pass(2_000 * MS);
    pair.a.sent();
    pair.a.take(&reply);
    let rej = pair.a.sent_one();
    pair.b.take(&rej);
    let Event::Rejected { conn, rej } = pair.b.event() else { panic!() };
    let (reason, message) = (wire::mad::RejectReason::INVALID_COMM_ID, wire::mad::Answered::Rep);
    assert_eq!((conn, rej.reason, rej.message), (b, reason, message));
    // With both IDs that the REP had: Linux looks for no less.
    let CmMessage::Rep(rep) = reply.message else { panic!() };
    assert_eq!((rej.local_id, rej.remote_id), (rep.remote_id, rep.local_id));
}

/// A REP that was given up on is matched by GUID and ID: the other end may not know ours.
#[test]
fn a_request_that_is_given_up_ends_at_the_other_end() {
    let mut pair = Pair::new();
    let (a, b) = pair.asked();
    pair.a.cm.destroy(0, a);
    let rej = pair.a.sent_one();
    let CmMessage::Rej(message) = &rej.message else { panic!() };
    assert_eq!((message.remote_id, message.ari()), (wire::mad::CommId(0), &A_GUID.to_be_bytes()[..]));
    pair.b.take(&rej);
    assert!(matches!(pair.b.event(), Event::Rejected { conn, .. } if conn == b));
    // Another node's GUID, or another ID, is not ours to end.
    assert_eq!(pair.b.cm.counters().dropped(DropReason::UnknownId), 0);
    pair.b.take(&CmMad::new(1, wire::mad::Rej { local_id: wire::mad::CommId(1), ..message.clone() }));
    assert_eq!(pair.b.cm.counters().dropped(DropReason::UnknownId), 1);
}
