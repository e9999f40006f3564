//! Every way in which a connection does not come about, told to whoever asked for it, and nothing left behind.

use crate::stranger::{OWN, Stranger, request};
use crate::support::{End, SERVER, SOON, at, connected, counted, pair, until};
use rockhopper::cm::{
    CmError, CmEventKind, CmOptions, ConnParam, PortSpace, RejectReason, State, Unreachable,
};
use rockhopper::{Mtu, QpState, RingPair};
use std::time::{Duration, Instant};
use wire::mad::{Answered, Area, CmMessage, CommId, Rej, Req};

#[track_caller]
fn expect_rejected(end: &End, reason: RejectReason) -> Vec<u8> {
    match end.next() {
        CmEventKind::Rejected { reason: told, private_data } => {
            assert_eq!(told, reason);
            private_data
        }
        other => panic!("{other:?}"),
    }
}

/// rocev2 facts, CM 8: nobody listens, at once.
#[test]
fn nobody_listens() {
    let (client, server) = pair();
    let active = End::resolved(&client, PortSpace::Tcp, at(SERVER, 7999));
    active.id.connect(&ConnParam::default()).unwrap();
    expect_rejected(&active, RejectReason::INVALID_SERVICE_ID);
    assert_eq!((active.id.state(), active.qp().state()), (State::Closed, QpState::Err));

    // One who listens at another address of the port is somebody else.
    let _other = End::listening(&server, PortSpace::Tcp, at("fd52:48::2", 7999));
    let active = End::resolved(&client, PortSpace::Tcp, at(SERVER, 7999));
    active.id.connect(&ConnParam::default()).unwrap();
    expect_rejected(&active, RejectReason::INVALID_SERVICE_ID);
}

/// rocev2 facts, CM 5 and 8: the application's own words, 148 bytes of them.
#[test]
fn the_application_rejects() {
    let (client, server) = pair();
    let listener = End::listening(&server, PortSpace::Tcp, at(SERVER, 7471));
    let active = End::resolved(&client, PortSpace::Tcp, at(SERVER, 7471));
    active.id.connect(&ConnParam::default()).unwrap();
    let (passive, _) = End::requested(&listener);
    assert!(matches!(passive.id.reject(&[1; 149]), Err(CmError::PrivateData { given: 149, most: 148 })));
    passive.id.reject(b"not today").unwrap();
    let said = expect_rejected(&active, RejectReason::CONSUMER_DEFINED);
    assert_eq!((&said[..9], said.len()), (&b"not today"[..], 148));
    assert!(matches!(
        passive.id.accept(&ConnParam::default()),
        Err(CmError::State { is: State::Closed, .. })
    ));
}

/// An identifier that nobody wants is a connection that nobody wants; so is one whose channel is gone.
#[test]
fn a_dropped_request_is_rejected() {
    let (client, server) = pair();
    let listener = End::listening(&server, PortSpace::Tcp, at(SERVER, 7471));
    let active = End::resolved(&client, PortSpace::Tcp, at(SERVER, 7471));
    active.id.connect(&ConnParam::default()).unwrap();
    drop(listener.event());
    assert!(matches!(active.next(), CmEventKind::Rejected { .. }));

    let active = End::resolved(&client, PortSpace::Tcp, at(SERVER, 7471));
    active.id.connect(&ConnParam::default()).unwrap();
    until("the request", || counted(&server, "cm_rx_req") >= 2);
    let End { channel, id, .. } = listener;
    drop(channel);
    assert!(matches!(active.next(), CmEventKind::Rejected { .. }));
    drop(id);
    until("the end of all", || counted(&server, "cm_ids") == 0);
}

/// rocev2 facts, CM 12: the REQ says it for both.
#[test]
fn the_path_mtu_is_the_one_asked_for() {
    let small = rockhopper::RingPair { mtu: 4200, ..rockhopper::RingPair::default() };
    let (client, server) = rockhopper::Endpoint::ring_pair(&small).unwrap();
    let listener = End::listening(&server, PortSpace::Tcp, at(SERVER, 7471));
    let active = End::resolved(&client, PortSpace::Tcp, at(SERVER, 7471));
    active.id.set_options(CmOptions { path_mtu: Some(Mtu::Mtu1024), ..CmOptions::default() }).unwrap();
    active.id.connect(&ConnParam::default()).unwrap();
    let (passive, _) = End::requested(&listener);
    passive.id.accept(&ConnParam::default()).unwrap();
    active.expect_established();
    assert_eq!(passive.qp().query().unwrap().attr.path_mtu, Mtu::Mtu1024, "the one that was asked for");
}

/// What a peer that does not answer costs: a second, not minutes, and no entry.
#[test]
fn a_silent_peer_is_reported_within_about_a_second() {
    let (client, server) = pair();
    let active = End::resolved(&client, PortSpace::Tcp, at(SERVER, 7471));
    drop(server);
    let begin = Instant::now();
    active.id.connect(&ConnParam::default()).unwrap();
    assert!(matches!(active.next(), CmEventKind::Unreachable(Unreachable::Timeout)));
    let waited = begin.elapsed();
    assert!(waited >= Duration::from_millis(900), "{waited:?}: all tries, 200 ms each");
    assert!(waited < Duration::from_secs(5), "{waited:?}");
    assert!(counted(&client, "cm_retries") >= 3);

    // The application says how long.
    let active = End::resolved(&client, PortSpace::Tcp, at(SERVER, 7471));
    let soon = CmOptions { retransmit: Duration::from_millis(20), retries: 1, ..CmOptions::default() };
    active.id.set_options(soon).unwrap();
    let begin = Instant::now();
    active.id.connect(&ConnParam::default()).unwrap();
    assert!(matches!(active.next(), CmEventKind::Unreachable(Unreachable::Timeout)));
    assert!(begin.elapsed() < Duration::from_millis(800), "{:?}", begin.elapsed());
}

/// A neighbour that is not there is reported within about a second, too.
#[test]
fn a_missing_neighbour_is_an_address_error() {
    let (client, _server) = pair();
    let end = End::new(&client, PortSpace::Tcp);
    let begin = Instant::now();
    end.id.resolve_addr(None, at("10.82.72.99", 1), Duration::from_secs(1)).unwrap();
    assert!(matches!(end.next(), CmEventKind::AddrError(_)));
    assert!(begin.elapsed() < Duration::from_secs(4), "{:?}", begin.elapsed());
    assert_eq!(end.id.state(), State::New, "it may try another");

    end.id.resolve_addr(None, at("192.0.2.9", 1), SOON).unwrap();
    assert!(matches!(end.next(), CmEventKind::AddrError(_)), "no route");
    let wrong = end.id.resolve_addr(Some("10.82.72.77".parse().unwrap()), at(SERVER, 1), SOON);
    assert!(matches!(wrong, Err(CmError::NoSuchAddress(_))), "{wrong:?}");
}

/// Calls that do not belong where the identifier is say so, and change nothing.
#[test]
fn calls_out_of_order_are_refused() {
    let (client, server) = pair();
    let end = End::new(&client, PortSpace::Tcp);
    let refused = |result: Result<(), CmError>| matches!(result, Err(CmError::State { .. }));
    assert!(refused(end.id.connect(&ConnParam::default())));
    assert!(refused(end.id.accept(&ConnParam::default())));
    assert!(refused(end.id.reject(&[])));
    assert!(refused(end.id.disconnect()));
    assert!(refused(end.id.establish()));
    assert!(refused(end.id.resolve_route(SOON)));
    assert_eq!(end.id.state(), State::New);
    end.id.bind(at("10.82.72.1", 0)).unwrap();
    assert!(refused(end.id.bind(at("10.82.72.1", 0))));
    assert_ne!(end.id.local_addr().unwrap().port(), 0, "a free one was chosen");
    let taken = End::new(&client, PortSpace::Tcp);
    assert!(matches!(taken.id.bind(end.id.local_addr().unwrap()), Err(CmError::AddrInUse(_))));
    assert!(matches!(taken.id.bind(at("192.0.2.1", 0)), Err(CmError::NoSuchAddress(_))));

    let active = End::resolved(&client, PortSpace::Tcp, at(SERVER, 1));
    let long = active.id.connect(&ConnParam::with_private_data(&[0; 57]));
    assert!(matches!(long, Err(CmError::PrivateData { given: 57, most: 56 })), "{long:?}");
    let deep = active.id.connect(&ConnParam { initiator_depth: 200, ..ConnParam::default() });
    assert!(matches!(deep, Err(CmError::OutOfRange { .. })), "{deep:?}");
    active.id.destroy_qp();
    assert!(matches!(active.id.connect(&ConnParam::default()), Err(CmError::NoQp)));
    drop(server);
}

/// Both sides may close at once; a side may be destroyed at any time. The other always hears, and nothing is left.
#[test]
fn whichever_way_it_ends_the_other_side_hears() {
    let (client, server) = pair();
    let all = connected(&client, &server);
    all.active.id.disconnect().unwrap();
    let _ = all.passive.id.disconnect();
    for end in [&all.active, &all.passive] {
        assert!(matches!(end.next(), CmEventKind::Disconnected));
        assert!(matches!(end.next(), CmEventKind::TimewaitExit));
    }
    drop(all);

    let all = connected(&client, &server);
    drop(all.active);
    assert!(matches!(all.passive.next(), CmEventKind::Disconnected));
    drop((all.passive, all.listener));

    let listener = End::listening(&server, PortSpace::Tcp, at(SERVER, 7471));
    let active = End::resolved(&client, PortSpace::Tcp, at(SERVER, 7471));
    active.id.connect(&ConnParam::default()).unwrap();
    let (passive, _) = End::requested(&listener);
    drop(active);
    // It is accepted too late: whoever asked is not there any more.
    let _ = passive.id.accept(&ConnParam::default());
    until("an end", || passive.channel.poll().is_some() || passive.id.state() == State::Closed);
    drop((passive, listener));
    for endpoint in [&client, &server] {
        until("an empty book", || counted(endpoint, "cm_ids") == 0);
    }
}

/// rocev2 facts, CM 8 and 14.10: a path MTU above the port's is refused with the one that would do; one that the peer refuses is told.
#[test]
fn a_path_mtu_that_does_not_fit_is_refused() {
    let mut peer = Stranger::over(&RingPair { mtu: 1500, ..RingPair::default() });
    let listener = End::listening(&peer.endpoint, PortSpace::Tcp, at(SERVER, 7471));
    let ours = OWN.parse().unwrap();
    peer.say(Req { path_mtu: 4, ..request(0x55, 0x99, 7471, ours) });
    let refused = peer.expect("REJ", |message| match message {
        CmMessage::Rej(rej) => Some((rej.remote_id, rej.reason, rej.ari().to_vec())),
        _ => None,
    });
    assert_eq!(refused, (CommId(0x55), RejectReason::INVALID_MTU, vec![3]));
    assert!(listener.channel.poll().is_none(), "nobody was bothered");
    peer.say(Req { path_mtu: 3, ..request(0x56, 0x9A, 7471, ours) });
    End::requested(&listener);

    let active = peer.asked_by_us(&CmOptions::default());
    let req = peer.expect_req_of(&active, &ConnParam::default());
    assert_eq!(req.path_mtu, 3);
    let reason = RejectReason::INVALID_MTU;
    peer.say(Rej {
        local_id: CommId(0),
        remote_id: req.local_id,
        message: Answered::Req,
        ari_len: 1,
        reason,
        ari_area: Area::new(&[2]).unwrap(),
        private_data: Area::EMPTY,
    });
    let CmEventKind::Rejected { reason, .. } = active.next() else { panic!("a refusal") };
    assert_eq!(reason, RejectReason::INVALID_MTU);
    assert_eq!((active.id.state(), active.qp().state()), (State::Closed, QpState::Err));
}
