//! Requests that are refused, and what the refusal says (rocev2 facts, CM 7, 8 and 11).

use crate::message;
use crate::support::*;
use cm::*;
use wire::mad::*;
use wire::{Gid, Mtu, PKey};

/// What becomes of a request that was changed on its way.
fn answer(change: impl Fn(&mut Req)) -> Rej {
    let mut pair = Pair::new();
    let a = pair.a.ask();
    let mut mad = pair.a.sent_one();
    if let CmMessage::Req(req) = &mut mad.message {
        change(req);
    }
    pair.b.take(&mad);
    assert_eq!(pair.b.events(), []);
    assert_eq!(pair.b.cm.usage(), Usage { listeners: 1, ..Usage::default() }, "nothing is kept");
    let answer = pair.b.sent_one();
    assert_eq!(answer.transaction_id, mad.transaction_id);
    let rej = message!(answer, Rej);
    assert_eq!((rej.local_id, rej.message), (CommId(0), Answered::Req));
    // The other end takes it for what it is.
    pair.a.take(&CmMad::new(mad.transaction_id, rej.clone()));
    assert_eq!(pair.a.event(), Event::Rejected { conn: a, rej: Box::new(rej.clone()) });
    rej
}

#[test]
fn nobody_listens() {
    assert_eq!(answer(|req| req.service_id = ServiceId(7)).reason, RejectReason::INVALID_SERVICE_ID);
}

#[test]
fn reliable_datagrams_and_xrc_are_not_spoken() {
    for transport in [Transport::Rd, Transport::Extended] {
        let rej = answer(|req| (req.transport, req.extended_transport) = (transport, 1));
        assert_eq!(rej.reason, RejectReason::INVALID_TRANSPORT);
    }
}

/// rocev2 facts, CM 14.10. The additional information is the largest that would do.
#[test]
fn a_path_mtu_above_the_port_s_is_refused() {
    let mut config = Config::new(B_GUID, [2; 32]);
    config.mtu = Mtu::Mtu2048;
    for (code, fits) in [(1, true), (4, true), (5, false), (0, false), (6, false), (15, false)] {
        let mut a = End::active();
        let mut b = End::with(config, B, A);
        b.cm.listen(SERVICE, None, 16).unwrap();
        a.ask();
        let mut mad = a.sent_one();
        if let CmMessage::Req(req) = &mut mad.message {
            req.path_mtu = code;
        }
        b.take(&mad);
        assert_eq!(b.events().len(), usize::from(fits), "code {code}");
        if !fits {
            let rej = message!(b.sent_one(), Rej);
            assert_eq!((rej.reason, rej.ari()), (RejectReason::INVALID_MTU, &[4][..]));
        }
    }
}

/// Who sends the request is who is connected: nobody names a third address, and none that was not asked.
#[test]
fn a_path_between_others_is_refused() {
    let elsewhere = Gid::from_v4([198, 51, 100, 1]);
    for change in [(|req: &mut Req, gid| req.primary.local_gid = gid) as fn(&mut Req, Gid), |req, gid| {
        req.primary.remote_gid = gid
    }] {
        let rej = answer(|req| change(req, elsewhere));
        assert_eq!((rej.reason, rej.ari()), (RejectReason::INVALID_GID, &B.octets()[..]));
    }
}

#[test]
fn another_partition_is_refused() {
    assert_eq!(answer(|req| req.pkey = PKey(0x8001)).reason, RejectReason::UNSUPPORTED_REQUEST);
}

/// rocev2 facts, CM 14.1: what a request may say of its path is not ours to judge.
#[test]
fn any_path_between_us_is_taken() {
    let mut pair = Pair::new();
    pair.a.ask();
    let mut mad = pair.a.sent_one();
    mad.attribute_modifier = 0xFFFF_FFFF;
    if let CmMessage::Req(req) = &mut mad.message {
        let primary = &mut req.primary;
        (primary.flow_label, primary.traffic_class, primary.hop_limit) = (0xFFFFF, 0xFF, 1);
        (primary.rate, primary.sl, primary.subnet_local) = (63, 15, true);
        (req.vendor_id, req.alternate.local_lid) = (0xFFFFFF, 1);
    }
    pair.b.take(&mad);
    assert!(matches!(pair.b.event(), Event::ReqReceived { .. }));
}

#[test]
fn another_class_version_is_told_so() {
    let mut pair = Pair::new();
    let a = pair.a.ask();
    let mut mad = pair.a.sent_one().to_bytes();
    mad[2] = 1;
    let path = pair.b.path;
    pair.b.cm.on_mad(0, &path, &mad);
    assert_eq!(pair.b.cm.counters().dropped(DropReason::ClassVersion), 1);
    pair.settle();
    let Event::Rejected { conn, rej } = pair.a.event() else { panic!() };
    assert_eq!((conn, rej.reason), (a, RejectReason::INVALID_CLASS_VERSION));
    // Other messages of that version are only counted.
    mad[17] = MessageKind::Rtu.attribute() as u8;
    pair.b.cm.on_mad(0, &path, &mad);
    assert_eq!((pair.b.sent(), pair.b.cm.counters().dropped(DropReason::ClassVersion)), (vec![], 2));
}

/// The application's reason, additional information and private data arrive, in both directions.
#[test]
fn applications_refuse_in_their_own_words() {
    let mut pair = Pair::new();
    let (a, b) = pair.asked();
    pair.b.cm.send_rej(0, b, RejectReason::CONSUMER_DEFINED, b"ari", &[7; 148]).unwrap();
    pair.settle();
    let Event::Rejected { conn, rej } = pair.a.event() else { panic!() };
    assert_eq!((conn, rej.reason, rej.ari()), (a, RejectReason::CONSUMER_DEFINED, &b"ari"[..]));
    assert_eq!((rej.message, rej.private_data.bytes()), (Answered::Req, &[7; 148][..]));

    let mut pair = Pair::new();
    let (a, b) = pair.replied();
    pair.a.cm.send_rej(0, a, RejectReason::CONSUMER_DEFINED, b"", b"no").unwrap();
    pair.settle();
    let Event::Rejected { conn, rej } = pair.b.event() else { panic!() };
    assert_eq!((conn, rej.message, &rej.private_data.bytes()[..3]), (b, Answered::Rep, &b"no\0"[..]));
}

/// A refusal that was lost is said again to a request that comes again; the application is not asked twice.
#[test]
fn a_refusal_is_repeated() {
    let mut pair = Pair::new();
    pair.a.ask();
    let req = pair.a.sent_one();
    pair.b.take(&req);
    let Event::ReqReceived { conn, .. } = pair.b.event() else { panic!() };
    pair.b.cm.send_rej(0, conn, RejectReason::CONSUMER_DEFINED, b"", b"no").unwrap();
    let rej = pair.b.sent_one();
    pair.b.take(&req);
    assert_eq!((pair.b.sent_one(), pair.b.events()), (rej, vec![]));
}

/// rocev2 facts, CM 11: a REJ ends an established connection.
#[test]
fn a_connection_can_be_refused_afterwards() {
    let mut pair = Pair::new();
    let (a, _) = pair.connected();
    let mad = pair.b.cm.counters().clone();
    assert_eq!(mad.sent(MessageKind::Rej), 0);
    pair.b.cm = Cm::new(Config::new(B_GUID, [9; 32]));
    // The passive end is gone, and its node tells that it gave up, by GUID and the ID that the REP had.
    let theirs = pair.a.cm.plan(a).unwrap();
    assert_eq!(theirs.dest_qpn, wire::Qpn::new(0xB2));
    pair.a.cm.send_dreq(0, a, b"").unwrap();
    let dreq = message!(pair.a.sent_one(), Dreq);
    let rej = Rej {
        local_id: dreq.remote_id,
        remote_id: CommId(0),
        message: Answered::Other,
        ari_len: 8,
        reason: RejectReason::TIMEOUT,
        ari_area: Area::new(&B_GUID.to_be_bytes()).unwrap(),
        private_data: Area::EMPTY,
    };
    pair.a.take(&CmMad::new(5, rej));
    let Event::Disconnected { conn, cause: DisconnectCause::Rejected(rej) } = pair.a.event() else {
        panic!()
    };
    assert_eq!((conn, rej.reason), (a, RejectReason::TIMEOUT));
}

#[test]
fn what_does_not_fit_a_message_is_not_sent() {
    let mut pair = Pair::new();
    let long = ReqParams { private_data: vec![0; 93], ..pair.a.req() };
    assert_eq!(pair.a.cm.send_req(0, &long), Err(CmError::TooLong(92)));
    let xrc = ReqParams { transport: Transport::Extended, ..pair.a.req() };
    assert_eq!(pair.a.cm.send_req(0, &xrc), Err(CmError::UnsupportedTransport));
    let (a, b) = pair.asked();
    let long = RepParams { private_data: vec![0; 197], ..rep() };
    assert_eq!(pair.b.cm.send_rep(0, b, &long), Err(CmError::TooLong(196)));
    let reason = RejectReason::CONSUMER_DEFINED;
    assert_eq!(pair.b.cm.send_rej(0, b, reason, &[0; 73], b""), Err(CmError::TooLong(72)));
    assert_eq!(pair.b.cm.send_rej(0, b, reason, b"", &[0; 149]), Err(CmError::TooLong(148)));
    pair.b.cm.send_rep(0, b, &rep()).unwrap();
    pair.settle();
    assert_eq!(pair.a.cm.send_rtu(0, a, &[0; 225]), Err(CmError::TooLong(224)));
    pair.a.cm.send_rtu(0, a, &[0; 224]).unwrap();
    assert_eq!(pair.a.cm.send_dreq(0, a, &[0; 221]), Err(CmError::TooLong(220)));
    pair.a.cm.send_dreq(0, a, &[0; 220]).unwrap();
}
