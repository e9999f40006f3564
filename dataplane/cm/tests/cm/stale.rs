//! Connections that only one end remembers (rocev2 facts, CM 11).

use crate::message;
use crate::support::*;
use cm::*;
use wire::Gid;
use wire::mad::{Answered, CmMad, CmMessage, CommId, MessageKind, RejectReason};

/// The node of the active end boots and asks with the same QP: it is refused, and the old connection ends.
#[test]
fn a_request_with_the_qp_of_a_connection_ends_that_connection() {
    let mut pair = Pair::new();
    let (_, b) = pair.connected();
    pair.a = End::with(Config::new(A_GUID, [7; 32]), A, B);
    let again = pair.a.ask();
    let req = pair.a.sent_one();
    pair.b.take(&req);
    let sent = pair.b.sent();
    assert_eq!(
        sent.iter().map(|mad| mad.message.kind()).collect::<Vec<_>>(),
        [MessageKind::Rej, MessageKind::Dreq]
    );
    assert_eq!(pair.b.event(), Event::Disconnected { conn: b, cause: DisconnectCause::Stale });
    sent.iter().for_each(|mad| pair.a.take(mad));
    let Event::Rejected { conn, rej } = pair.a.event() else { panic!() };
    assert_eq!((conn, rej.reason), (again, RejectReason::STALE_CONNECTION));
    // It knows nothing of the old connection, and says so: now that is over for both.
    pair.settle();
    assert_eq!((pair.b.events(), pair.b.cm.state(b)), (vec![], Ok(State::Timewait)));
    pair.a.pass(2_000 * MS);
    pair.b.pass(2_000 * MS);
    assert!(matches!(pair.b.event(), Event::TimewaitExit { .. }));
    pair.a.events();
    pair.asked();
}

/// The node of the passive end boots and answers with the same QP.
#[test]
fn a_reply_with_the_qp_of_a_connection_ends_that_connection() {
    let mut pair = Pair::new();
    let (old, _) = pair.connected();
    pair.b = End::with(Config::new(B_GUID, [7; 32]), B, A);
    pair.b.cm.listen(SERVICE, None, 4).unwrap();
    let params = ReqParams { qpn: wire::Qpn::new(0xA2), ..pair.a.req() };
    let new = pair.a.cm.send_req(0, &params).unwrap();
    pair.settle();
    let Event::ReqReceived { conn: b, .. } = pair.b.event() else { panic!() };
    pair.b.cm.send_rep(0, b, &rep()).unwrap();
    pair.settle();
    let events = pair.a.events();
    let [Event::Rejected { conn, rej }, Event::Disconnected { conn: ended, cause: DisconnectCause::Stale }] =
        &events[..]
    else {
        panic!("{events:?}")
    };
    assert_eq!((*conn, rej.reason, *ended), (new, RejectReason::STALE_CONNECTION, old));
    let Event::Rejected { conn, rej } = pair.b.event() else { panic!() };
    assert_eq!((conn, rej.reason, rej.message), (b, RejectReason::STALE_CONNECTION, Answered::Rep));
    for end in [&mut pair.a, &mut pair.b] {
        end.pass(2_000 * MS);
        assert_eq!(end.cm.usage().connections + end.cm.usage().timewait, 0);
    }
}

/// Who has another address does not end connections of others, whatever GUID and QP it names. Linux looks at the GUID alone.
#[test]
fn nobody_ends_connections_of_another_address() {
    let mut pair = Pair::new();
    let (_, b) = pair.connected();
    let elsewhere = path(B, Gid::from_v4([192, 0, 2, 99]));
    let mut liar = End::with(Config::new(A_GUID, [7; 32]), elsewhere.remote, B);
    liar.ask();
    let req = liar.sent_one();
    pair.b.cm.on_mad(0, &elsewhere, &req.to_bytes());
    assert!(matches!(pair.b.event(), Event::ReqReceived { .. }), "a request like any other");
    assert_eq!((pair.b.sent(), pair.b.cm.state(b)), (vec![], Ok(State::Established)));
}

/// A message with the right IDs from the wrong address is dropped by name, in every direction.
#[test]
fn ids_of_others_are_of_no_use() {
    let mut pair = Pair::new();
    let (a, b) = pair.connected();
    pair.a.cm.send_dreq(0, a, b"").unwrap();
    let dreq = pair.a.sent_one();
    let ids = message!(dreq.clone(), Dreq);
    let elsewhere = path(B, Gid::from_v4([192, 0, 2, 99]));
    let (local_id, remote_id) = (ids.local_id, ids.remote_id);
    let rej = wire::mad::Rej {
        local_id,
        remote_id,
        message: Answered::Other,
        ari_len: 0,
        reason: RejectReason::CONSUMER_DEFINED,
        ari_area: wire::mad::Area::EMPTY,
        private_data: wire::mad::Area::EMPTY,
    };
    for mad in [
        dreq,
        CmMad::new(1, rej),
        CmMad::new(1, wire::mad::Rtu { local_id, remote_id, ..Default::default() }),
        CmMad::new(1, wire::mad::Rep { local_id, remote_id, ..Default::default() }),
    ] {
        pair.b.cm.on_mad(0, &elsewhere, &mad.to_bytes());
    }
    // Another scope is another address: link-local ones are on several interfaces.
    let mut scoped = pair.b.path;
    scoped.scope = 1;
    pair.b.cm.on_mad(
        0,
        &scoped,
        &CmMad::new(1, wire::mad::Rtu { local_id, remote_id, ..Default::default() }).to_bytes(),
    );
    assert_eq!((pair.b.cm.state(b), pair.b.events()), (Ok(State::Established), vec![]));
    assert_eq!(pair.b.cm.counters().dropped(DropReason::WrongPeer), 5);
    // And the right address with an ID that is not the connection's.
    pair.b.take(&CmMad::new(1, wire::mad::Rtu { local_id: CommId(1), remote_id, ..Default::default() }));
    assert_eq!(pair.b.cm.counters().dropped(DropReason::UnknownId), 1);
}
