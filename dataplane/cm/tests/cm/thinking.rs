//! Ends that take their time, and say so by MRA (rocev2 facts, CM 7, 10 and 14.5).

use crate::message;
use crate::support::*;
use cm::*;
use wire::mad::{Answered, CmMessage, MessageKind, RejectReason};

#[test]
fn an_application_that_thinks_asks_for_time_by_itself() {
    let mut pair = Pair::new();
    let (a, b) = pair.asked();
    // Half of the 268 ms that the REQ gives.
    pair.b.pass(134 * MS);
    assert_eq!(pair.b.sent(), []);
    pair.b.pass(MS);
    let mra = pair.b.sent_one();
    pair.a.pass(135 * MS);
    pair.a.take(&mra);
    let Event::MraReceived { conn, message: Answered::Req, wait_ns } = pair.a.event() else { panic!() };
    // 34 s for the thirty that the application has, and our own interval.
    assert_eq!((conn, wait_ns), (a, timeout_ns(23) + 200 * MS));
    pair.a.pass(20_000 * MS);
    assert_eq!((pair.a.sent(), pair.a.events()), (vec![], vec![]), "it waits in silence");
    pair.b.cm.send_rep(pair.b.now, b, &rep()).unwrap();
    pair.settle();
    assert!(matches!(pair.a.event(), Event::RepReceived { .. }));
}

/// Each REQ that comes again is told the same: an MRA can be lost as well.
#[test]
fn a_request_that_comes_again_is_told_that_we_think() {
    let mut pair = Pair::new();
    pair.a.ask();
    let req = pair.a.sent_one();
    pair.b.take(&req);
    pair.b.event();
    for _ in 0..3 {
        pair.b.take(&req);
        let mra = message!(pair.b.sent_one(), Mra);
        assert_eq!((mra.message, mra.service_timeout), (Answered::Req, 23));
    }
    assert_eq!((pair.b.events(), pair.b.cm.counters().dropped(DropReason::Duplicate)), (vec![], 3));
}

#[test]
fn an_application_that_thinks_too_long_refuses() {
    let mut pair = Pair::new();
    let (a, b) = pair.asked();
    pair.b.pass(30_000 * MS);
    assert_eq!(pair.b.event(), Event::Expired { conn: b });
    assert_eq!(pair.b.cm.usage().half_open, 0);
    let rej = pair.b.sent().pop().unwrap();
    pair.a.take(&rej);
    let Event::Rejected { conn, rej } = pair.a.event() else { panic!() };
    assert_eq!((conn, rej.reason), (a, RejectReason::CONSUMER_DEFINED));
}

#[test]
fn an_application_can_ask_for_more_than_that() {
    let mut pair = Pair::new();
    let (_, b) = pair.asked();
    pair.b.cm.send_mra(0, b, 60_000 * MS).unwrap();
    let mra = message!(pair.b.sent_one(), Mra);
    assert!(timeout_ns(mra.service_timeout) >= 60_000 * MS);
    pair.b.pass(59_000 * MS);
    assert_eq!(pair.b.events(), []);
    pair.b.pass(1_000 * MS);
    assert_eq!(pair.b.event(), Event::Expired { conn: b });
}

/// The active side thinks about the reply.
#[test]
fn a_reply_is_thought_about_too() {
    let mut pair = Pair::new();
    let (a, b) = pair.replied();
    pair.a.pass(100 * MS);
    let mra = pair.a.sent_one();
    assert_eq!(mra.message.kind(), MessageKind::Mra);
    pair.b.pass(100 * MS);
    pair.b.take(&mra);
    assert!(matches!(pair.b.event(), Event::MraReceived { conn, message: Answered::Rep, .. } if conn == b));
    pair.b.pass(30_000 * MS);
    assert_eq!((pair.b.sent(), pair.b.events()), (vec![], vec![]));
    pair.a.pass(29_900 * MS);
    assert_eq!(pair.a.event(), Event::Expired { conn: a });
    pair.settle();
    assert!(matches!(pair.b.event(), Event::Rejected { conn, .. } if conn == b));
}

/// What an MRA has granted passes: then the REQ is sent again, as often as is left.
#[test]
fn a_peer_that_asked_for_time_and_died_is_reported() {
    let mut pair = Pair::new();
    let (a, b) = pair.asked();
    pair.b.cm.send_mra(0, b, 300 * MS).unwrap();
    pair.settle();
    let Event::MraReceived { wait_ns, .. } = pair.a.event() else { panic!() };
    assert_eq!(wait_ns, timeout_ns(17) + 200 * MS);
    pair.a.pass(wait_ns);
    assert_eq!(pair.a.sent_one().message.kind(), MessageKind::Req);
    assert_eq!(pair.a.cm.state(a), Ok(State::ReqSent));
    pair.a.pass(800 * MS);
    assert_eq!(pair.a.event(), Event::Unreachable { conn: a, message: Answered::Req });
}

/// However long a peer says it will think: there is a longest time, and a second MRA does not make it longer.
#[test]
fn a_peer_cannot_hold_us_for_ever() {
    let mut pair = Pair::new();
    let (a, b) = pair.asked();
    pair.b.cm.send_mra(0, b, u64::MAX).unwrap();
    let mra = pair.b.sent_one();
    pair.a.take(&mra);
    let Event::MraReceived { wait_ns, .. } = pair.a.event() else { panic!() };
    assert_eq!(wait_ns, 70_000 * MS);
    pair.a.pass(60_000 * MS);
    pair.a.take(&mra);
    assert_eq!(pair.a.cm.counters().dropped(DropReason::Duplicate), 1);
    pair.a.pass(10_000 * MS);
    assert_eq!(pair.a.cm.state(a), Ok(State::ReqSent));
}
