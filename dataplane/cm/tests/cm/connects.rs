//! The way from a request to a connection and to its end (rocev2 facts, CM 11 and 12).

use crate::message;
use crate::support::*;
use cm::*;
use wire::mad::{CmMessage, MessageKind, Transport};
use wire::{Mtu, Psn, Qpn};

#[test]
fn a_connection_is_made_and_ended() {
    let mut pair = Pair::new();
    let (a, b) = pair.connected();
    assert_eq!((pair.a.cm.state(a), pair.b.cm.state(b)), (Ok(State::Established), Ok(State::Established)));
    pair.a.cm.send_dreq(0, a, b"bye").unwrap();
    pair.settle();
    let Event::Disconnected { conn, cause: DisconnectCause::Peer(data) } = pair.b.event() else { panic!() };
    assert_eq!((conn, &data.bytes()[..4]), (b, &b"bye\0"[..]));
    let Event::Disconnected { conn, cause: DisconnectCause::Answered(_) } = pair.a.event() else { panic!() };
    assert_eq!(conn, a);
    // ACK timeout code 17: 537 ms.
    pair.a.pass(536 * MS);
    assert_eq!(pair.a.events(), []);
    pair.a.pass(MS);
    pair.b.pass(537 * MS);
    assert_eq!(pair.a.event(), Event::TimewaitExit { conn: a, qpn: Some(Qpn::new(0xA1)) });
    assert_eq!(pair.b.event(), Event::TimewaitExit { conn: b, qpn: Some(Qpn::new(0xB2)) });
    for end in [&mut pair.a, &mut pair.b] {
        assert_eq!(end.cm.usage(), Usage { listeners: end.cm.usage().listeners, ..Usage::default() });
        assert_eq!(end.cm.next_timeout(), None);
    }
}

/// Both ends derive the same from REQ and REP: what one begins to send with, the other expects.
#[test]
fn the_plans_of_both_ends_fit_together() {
    let mut pair = Pair::new();
    let params = ReqParams { responder_resources: 3, initiator_depth: 9, rnr_retry_count: 2, ..pair.a.req() };
    let params = ReqParams { private_data: b"hello".to_vec(), ..params };
    let a = pair.a.cm.send_req(0, &params).unwrap();
    pair.settle();
    let Event::ReqReceived { conn: b, req, path, .. } = pair.b.event() else { panic!() };
    assert_eq!((&req.private_data.bytes()[..6], path), (&b"hello\0"[..], pair.b.path));
    let accept = RepParams { responder_resources: 5, initiator_depth: 4, rnr_retry_count: 6, ..rep() };
    let accept = RepParams { private_data: b"welcome".to_vec(), ..accept };
    let passive = pair.b.cm.plan_accept(b, &accept).unwrap();
    assert!(pair.a.cm.plan(a).is_err(), "no reply yet");
    pair.b.cm.send_rep(0, b, &accept).unwrap();
    pair.settle();
    let Event::RepReceived { rep, .. } = pair.a.event() else { panic!() };
    assert_eq!((&rep.private_data.bytes()[..8], rep.local_ca_guid), (&b"welcome\0"[..], B_GUID));
    let active = pair.a.cm.plan(a).unwrap();
    assert_eq!((active.dest_qpn, passive.dest_qpn), (Qpn::new(0xB2), Qpn::new(0xA1)));
    assert_eq!((active.rq_psn, active.sq_psn), (Psn::new(0x111), Psn::new(0x222)));
    assert_eq!((passive.rq_psn, passive.sq_psn), (Psn::new(0x222), Psn::new(0x111)));
    assert_eq!((active.mtu, passive.mtu), (Mtu::Mtu1024, Mtu::Mtu1024));
    // Of nine READs that the active side wants, the passive one accepts five; of four the other way, three.
    assert_eq!((active.max_rd_atomic, passive.max_dest_rd_atomic), (5, 5));
    assert_eq!((passive.max_rd_atomic, active.max_dest_rd_atomic), (3, 3));
    assert_eq!((active.rnr_retry_count, passive.rnr_retry_count), (6, 2));
    assert_eq!((active.ack_timeout, passive.ack_timeout), (17, 17));
}

/// rocev2 facts, CM 4 and 12: the REQ tells of the active side's path, and the passive side sends on it as it was told.
#[test]
fn the_request_s_path_is_that_of_both_ends() {
    for (hop_limit, lid, subnet_local) in [(64, 0xFFFF, false), (2, 0xFFFF, false), (1, 0, true)] {
        let mut pair = Pair::new();
        let own = Path { traffic_class: 0x68, flow_label: 0xABCDE, sl: 3, hop_limit, ..pair.a.path };
        pair.a.cm.send_req(0, &ReqParams { path: own, ..pair.a.req() }).unwrap();
        pair.settle();
        let Event::ReqReceived { conn, req, .. } = pair.b.event() else { panic!() };
        let primary = &req.primary;
        assert_eq!((primary.local_lid, primary.remote_lid, primary.subnet_local), (lid, lid, subnet_local));
        assert_eq!((primary.local_gid, primary.remote_gid, primary.hop_limit), (A, B, hop_limit));
        assert_eq!((primary.traffic_class, primary.flow_label, primary.sl), (0x68, 0xABCDE, 3));
        assert_eq!((req.alternate.local_lid, req.alternate.remote_lid), (0, 0), "there is no other");
        // The way back has a hop limit of its own.
        let back = Path { traffic_class: 0x68, flow_label: 0xABCDE, sl: 3, ..pair.b.path };
        assert_eq!(pair.b.cm.plan_accept(conn, &rep()).unwrap().path, back);
    }
}

/// rocev2 facts, CM 10 and 14.8: the ACK timeout of the connection, within bounds.
#[test]
fn timewait_is_as_long_as_the_ack_timeout_but_neither_nothing_nor_for_ever() {
    for (ack_timeout, ns) in [
        (0, 100 * MS),
        (14, 100 * MS),
        (15, timeout_ns(15)),
        (18, timeout_ns(18)),
        (19, 2_000 * MS),
        (31, 2_000 * MS),
    ] {
        let mut pair = Pair::new();
        pair.a.cm.send_req(0, &ReqParams { ack_timeout, ack_delay: 0, ..pair.a.req() }).unwrap();
        pair.settle();
        let Event::ReqReceived { conn, .. } = pair.b.event() else { panic!() };
        pair.b.cm.destroy(0, conn);
        pair.settle();
        for end in [&mut pair.a, &mut pair.b] {
            end.events();
            assert_eq!((end.cm.usage().timewait, end.cm.next_timeout()), (1, Some(ns)), "code {ack_timeout}");
        }
    }
}

/// rocev2 facts, CM 10 and 12: the REQ tells the passive side what the way and the active side need; the REP tells the active side
/// what the passive one needs, and it reckons anew.
#[test]
fn ack_timeouts_cover_the_way_and_the_other_end() {
    // Linux' numbers (CM 10), then each branch of the rule.
    let cases = [
        (17, 15, 17),
        (17, 16, 18),
        (17, 17, 18),
        (17, 18, 19),
        (17, 19, 19),
        (14, 15, 16),
        (13, 15, 15),
        (31, 31, 31),
    ];
    for (way, delay, expected) in cases {
        assert_eq!(ack_timeout(way, delay), expected, "{way} and {delay}");
    }
    for (way, ours, theirs, passive, active) in [
        (17, 15, 18, 17, 19),
        (17, 18, 15, 19, 17),
        (0, 18, 18, 0, 0),
        (17, 31, 31, 31, 20),
        (24, 0, 21, 24, 24),
    ] {
        let mut pair = Pair::new();
        let params = ReqParams { ack_timeout: way, ack_delay: ours, ..pair.a.req() };
        let a = pair.a.cm.send_req(0, &params).unwrap();
        pair.settle();
        let Event::ReqReceived { conn: b, req, .. } = pair.b.event() else { panic!() };
        assert_eq!(req.primary.ack_timeout, passive);
        let accept = RepParams { target_ack_delay: theirs, ..rep() };
        // Nobody is made to wait without end, or longer than 4.3 s, but by its own application.
        let bounded = if passive == 0 { PEERS_LONGEST } else { passive.min(20) };
        assert_eq!(pair.b.cm.plan_accept(b, &accept).unwrap().ack_timeout, bounded);
        pair.b.cm.send_rep(0, b, &accept).unwrap();
        pair.settle();
        assert_eq!(pair.a.cm.plan(a).unwrap().ack_timeout, active);
    }
}

/// Every answer repeats the request's transaction, a DREQ begins its own (rocev2 facts, CM 2).
#[test]
fn answers_repeat_the_transaction() {
    let mut pair = Pair::new();
    let a = pair.a.ask();
    let req = pair.a.sent_one();
    pair.b.take(&req);
    let Event::ReqReceived { conn: b, .. } = pair.b.event() else { panic!() };
    pair.b.cm.send_rep(0, b, &rep()).unwrap();
    let reply = pair.b.sent_one();
    pair.a.take(&reply);
    pair.a.cm.send_rtu(0, a, b"").unwrap();
    let rtu = pair.a.sent_one();
    pair.b.take(&rtu);
    pair.a.cm.send_dreq(0, a, b"").unwrap();
    let dreq = pair.a.sent_one();
    pair.b.take(&dreq);
    let drep = pair.b.sent_one();
    assert_eq!([&reply, &rtu].map(|mad| mad.transaction_id), [req.transaction_id; 2]);
    assert_ne!(dreq.transaction_id, req.transaction_id);
    assert_eq!(drep.transaction_id, dreq.transaction_id);
    assert_eq!(message!(dreq, Dreq).remote_qpn, Qpn::new(0xB2));
    let counters = pair.b.cm.counters();
    assert_eq!((counters.received(MessageKind::Req), counters.sent(MessageKind::Rep)), (1, 1));
}

#[test]
fn unreliable_connections_are_made_as_well() {
    let mut pair = Pair::new();
    let params = ReqParams { transport: Transport::Uc, ..pair.a.req() };
    let a = pair.a.cm.send_req(0, &params).unwrap();
    pair.settle();
    let Event::ReqReceived { conn: b, req, .. } = pair.b.event() else { panic!() };
    assert_eq!(req.transport, Transport::Uc);
    assert_eq!(pair.b.cm.plan_accept(b, &rep()).unwrap().transport, Transport::Uc);
    pair.b.cm.send_rep(0, b, &rep()).unwrap();
    pair.settle();
    assert_eq!(pair.a.cm.plan(a).unwrap().transport, Transport::Uc);
}

/// Both ends in one port, as programs do that talk to themselves.
#[test]
fn a_port_connects_to_itself() {
    let mut end = End::with(Config::new(A_GUID, [1; 32]), A, A);
    end.cm.listen(SERVICE, None, 1).unwrap();
    let deliver = |end: &mut End| {
        let mads = end.sent();
        mads.iter().for_each(|mad| end.take(mad));
    };
    let a = end.ask();
    deliver(&mut end);
    let Event::ReqReceived { conn: b, .. } = end.event() else { panic!() };
    end.cm.send_rep(0, b, &rep()).unwrap();
    deliver(&mut end);
    assert!(matches!(end.event(), Event::RepReceived { conn, .. } if conn == a));
    end.cm.send_rtu(0, a, b"").unwrap();
    deliver(&mut end);
    assert!(matches!(end.event(), Event::Established { conn, .. } if conn == b));
    end.cm.send_dreq(0, b, b"").unwrap();
    deliver(&mut end);
    assert!(
        matches!(end.event(), Event::Disconnected { conn, cause: DisconnectCause::Peer(_) } if conn == a)
    );
    deliver(&mut end);
    assert!(
        matches!(end.event(), Event::Disconnected { conn, cause: DisconnectCause::Answered(_) } if conn == b)
    );
    end.pass(1_000 * MS);
    assert_eq!((end.events().len(), end.cm.usage().connections + end.cm.usage().timewait), (2, 0));
}
