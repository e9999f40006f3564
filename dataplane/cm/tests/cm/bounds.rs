//! However much comes: tables are bounded, and what is full refuses the new under a name.

use crate::message;
use crate::support::*;
use cm::*;
use wire::mad::*;
use wire::{Gid, Qpn};

fn passive(change: impl Fn(&mut Config)) -> End {
    let mut config = Config::new(B_GUID, [2; 32]);
    change(&mut config);
    End::with(config, B, A)
}

/// A request from the `nth` QP of an address.
fn ask(end: &mut End, from: Gid, nth: u32) -> Vec<Event> {
    let req = Req {
        local_id: CommId(nth),
        service_id: SERVICE,
        local_ca_guid: A_GUID,
        local_qpn: Qpn::new(nth),
        path_mtu: 3,
        remote_cm_timeout: 20,
        local_cm_timeout: 20,
        max_cm_retries: 15,
        primary: PrimaryPath { local_gid: from, remote_gid: B, ..PrimaryPath::default() },
        ..Req::default()
    };
    end.cm.on_mad(end.now, &path(B, from), &CmMad::new(1, req).to_bytes());
    end.events()
}

#[test]
fn a_backlog_is_silent_when_it_is_full() {
    let mut end = passive(|_| ());
    let listener = end.cm.listen(SERVICE, None, 3).unwrap();
    let asked: Vec<_> = (1..=5).flat_map(|nth| ask(&mut end, A, nth)).collect();
    assert_eq!((asked.len(), end.sent()), (3, vec![]));
    assert_eq!(end.cm.counters().dropped(DropReason::Backlog), 2);
    // An answer makes room, whatever it is.
    let conn = asked[0].conn().unwrap();
    end.cm.send_rej(0, conn, RejectReason::CONSUMER_DEFINED, b"", b"").unwrap();
    end.cm.send_rep(0, asked[1].conn().unwrap(), &rep()).unwrap();
    end.cm.destroy(0, asked[2].conn().unwrap());
    assert_eq!((11..=14).flat_map(|nth| ask(&mut end, A, nth)).count(), 3);
    // What was asked stays the application's when it listens no more; new requests are refused.
    end.cm.unlisten(listener).unwrap();
    assert_eq!(end.cm.unlisten(listener), Err(CmError::UnknownId));
    end.sent();
    assert_eq!(ask(&mut end, A, 20), []);
    assert_eq!(message!(end.sent_one(), Rej).reason, RejectReason::INVALID_SERVICE_ID);
    assert_eq!(end.cm.usage().connections, 4);
}

/// One peer's flood does not fill the table: another's request is heard, and in the end nothing is left.
#[test]
fn a_peer_has_so_many_requests_and_no_more() {
    let mut end = passive(|config| config.limits.half_open_per_peer = 4);
    end.cm.listen(SERVICE, None, 1_000).unwrap();
    let asked: Vec<_> = (1..=100).flat_map(|nth| ask(&mut end, A, nth)).collect();
    assert_eq!((asked.len(), end.cm.counters().dropped(DropReason::PeerLimit)), (4, 96));
    assert_eq!(ask(&mut end, Gid::from_v4([192, 0, 2, 3]), 1).len(), 1);
    // Accepted ones count until they are established.
    for (nth, event) in asked.iter().enumerate() {
        let params = RepParams { qpn: Qpn::new(500 + nth as u32), ..rep() };
        end.cm.send_rep(0, event.conn().unwrap(), &params).unwrap();
    }
    assert_eq!(ask(&mut end, A, 101), []);
    end.cm.establish(0, asked[0].conn().unwrap()).unwrap();
    end.events();
    assert_eq!(ask(&mut end, A, 102).len(), 1);
    // Whoever is silent is forgotten.
    end.pass(40_000 * MS);
    assert_eq!((end.cm.usage().half_open, end.cm.usage().connections, end.cm.usage().timewait), (0, 1, 0));
}

#[test]
fn a_full_table_refuses_with_no_resources() {
    let mut end = passive(|config| config.limits.connections = 2);
    end.cm.listen(SERVICE, None, 1_000).unwrap();
    assert_eq!((1..=3).flat_map(|nth| ask(&mut end, A, nth)).count(), 2);
    assert_eq!(message!(end.sent_one(), Rej).reason, RejectReason::NO_RESOURCES);
    assert_eq!(end.cm.counters().refused_full, 1);
    let params = end.req();
    assert_eq!(end.cm.send_req(0, &params), Err(CmError::Full));
    end.pass(31_000 * MS);
    end.events();
    assert_eq!(ask(&mut end, A, 4).len(), 1, "there is room again, and in the backlog too");
}

#[test]
fn timewait_is_cut_when_it_is_full() {
    let mut end = passive(|config| config.limits.timewait = 2);
    end.cm.listen(SERVICE, None, 1_000).unwrap();
    let conns: Vec<_> =
        (1..=3).flat_map(|nth| ask(&mut end, A, nth)).filter_map(|event| event.conn()).collect();
    for &conn in &conns {
        end.cm.send_rej(0, conn, RejectReason::CONSUMER_DEFINED, b"", b"").unwrap();
    }
    assert_eq!(end.event(), Event::TimewaitExit { conn: conns[0], qpn: None });
    assert_eq!((end.cm.usage().timewait, end.cm.counters().timewait_cut), (2, 1));
}

#[test]
fn a_service_has_one_listener_at_an_address() {
    let mut end = passive(|config| config.limits.listeners = 3);
    let all = end.cm.listen(SERVICE, None, 1).unwrap();
    let here = end.cm.listen(SERVICE, Some((B, 0)), 1).unwrap();
    assert_eq!(end.cm.listen(SERVICE, None, 1), Err(CmError::InUse));
    assert_eq!(end.cm.listen(SERVICE, Some((B, 0)), 1), Err(CmError::InUse));
    end.cm.listen(ServiceId(1), None, 1).unwrap();
    assert_eq!(end.cm.listen(ServiceId(2), None, 1), Err(CmError::Full));
    let [Event::ReqReceived { listener, .. }] = ask(&mut end, A, 1)[..] else { panic!() };
    assert_eq!(listener, here, "the one for this address goes first");
    end.cm.unlisten(here).unwrap();
    let [Event::ReqReceived { listener, .. }] = ask(&mut end, A, 2)[..] else { panic!() };
    assert_eq!(listener, all);
}

/// The same request a million times costs an answer each, and no memory.
#[test]
fn replayed_requests_cost_nothing() {
    let mut end = passive(|_| ());
    end.cm.listen(SERVICE, None, 10).unwrap();
    assert_eq!(ask(&mut end, A, 1).len(), 1);
    let usage = end.cm.usage();
    for _ in 0..100_000 {
        assert_eq!(ask(&mut end, A, 1), []);
        assert!(end.sent().len() <= 1);
    }
    assert_eq!(end.cm.usage(), usage);
}
