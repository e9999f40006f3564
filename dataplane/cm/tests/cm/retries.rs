//! Messages that nobody answers: how often they are sent, how far apart, and when that is enough (rocev2 facts, CM 10).

use crate::message;
use crate::support::*;
use cm::*;
use wire::mad::{Answered, CmMessage, MessageKind, RejectReason};

/// When messages go out, until nothing is left.
fn sendings(end: &mut End) -> Vec<(u64, MessageKind)> {
    let mut sendings: Vec<_> = end.sent().iter().map(|mad| (end.now, mad.message.kind())).collect();
    while let Some(at) = end.cm.next_timeout() {
        end.now = at;
        end.cm.on_timeout(at);
        let now = end.now;
        sendings.extend(end.sent().iter().map(|mad| (now / MS, mad.message.kind())));
    }
    sendings
}

#[test]
fn a_silent_peer_is_reported_after_five_requests_and_a_second() {
    let mut end = End::active();
    let conn = end.ask();
    end.pass(1_000 * MS - 1);
    assert_eq!(end.events(), []);
    end.pass(1);
    assert_eq!(end.event(), Event::Unreachable { conn, message: Answered::Req });
    let sent = end.sent();
    assert!(sent[1..5].iter().all(|mad| mad == &sent[0]), "the same request each time");
    let rej = message!(sent[5].clone(), Rej);
    assert_eq!((rej.reason, rej.ari()), (RejectReason::TIMEOUT, &A_GUID.to_be_bytes()[..]));
    assert_eq!(end.cm.counters().retries, 4);
}

#[test]
fn how_often_and_how_far_apart_can_be_asked_for() {
    let mut end = End::active();
    let params = ReqParams { timing: Some(Timing { interval_ns: 30 * MS, tries: 2 }), ..end.req() };
    end.cm.send_req(0, &params).unwrap();
    let req = MessageKind::Req;
    assert_eq!(sendings(&mut end), [(0, req), (30, req), (60, MessageKind::Rej)]);
}

/// The REQ says how soon its sender answers, and how often anything may be sent again: the REP keeps to that, where it is
/// less than our own.
#[test]
fn a_reply_keeps_to_what_the_request_announces() {
    for (announced, retries, expected) in [
        // Linux: 4.3 s and fifteen times. We do not wait so long.
        (20, 15, vec![0, 200, 400, 600, 800, 1_000]),
        // 67 ms, twice.
        (14, 2, vec![0, 67, 134, 201]),
        // 4 µs: not as fast as that.
        (0, 15, vec![0, 10, 20, 30, 40, 50]),
        // Never again.
        (20, 0, vec![0, 200]),
    ] {
        let mut pair = Pair::new();
        pair.a.ask();
        let mut mad = pair.a.sent_one();
        if let CmMessage::Req(req) = &mut mad.message {
            (req.local_cm_timeout, req.max_cm_retries) = (announced, retries);
        }
        pair.b.take(&mad);
        let Event::ReqReceived { conn, .. } = pair.b.event() else { panic!() };
        pair.b.cm.send_rep(0, conn, &rep()).unwrap();
        let (times, kinds): (Vec<_>, Vec<_>) = sendings(&mut pair.b).into_iter().unzip();
        assert_eq!(times, expected);
        let (last, replies) = kinds.split_last().unwrap();
        assert_eq!(*last, MessageKind::Rej);
        assert!(replies.iter().all(|&kind| kind == MessageKind::Rep));
        let [unreachable, exit] = &pair.b.events()[..] else { panic!() };
        assert_eq!(*unreachable, Event::Unreachable { conn, message: Answered::Rep });
        assert!(matches!(exit, Event::TimewaitExit { .. }));
    }
}

#[test]
fn a_disconnect_that_nobody_answers_ends_all_the_same() {
    let mut pair = Pair::new();
    let (conn, _) = pair.connected();
    pair.a.cm.send_dreq(0, conn, b"").unwrap();
    pair.a.pass(1_000 * MS - 1);
    assert_eq!((pair.a.sent().len(), pair.a.events()), (5, vec![]));
    pair.a.pass(1);
    assert_eq!(pair.a.event(), Event::Disconnected { conn, cause: DisconnectCause::Unanswered });
}

/// The timing of a connection is that of its request, or of the configuration until it is told another.
#[test]
fn a_connection_keeps_to_its_own_timing() {
    let (twice, thrice) =
        (Timing { interval_ns: 30 * MS, tries: 2 }, Timing { interval_ns: 20 * MS, tries: 3 });
    let (reply, dreq, rej) = (MessageKind::Rep, MessageKind::Dreq, MessageKind::Rej);
    let ask = |pair: &mut Pair| {
        let params = ReqParams { timing: Some(twice), ..pair.a.req() };
        let a = pair.a.cm.send_req(0, &params).unwrap();
        pair.settle();
        let Event::ReqReceived { conn: b, .. } = pair.b.event() else { panic!() };
        pair.b.cm.set_timing(b, thrice).unwrap();
        pair.b.cm.send_rep(0, b, &rep()).unwrap();
        (a, b)
    };
    let mut pair = Pair::new();
    ask(&mut pair);
    assert_eq!(sendings(&mut pair.b), [(0, reply), (20, reply), (40, reply), (60, rej)]);

    for (active, late, expected) in
        [(true, false, vec![0, 30]), (true, true, vec![0, 20, 40]), (false, false, vec![0, 20, 40])]
    {
        for destroyed in [false, true] {
            let mut pair = Pair::new();
            let (a, b) = ask(&mut pair);
            pair.settle();
            pair.a.cm.send_rtu(0, a, b"").unwrap();
            pair.settle();
            let (end, conn) = if active { (&mut pair.a, a) } else { (&mut pair.b, b) };
            if late {
                end.cm.set_timing(conn, thrice).unwrap();
            }
            match destroyed {
                false => end.cm.send_dreq(0, conn, b"").unwrap(),
                true => end.cm.destroy(0, conn),
            }
            let expected: Vec<_> = expected.iter().map(|&at| (at, dreq)).collect();
            assert_eq!(sendings(end), expected);
        }
    }
    let gone = pair.b.events().pop().and_then(|event| event.conn()).unwrap();
    assert_eq!(pair.b.cm.set_timing(gone, twice), Err(CmError::UnknownId));
}

/// What a peer has announced in its REQ is also what ours announces: a code for the interval, and fifteen retries, as Linux.
#[test]
fn our_request_announces_our_interval() {
    let mut end = End::active();
    end.ask();
    let req = message!(end.sent_one(), Req);
    assert_eq!((req.local_cm_timeout, req.remote_cm_timeout, req.max_cm_retries), (16, 16, 15));
    assert!(timeout_ns(16) >= 200 * MS && timeout_ns(15) < 200 * MS);
}

/// A REQ whose answer is on its way again is answered at once, and the reply's own count goes on.
#[test]
fn a_repeated_request_draws_the_reply_again() {
    let mut pair = Pair::new();
    pair.a.ask();
    let req = pair.a.sent_one();
    pair.b.take(&req);
    let Event::ReqReceived { conn, .. } = pair.b.event() else { panic!() };
    pair.b.cm.send_rep(0, conn, &rep()).unwrap();
    let reply = pair.b.sent_one();
    pair.b.take(&req);
    assert_eq!(pair.b.sent_one(), reply);
    assert_eq!(pair.b.events(), []);
    assert_eq!(sendings(&mut pair.b).len(), 5, "four replies and a REJ");
}
