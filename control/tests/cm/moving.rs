//! A peer that moves to another MAC, while it is connected or on the way there: its queue pair sends to the new one, and what connection
//! management has to say of the connection goes there, too.

use crate::stranger::{OWN, Stranger, reply, request};
use crate::support::{End, SERVER, SOON, at, until};
use rockhopper::cm::{CmEventKind, CmOptions, ConnParam, PortSpace};
use rockhopper::{Mac, Qp};
use std::time::Instant;
use wire::mad::{Area, CmMad, CmMessage, CommId, Drep, Req, Rtu};
use wire::{Frame, Qpn};

const PORT: u16 = 7471;
const NEW: Mac = Mac([2, 0, 0, 0, 0x77, 1]);

/// The peer asks for the server's MAC, from another one of its own.
fn question(from: Mac) -> Vec<u8> {
    let mut frame = vec![0xFF; 6];
    frame.extend(from.0);
    frame.extend([0x08, 0x06, 0, 1, 0x08, 0, 6, 4, 0, 1]);
    frame.extend(from.0);
    frame.extend([10, 82, 72, 1]);
    frame.extend([0; 6]);
    frame.extend([10, 82, 72, 2]);
    frame
}

impl Stranger {
    /// The next message that is wanted, and to which MAC it was sent.
    #[track_caller]
    fn sent_to<T>(&mut self, what: &str, wanted: impl Fn(CmMessage) -> Option<T>) -> (T, Mac) {
        let end = Instant::now() + SOON;
        let mut frames = Vec::new();
        while Instant::now() < end {
            self.port.receive(&mut frames);
            let found = frames.drain(..).find_map(|bytes| {
                let frame = Frame::parse(&bytes, bytes.len()).ok()?;
                let payload = &bytes[frame.payload_offset()..][..frame.payload_len()];
                let mad = (frame.bth().dest_qpn == Qpn::GSI).then(|| CmMad::parse(payload).ok())??;
                Some((wanted(mad.message)?, frame.dmac))
            });
            if let Some(found) = found {
                return found;
            }
            std::thread::yield_now();
        }
        panic!("no {what} in {SOON:?}");
    }

    /// Moves, and waits until the endpoint knows.
    fn moves(&mut self) {
        assert!(self.port.send(&question(NEW)));
        let device = self.endpoint.device(0).unwrap();
        let own = OWN.parse().unwrap();
        until("a new MAC", || device.resolve(own, None).is_ok_and(|way| way.dmac == NEW));
    }
}

fn sent_to(qp: &Qp) -> Mac {
    qp.query().unwrap().attr.path.unwrap().dmac
}

fn req(message: CmMessage) -> Option<Req> {
    match message {
        CmMessage::Req(req) => Some(req),
        _ => None,
    }
}

#[test]
fn a_request_finds_a_peer_that_has_moved_since_its_address_was_resolved() {
    let mut peer = Stranger::new();
    let active = peer.asked_by_us(&CmOptions::default());
    peer.moves();
    active.id.connect(&ConnParam::default()).unwrap();
    let (req, dmac) = peer.sent_to("REQ", req);
    assert_eq!(dmac, NEW);
    peer.say(reply(&req));
    active.expect_established();
    assert_eq!((sent_to(&active.qp()), active.id.path().unwrap().addressing.dmac), (NEW, NEW));
}

#[test]
fn a_queue_pair_finds_a_peer_that_has_moved_since_it_was_asked() {
    let mut peer = Stranger::new();
    let active = peer.asked_by_us(&CmOptions::default());
    active.id.connect(&ConnParam::default()).unwrap();
    let (req, dmac) = peer.sent_to("REQ", req);
    assert_eq!(dmac, peer.port.mac());
    peer.moves();
    until("a turned identifier", || active.id.path().unwrap().addressing.dmac == NEW);
    peer.say(reply(&req));
    active.expect_established();
    assert_eq!(sent_to(&active.qp()), NEW);
}

#[test]
fn an_answer_and_its_queue_pair_find_a_peer_that_has_moved_since_it_asked() {
    let mut peer = Stranger::new();
    let listener = End::listening(&peer.endpoint, PortSpace::Tcp, at(SERVER, PORT));
    peer.say(request(0x55, 0x99, PORT, OWN.parse().unwrap()));
    let (passive, _) = End::requested(&listener);
    peer.moves();
    until("a turned identifier", || passive.id.path().unwrap().addressing.dmac == NEW);
    passive.id.accept(&ConnParam::default()).unwrap();
    let rep = |message| matches!(message, CmMessage::Rep(_)).then_some(());
    assert_eq!((peer.sent_to("REP", rep).1, sent_to(&passive.qp())), (NEW, NEW));
}

#[test]
fn a_disconnect_finds_a_peer_that_has_moved() {
    let mut peer = Stranger::new();
    let listener = End::listening(&peer.endpoint, PortSpace::Tcp, at(SERVER, PORT));
    peer.say(request(0x55, 0x99, PORT, OWN.parse().unwrap()));
    let (passive, _) = End::requested(&listener);
    passive.id.accept(&ConnParam::default()).unwrap();
    let rep = peer.expect_rep();
    let (local_id, remote_id, private_data) = (CommId(0x55), rep.local_id, Area::EMPTY);
    peer.say(Rtu { local_id, remote_id, private_data });
    passive.expect_established();
    assert!(peer.port.send(&question(NEW)));
    until("a turned queue pair", || sent_to(&passive.qp()) == NEW);
    passive.id.disconnect().unwrap();
    let dmac = peer.sent_to("DREQ", |message| matches!(message, CmMessage::Dreq(_)).then_some(())).1;
    assert_eq!(dmac, NEW);
    peer.say(Drep { local_id, remote_id, private_data });
    assert!(matches!(passive.next(), CmEventKind::Disconnected));
}
