//! A peer that moves to another MAC while it is connected: its queue pair is turned, and what connection management has to say of
//! the connection goes there, too.

use crate::stranger::{OWN, Stranger, request};
use crate::support::{End, SERVER, SOON, at, until};
use rockhopper::Mac;
use rockhopper::cm::{CmEventKind, ConnParam, PortSpace};
use std::time::Instant;
use wire::mad::{Area, CmMad, CmMessage, CommId, Drep, Rtu};
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
    until("a turned queue pair", || passive.qp().query().unwrap().attr.path.unwrap().dmac == NEW);
    passive.id.disconnect().unwrap();
    let end = Instant::now() + SOON;
    let mut frames = Vec::new();
    let dmac = loop {
        assert!(Instant::now() < end, "no DREQ");
        peer.port.receive(&mut frames);
        let dmac = frames.drain(..).find_map(|bytes| {
            let frame =
                Frame::parse(&bytes, bytes.len()).ok().filter(|frame| frame.bth.dest_qpn == Qpn::GSI)?;
            let mad = CmMad::parse(&bytes[frame.payload_offset()..][..frame.payload_len()]).ok()?;
            matches!(mad.message, CmMessage::Dreq(_)).then_some(frame.dmac)
        });
        if let Some(dmac) = dmac {
            break dmac;
        }
        std::thread::yield_now();
    };
    assert_eq!(dmac, NEW);
    peer.say(Drep { local_id, remote_id, private_data });
    assert!(matches!(passive.next(), CmEventKind::Disconnected));
}
