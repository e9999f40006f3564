//! A peer that dies in any state is reported within the time that was set, and nothing of it is left. A peer whose last word is lost
//! is none of these.

use crate::stranger::{OWN, Stranger, request};
use crate::support::{End, SERVER, SOON, at, counted, until};
use rockhopper::cm::{CmEventKind, CmOptions, ConnParam, PortSpace, State, Unreachable};
use rockhopper::{QpState, RecvWr};
use std::time::{Duration, Instant};
use wire::mad::{CmMessage, CommId, Dreq, RejectReason, Rtu};
use wire::{Psn, Qpn};

const PORT: u16 = 7471;
const QPN: u32 = 0x99;

/// The stranger has asked, and the server accepted.
fn accepted() -> (Stranger, End, End, wire::mad::Rep) {
    accepted_with(&CmOptions::default())
}

/// The same by a listener with these options.
fn accepted_with(options: &CmOptions) -> (Stranger, End, End, wire::mad::Rep) {
    let mut peer = Stranger::new();
    let listener = End::listening(&peer.endpoint, PortSpace::Tcp, at(SERVER, PORT));
    listener.id.set_options(options.clone()).unwrap();
    peer.say(request(0x55, QPN, PORT, OWN.parse().unwrap()));
    let (passive, _) = End::requested(&listener);
    passive.qp().post_recv(RecvWr::new(3).sge(passive.mr().sge(0..64))).unwrap();
    passive.id.accept(&ConnParam::default()).unwrap();
    let rep = peer.expect_rep();
    assert_eq!((rep.remote_id, rep.local_qpn), (CommId(0x55), passive.qp().qpn()));
    (peer, listener, passive, rep)
}

fn rtu(rep: &wire::mad::Rep) -> Rtu {
    Rtu { local_id: CommId(0x55), remote_id: rep.local_id, private_data: wire::mad::Area::EMPTY }
}

#[test]
fn after_its_request_before_our_answer() {
    let mut peer = Stranger::new();
    let listener = End::listening(&peer.endpoint, PortSpace::Tcp, at(SERVER, PORT));
    peer.say(request(0x55, QPN, PORT, OWN.parse().unwrap()));
    let (passive, _) = End::requested(&listener);
    drop(passive);
    let reason = peer.expect("REJ", |message| match message {
        CmMessage::Rej(rej) => Some(rej.reason),
        _ => None,
    });
    assert_eq!(reason, RejectReason::CONSUMER_DEFINED);
    until("an empty book", || counted(&peer.endpoint, "cm_ids") == 0);
}

/// The REP is repeated, and then the peer is given up.
#[test]
fn after_our_answer() {
    let (mut peer, _listener, passive, _) = accepted();
    let begin = Instant::now();
    peer.expect_rep();
    assert!(matches!(passive.next(), CmEventKind::Unreachable(Unreachable::Timeout)));
    assert!(begin.elapsed() < Duration::from_secs(5), "{:?}", begin.elapsed());
    assert_eq!((passive.id.state(), passive.qp().state()), (State::Closed, QpState::Err));
    drop(passive);
    until("an empty book", || counted(&peer.endpoint, "cm_ids") == 0);
}

/// Nobody answers the DREQ: it ends all the same.
#[test]
fn while_connected() {
    let (mut peer, _listener, passive, rep) = accepted();
    peer.say(rtu(&rep));
    passive.expect_established();
    let begin = Instant::now();
    passive.id.disconnect().unwrap();
    assert_eq!(passive.qp().state(), QpState::Err, "at once");
    assert!(matches!(passive.next(), CmEventKind::Disconnected));
    assert!(begin.elapsed() < Duration::from_secs(5), "{:?}", begin.elapsed());
    assert!(matches!(passive.next(), CmEventKind::TimewaitExit));
}

/// `retries` and `retransmit` hold for every message of the connection: the reply and the
/// DREQ, too, and also when they are set in between.
#[test]
fn how_long_it_is_waited_for_is_the_identifiers_own() {
    let once = |ms| CmOptions { retransmit: Duration::from_millis(ms), retries: 0, ..CmOptions::default() };
    let (peer, _listener, passive, _) = accepted_with(&once(400));
    let begin = Instant::now();
    assert!(matches!(passive.next(), CmEventKind::Unreachable(Unreachable::Timeout)));
    assert!(begin.elapsed() >= Duration::from_millis(350), "{:?}", begin.elapsed());
    assert_eq!(counted(&peer.endpoint, "cm_tx_rep"), 1);

    let (mut peer, _listener, passive, rep) = accepted();
    peer.say(rtu(&rep));
    passive.expect_established();
    passive.id.set_options(once(400)).unwrap();
    let begin = Instant::now();
    passive.id.disconnect().unwrap();
    assert!(matches!(passive.next(), CmEventKind::Disconnected));
    assert!(begin.elapsed() >= Duration::from_millis(400), "{:?}", begin.elapsed());
    assert_eq!(counted(&peer.endpoint, "cm_tx_dreq"), 1);
}

/// rocev2 facts, CM 11 and 14: a DREQ is answered, as often as it comes; one for another queue pair is not.
#[test]
fn it_says_good_bye() {
    let (mut peer, _listener, passive, rep) = accepted();
    peer.say(rtu(&rep));
    passive.expect_established();
    let dreq = |qpn| Dreq {
        local_id: CommId(0x55),
        remote_id: rep.local_id,
        remote_qpn: qpn,
        private_data: wire::mad::Area::EMPTY,
    };
    peer.say(dreq(Qpn::new(0x1234)));
    until("the wrong one", || counted(&peer.endpoint, "cm_drop_wrong_qpn") == 1);
    assert_eq!(passive.id.state(), State::Connected);
    for _ in 0..2 {
        peer.say(dreq(rep.local_qpn));
        peer.expect("DREP", |message| matches!(message, CmMessage::Drep(_)).then_some(()));
    }
    assert!(matches!(passive.next(), CmEventKind::Disconnected));
    assert_eq!(passive.qp().state(), QpState::Err);
}

/// rocev2 facts, CM 11: the RTU is lost, and data comes. The data is received, and the connection established.
#[test]
fn its_last_word_is_lost_and_data_establishes() {
    let (mut peer, _listener, passive, rep) = accepted();
    // What the REQ's starting PSN is to our send queue, the REP's is to the peer's.
    let frame = peer.data(rep.local_qpn, rep.starting_psn, b"first");
    assert!(peer.port.send(&frame));
    let received = passive.cq().wait(SOON).unwrap();
    assert!(received.is_success() && received.byte_len == 5, "{received:?}");
    passive.expect_established();
    assert_eq!(passive.id.state(), State::Connected);
    assert_eq!(passive.qp().query().unwrap().attr.sq_psn, Psn::new(0x100));
}

/// rocev2 facts, CM 5: addresses that the request did not come with, or that no peer can have, are not believed.
#[test]
fn it_lies_about_its_addresses() {
    let mut peer = Stranger::new();
    let listener = End::listening(&peer.endpoint, PortSpace::Tcp, at(SERVER, PORT));
    let own = OWN.parse().unwrap();
    let header = |source: &str, destination: &str| wire::mad::IpAddressing {
        source_port: 1,
        source: source.parse().unwrap(),
        destination: destination.parse().unwrap(),
    };
    let wrong = [
        header(OWN, "10.82.72.9"),
        header("127.0.0.1", SERVER),
        header("0.0.0.0", SERVER),
        header("224.0.0.5", SERVER),
        header("255.255.255.255", SERVER),
    ];
    let mut areas: Vec<Vec<u8>> = wrong.iter().map(|header| header.to_bytes().unwrap().to_vec()).collect();
    // Another version of the header, and none.
    areas.push([&[0x10][..], &header(OWN, SERVER).to_bytes().unwrap()[1..]].concat());
    areas.push(Vec::new());
    for (n, area) in areas.iter().enumerate() {
        let private_data = wire::mad::Area::new(area).unwrap();
        let id = 0x60 + n as u32;
        peer.say(wire::mad::Req { private_data, ..request(id, QPN + n as u32, PORT, own) });
        let reason = peer.expect("REJ", |message| match message {
            CmMessage::Rej(rej) if rej.remote_id == CommId(id) => Some(rej.reason),
            _ => None,
        });
        assert_eq!(reason, RejectReason::CONSUMER_DEFINED, "{n}");
    }
    assert!(listener.channel.poll().is_none(), "nobody was bothered");
}

/// rocev2 facts, CM 1: answers go where the question came from. Nobody is asked where that is: this peer would not answer.
#[test]
fn it_answers_no_neighbour_discovery_and_is_answered_all_the_same() {
    let mut peer = Stranger::new();
    let quiet: std::net::IpAddr = "10.82.72.66".parse().unwrap();
    let around = crate::stranger::Around { source: quiet, ..Default::default() };
    let ask = |peer: &mut Stranger, id: u32, port: u16| {
        let mad = wire::mad::CmMad::new(1, request(id, QPN + id, port, quiet)).to_bytes();
        let frame = peer.frame(&mad, &around);
        assert!(peer.port.send(&frame));
    };
    ask(&mut peer, 0x70, 9);
    let reason = peer.expect("REJ", |message| match message {
        CmMessage::Rej(rej) => Some(rej.reason),
        _ => None,
    });
    assert_eq!(reason, RejectReason::INVALID_SERVICE_ID);

    let listener = End::listening(&peer.endpoint, PortSpace::Tcp, at(SERVER, PORT));
    ask(&mut peer, 0x71, PORT);
    let (passive, _) = End::requested(&listener);
    passive.id.accept(&ConnParam::default()).unwrap();
    let first = peer.expect_rep();
    let again = peer.expect_rep();
    assert_eq!(first, again, "repeated, long after the question");
    assert_eq!(passive.qp().query().unwrap().attr.path.unwrap().dmac, peer.port.mac());
}
