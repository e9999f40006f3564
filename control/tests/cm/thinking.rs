//! An application that thinks too long, a peer that asks for time and comes no more, and one whose last word is not waited for. In a
//! time that the test moves.

use crate::stranger::{OWN, Stranger, reply, request};
use crate::support::{End, SERVER, SOON, at, counted, until};
use dpdk::tsc::Hand;
use rockhopper::cm::{CmError, CmEventKind, CmOptions, ConnParam, PortSpace, State, Unreachable};
use rockhopper::{EventKind, PathRequest, QpState, ResolveError};
use std::net::IpAddr;
use std::time::Duration;
use wire::mad::{Answered, Area, CmMessage, CommId, Mra, RejectReason, Rtu};

const PORT: u16 = 7471;
const QPN: u32 = 0x99;
const ID: CommId = CommId(0x55);
/// How long an application may think (docs/connections.md).
const THOUGHT: Duration = Duration::from_secs(30);

fn asked() -> (Stranger, Hand, End) {
    let (mut peer, hand) = Stranger::by_hand();
    let listener = End::listening(&peer.endpoint, PortSpace::Tcp, at(SERVER, PORT));
    peer.say(request(ID.0, QPN, PORT, OWN.parse().unwrap()));
    (peer, hand, listener)
}

fn advance(hand: Hand, by: Duration) {
    hand.advance(by.as_nanos() as u64);
}

#[track_caller]
fn expect_expired(end: &End) {
    match end.next() {
        CmEventKind::Unreachable(Unreachable::Expired) => assert_eq!(end.id.state(), State::Closed),
        other => panic!("{other:?}"),
    }
}

#[track_caller]
fn expect_refusal(peer: &mut Stranger, of: Answered) {
    let reason = peer.expect("REJ", |message| match message {
        CmMessage::Rej(rej) if rej.message == of => Some(rej.reason),
        _ => None,
    });
    assert_eq!(reason, RejectReason::CONSUMER_DEFINED);
}

/// The peer is asked for time, and when that is over told that nobody wants it; what the application does then is too late.
#[test]
fn about_a_request() {
    let (mut peer, hand, listener) = asked();
    let (passive, _) = End::requested(&listener);
    advance(hand, THOUGHT / 2);
    let wait = peer.expect("MRA", |message| match message {
        CmMessage::Mra(mra) => Some((mra.message, mra.remote_id)),
        _ => None,
    });
    assert_eq!(wait, (Answered::Req, ID));
    assert_eq!(passive.id.state(), State::Requested);
    advance(hand, THOUGHT / 2);
    expect_expired(&passive);
    expect_refusal(&mut peer, Answered::Req);
    let late = passive.id.accept(&ConnParam::default());
    assert!(matches!(late, Err(CmError::State { is: State::Closed, .. })), "{late:?}");
    drop(passive);
    advance(hand, THOUGHT);
    until("an empty book", || counted(&peer.endpoint, "cm_ids") == 0);
}

/// Nobody has read the request, so nobody hears of its end.
#[test]
fn about_a_request_that_was_never_read() {
    let (mut peer, hand, listener) = asked();
    until("a request", || counted(&peer.endpoint, "cm_rx_req") == 1);
    advance(hand, THOUGHT);
    expect_refusal(&mut peer, Answered::Req);
    assert!(listener.channel.wait(Duration::from_millis(50)).is_none());
    advance(hand, THOUGHT);
    until("an empty book", || counted(&peer.endpoint, "cm_ids") == 0);
}

/// The peer has the reply, asks for time, and its last word never comes.
#[test]
fn a_peer_that_asks_for_time_and_comes_no_more() {
    let (mut peer, hand, listener) = asked();
    let (passive, _) = End::requested(&listener);
    passive.id.accept(&ConnParam::default()).unwrap();
    let rep = peer.expect_rep();
    // Code 21: 8.6 s.
    let message = Answered::Rep;
    let private_data = Area::EMPTY;
    peer.say(Mra { local_id: ID, remote_id: rep.local_id, message, service_timeout: 21, private_data });
    until("the MRA", || counted(&peer.endpoint, "cm_rx_mra") == 1);
    advance(hand, Duration::from_secs(5));
    assert!(passive.channel.wait(Duration::from_millis(50)).is_none(), "it has been granted the time");
    assert_eq!(passive.qp().state(), QpState::Rts);
    // After that the reply is sent again, as often as is left.
    until("the end", || {
        advance(hand, Duration::from_millis(100));
        passive.id.state() == State::Closed
    });
    assert!(matches!(passive.next(), CmEventKind::Unreachable(Unreachable::Timeout)));
    assert_eq!(passive.qp().state(), QpState::Err);
    assert!(counted(&peer.endpoint, "cm_retries") >= 1);
}

/// rocev2 facts, CM 11: the application says that it is established, by a word of its own or by an event of its queue pair. The RTU is
/// nothing new then.
#[test]
fn a_passive_end_is_established_by_its_application() {
    for notified in [false, true] {
        let (mut peer, _hand, listener) = asked();
        let (passive, _) = End::requested(&listener);
        let early = passive.id.establish();
        assert!(matches!(early, Err(CmError::State { is: State::Requested, .. })), "{early:?}");
        passive.id.accept(&ConnParam::default()).unwrap();
        let rep = peer.expect_rep();
        assert_eq!(passive.id.state(), State::Accepted);
        if notified {
            passive.id.notify(EventKind::CommEst).unwrap();
        } else {
            passive.id.establish().unwrap();
        }
        passive.expect_established();
        assert_eq!(passive.id.state(), State::Connected);
        peer.say(Rtu { local_id: ID, remote_id: rep.local_id, private_data: Area::EMPTY });
        until("the RTU", || counted(&peer.endpoint, "cm_rx_rtu") == 1);
        assert!(passive.channel.wait(Duration::from_millis(20)).is_none(), "established once");
        passive.id.disconnect().unwrap();
        peer.expect("DREQ", |message| matches!(message, CmMessage::Dreq(_)).then_some(()));
    }
}

/// A reply that the application looks at itself is not looked at for ever.
#[test]
fn about_a_reply() {
    let (mut peer, hand) = Stranger::by_hand();
    let active = peer.asked_by_us(&CmOptions::default());
    let qp = active.qp();
    active.id.destroy_qp();
    let req = peer.expect_req_of(&active, &ConnParam { qp_num: Some(qp.qpn()), ..ConnParam::default() });
    peer.say(reply(&req));
    assert!(matches!(active.next(), CmEventKind::ConnectResponse { .. }));
    assert_eq!(active.id.state(), State::Responded);
    advance(hand, THOUGHT);
    expect_expired(&active);
    expect_refusal(&mut peer, Answered::Rep);
    assert!(active.id.establish().is_err(), "too late");
}

/// The way is looked for anew if the next hop was lost since, within the time that is given; where it is known, at once.
#[test]
fn a_next_hop_that_is_lost_between_address_and_route() {
    let (mut peer, hand) = Stranger::by_hand();
    let active = peer.asked_by_us(&CmOptions::default());
    let (device, station) = (active.id.device().unwrap(), PathRequest::to(IpAddr::from([10, 82, 72, 1])));
    let found = || device.find_path_then(station.clone(), |_| ());
    // Long ago it answered; now it does not.
    advance(hand, Duration::from_secs(3600));
    until("a neighbour that is given up", || {
        let is_lost = matches!(found(), Some(Err(_)));
        advance(hand, Duration::from_millis(if is_lost { 0 } else { 100 }));
        is_lost
    });
    expect_no_route(&active, SOON, || ());
    // Asked anew, it has the time that the call gives.
    advance(hand, Duration::from_secs(10));
    expect_no_route(&active, Duration::from_millis(300), || {
        assert_eq!(active.id.state(), State::Routing);
        advance(hand, Duration::from_millis(250));
        assert!(active.channel.wait(Duration::from_millis(50)).is_none(), "there is time left");
        advance(hand, Duration::from_millis(100));
    });
    // It is there again.
    advance(hand, Duration::from_secs(10));
    active.id.resolve_route(SOON).unwrap();
    until("a route", || {
        peer.hear();
        active.id.state() != State::Routing
    });
    assert!(matches!(active.next(), CmEventKind::RouteResolved));
    assert_eq!(active.id.state(), State::RouteResolved);
    assert_eq!(active.id.path().unwrap().addressing.dmac, peer.port.mac());
}

#[track_caller]
fn expect_no_route(active: &End, timeout: Duration, meanwhile: impl FnOnce()) {
    active.id.resolve_route(timeout).unwrap();
    meanwhile();
    let CmEventKind::RouteError(why) = active.next() else { panic!("no route") };
    assert_eq!(why, ResolveError::Unreachable(OWN.parse().unwrap()));
    assert_eq!(active.id.state(), State::AddrResolved);
}

#[test]
fn an_address_that_goes_between_address_and_route() {
    let (mut peer, _hand) = Stranger::by_hand();
    let active = peer.asked_by_us(&CmOptions::default());
    let own = active.id.local_addr().unwrap().ip();
    peer.endpoint.device(0).unwrap().remove_address(own).unwrap();
    active.id.resolve_route(SOON).unwrap();
    until("a word", || active.id.state() == State::AddrResolved);
    let mut told = Vec::new();
    while let Some(event) = active.channel.wait(Duration::from_millis(100)) {
        told.push(event.kind);
    }
    let is_error = |kind: &CmEventKind| matches!(kind, CmEventKind::RouteError(ResolveError::NotOurs(gone)) if *gone == own);
    assert!(told.iter().any(is_error), "{told:?}");
}
