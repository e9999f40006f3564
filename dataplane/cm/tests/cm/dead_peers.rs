//! A peer that vanishes, at every state: our end reports it within the configured time, and frees everything.

use crate::support::*;
use cm::*;
use wire::mad::{Answered, RejectReason};

/// Longest time that a report may take: five sendings 200 ms apart.
const PATIENCE_NS: u64 = 1_000 * MS;
/// Timewait of the connections here: ACK timeout code 17.
const TIMEWAIT_NS: u64 = 537 * MS;

/// Nothing more comes: how long until `end` reports, and what. Then everything is free within timewait.
#[track_caller]
fn reported(end: &mut End, within_ns: u64) -> Event {
    end.sent();
    let begin = end.now;
    let event = loop {
        let at = end.cm.next_timeout().expect("something is going to be reported");
        assert!(at - begin <= within_ns, "nothing was reported for {} ms", (at - begin) / MS);
        end.now = at;
        end.cm.on_timeout(at);
        if let Some(event) = end.cm.poll_event() {
            break event;
        }
    };
    is_freed(end, event.conn().unwrap());
    event
}

/// Everything is free within timewait, and there was no other report.
#[track_caller]
fn is_freed(end: &mut End, conn: ConnId) {
    end.pass(TIMEWAIT_NS);
    assert!(matches!(end.event(), Event::TimewaitExit { conn: gone, .. } if gone == conn));
    assert_eq!(end.cm.usage(), Usage { listeners: end.cm.usage().listeners, ..Usage::default() });
    assert_eq!((end.cm.next_timeout(), end.cm.state(conn)), (None, Err(CmError::UnknownId)));
}

#[test]
fn req_sent() {
    let mut end = End::active();
    let conn = end.ask();
    assert_eq!(reported(&mut end, PATIENCE_NS), Event::Unreachable { conn, message: Answered::Req });
}

#[test]
fn mra_req_rcvd() {
    let mut pair = Pair::new();
    let (conn, b) = pair.asked();
    pair.b.cm.send_mra(0, b, 2_000 * MS).unwrap();
    pair.settle();
    let Event::MraReceived { wait_ns, .. } = pair.a.event() else { panic!() };
    let event = reported(&mut pair.a, wait_ns + PATIENCE_NS);
    assert_eq!(event, Event::Unreachable { conn, message: Answered::Req });
}

/// The application goes on, and the connection fails by its data: nothing is waited for.
#[test]
fn rep_rcvd() {
    let mut pair = Pair::new();
    let (conn, _) = pair.replied();
    pair.a.cm.send_rtu(0, conn, b"").unwrap();
    pair.a.sent();
    assert_eq!(pair.a.cm.next_timeout(), None);
    pair.a.cm.send_dreq(0, conn, b"").unwrap();
    let cause = DisconnectCause::Unanswered;
    assert_eq!(reported(&mut pair.a, PATIENCE_NS), Event::Disconnected { conn, cause });
}

/// The application refuses: it has no more to be told.
#[test]
fn rep_rcvd_and_refused() {
    for refuse in [true, false] {
        let mut pair = Pair::new();
        let (conn, _) = pair.replied();
        match refuse {
            true => pair.a.cm.send_rej(0, conn, RejectReason::CONSUMER_DEFINED, b"", b"").unwrap(),
            false => pair.a.cm.destroy(0, conn),
        }
        is_freed(&mut pair.a, conn);
    }
}

/// An application that never answers is told that its time is up, whether the peer lives or not.
#[test]
fn mra_rep_sent_and_req_rcvd_and_mra_req_sent() {
    let mut pair = Pair::new();
    let (conn, _) = pair.replied();
    assert_eq!(reported(&mut pair.a, 30_000 * MS), Event::Expired { conn });
    let mut pair = Pair::new();
    let (_, conn) = pair.asked();
    assert_eq!(reported(&mut pair.b, 30_000 * MS), Event::Expired { conn });
}

/// An application that answers a peer that is gone is told so.
#[test]
fn req_rcvd_and_accepted() {
    let mut pair = Pair::new();
    let (_, conn) = pair.asked();
    pair.b.pass(2_000 * MS);
    pair.b.cm.send_rep(pair.b.now, conn, &rep()).unwrap();
    assert_eq!(reported(&mut pair.b, PATIENCE_NS), Event::Unreachable { conn, message: Answered::Rep });
}

#[test]
fn rep_sent() {
    let mut pair = Pair::new();
    let (_, conn) = pair.replied();
    assert_eq!(reported(&mut pair.b, PATIENCE_NS), Event::Unreachable { conn, message: Answered::Rep });
}

#[test]
fn mra_rep_rcvd() {
    let mut pair = Pair::new();
    let (a, conn) = pair.replied();
    pair.a.cm.send_mra(0, a, 2_000 * MS).unwrap();
    pair.settle();
    let Event::MraReceived { wait_ns, .. } = pair.b.event() else { panic!() };
    let event = reported(&mut pair.b, wait_ns + PATIENCE_NS);
    assert_eq!(event, Event::Unreachable { conn, message: Answered::Rep });
}

/// Connections are idle as long as they like. Their data fails, and the application disconnects, or destroys.
#[test]
fn established() {
    for active in [true, false] {
        let mut pair = Pair::new();
        let (a, b) = pair.connected();
        let (end, conn) = if active { (&mut pair.a, a) } else { (&mut pair.b, b) };
        assert_eq!(end.cm.next_timeout(), None);
        end.cm.send_dreq(0, conn, b"").unwrap();
        assert_eq!(
            reported(end, PATIENCE_NS),
            Event::Disconnected { conn, cause: DisconnectCause::Unanswered }
        );
        let mut pair = Pair::new();
        let (a, b) = pair.connected();
        let (end, conn) = if active { (&mut pair.a, a) } else { (&mut pair.b, b) };
        end.cm.destroy(0, conn);
        end.pass(PATIENCE_NS);
        is_freed(end, conn);
    }
}

#[test]
fn dreq_sent() {
    let mut pair = Pair::new();
    let (_, conn) = pair.connected();
    pair.b.cm.send_dreq(0, conn, b"").unwrap();
    let cause = DisconnectCause::Unanswered;
    assert_eq!(reported(&mut pair.b, PATIENCE_NS), Event::Disconnected { conn, cause });
}

#[test]
fn timewait() {
    let mut pair = Pair::new();
    let (a, conn) = pair.connected();
    pair.a.cm.send_dreq(0, a, b"").unwrap();
    pair.settle();
    assert!(matches!(pair.b.event(), Event::Disconnected { .. }));
    is_freed(&mut pair.b, conn);
}

/// Destroyed at every state, with a peer that is gone: one event more, the last.
#[test]
fn destroyed_at_every_state() {
    for step in [Pair::asked, Pair::replied, Pair::connected] as [fn(&mut Pair) -> _; 3] {
        for active in [true, false] {
            let mut pair = Pair::new();
            let (a, b) = step(&mut pair);
            let (end, conn) = if active { (&mut pair.a, a) } else { (&mut pair.b, b) };
            end.cm.destroy(0, conn);
            end.cm.destroy(0, conn);
            end.pass(2_000 * MS);
            is_freed(end, conn);
        }
    }
}

/// What was told but not looked at is taken back by `destroy`.
#[test]
fn a_destroyed_connection_has_no_more_to_say() {
    let mut pair = Pair::new();
    let conn = pair.a.ask();
    pair.a.pass(1_000 * MS);
    pair.a.cm.destroy(pair.a.now, conn);
    is_freed(&mut pair.a, conn);
}
