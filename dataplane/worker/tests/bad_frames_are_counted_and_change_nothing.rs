//! Every way to bend a frame: counted by its name, nothing else happens. What is not RoCE goes to the control thread.

mod common;

use common::junk::{bent, write_by};
use common::qp::{PSN, TestMr, TestQp};
use common::raw::{WRITE_ONLY, roce, way};
use common::{Driven, Endpoint, Place, Shape, Side, settle, sides};
use engine::{DropReason, QpType};
use wire::{Bth, ExtHeaders, FrameError, Gid, Mac, Mtu, Psn, Qpn, Reth};
use worker::{AddressSet, Command, Drop};

const QPN: Qpn = Qpn::new(0x77);

/// A peer by hand and an endpoint with a connected QP and a region.
fn rig(name: &str) -> (Side, Driven, TestQp, TestMr) {
    let shape = Shape::default();
    let (peer, side) = sides(name, &shape);
    let driven = Endpoint::new(side, &shape).driven();
    let qp = driven.end.create_qp(0, QPN, QpType::Rc);
    driven.end.connect(&qp, Qpn::new(0x99), Mtu::Mtu1024);
    let mr = driven.end.register(0x1234, 4096);
    (peer, driven, qp, mr)
}

/// A WRITE of `payload` that the QP would execute.
fn write(from: Place, to: Place, mr: &TestMr, payload: &[u8]) -> Vec<u8> {
    write_by(&way(from, to), QPN, mr, payload)
}

#[test]
fn every_frame_error_is_counted_by_its_name() {
    let (mut peer, driven, qp, mr) = rig("bent");
    // At first nothing is known of the peer; then it has sent what was right, and the rest differs from that in one thing.
    for (round, byte) in [(1, 7), (2, 8)] {
        let before = driven.end.query(0, QPN);
        for &reason in FrameError::ALL {
            let frame = bent(reason, peer.at, peer.peer, QPN, &mr, &[9; 64]);
            peer.send(0, std::slice::from_ref(&frame));
            settle(&[&driven]);
            let counters = driven.end.counters(0);
            assert_eq!(counters.frame_errors(reason), round, "{reason:?}: {}", driven.end.account());
            assert!(counters.iter().any(|(name, value)| name == reason.name() && value == round));
            let slow = driven.end.link.take_slow().map(|mbuf| common::raw::bytes(&mbuf));
            assert_eq!(slow, (!reason.is_roce()).then_some(frame), "{reason:?}");
        }
        let counters = driven.end.counters(0);
        assert!(FrameError::ALL.iter().all(|&reason| counters.frame_errors(reason) == round));
        let sent = (counters.traffic.slow, counters.traffic.tx_frames);
        assert_eq!(sent, (3 * round, round - 1), "nothing is answered");
        let after = driven.end.query(0, QPN);
        assert_eq!((after.attr.state, &after.counters), (before.attr.state, &before.counters));
        assert_ne!(mr.bytes(0, 64), [9; 64]);
        assert!(qp.receives.is_empty() && qp.sends.is_empty() && driven.end.events.poll().is_none());

        // The QP waits where it waited.
        let psn = Psn::new(PSN + round as u32 - 1);
        let bth = Bth { ack_req: true, ..Bth::new(WRITE_ONLY, QPN, psn) };
        let reth = Reth { va: mr.remote(0).addr, rkey: mr.remote(0).rkey, dma_len: 64 };
        let good = roce(&way(peer.at, peer.peer), &bth, &ExtHeaders::EMPTY.with(reth), &[byte; 64]);
        peer.send(0, &[good]);
        settle(&[&driven]);
        assert_eq!(mr.bytes(0, 64), [byte; 64]);
        assert_eq!(peer.receive(0).len(), 1, "one ACK");
    }
}

#[test]
fn frames_for_other_addresses_are_counted() {
    let (mut peer, driven, _qp, mr) = rig("others");
    let (me, you) = (peer.at, peer.peer);
    let other_gid = Place { gid: Gid::from_v4([10, 0, 0, 3]), ..you };
    let other_mac = Place { mac: Mac([2, 0, 0, 0, 0, 9]), ..you };
    for (count, to) in [(1, other_gid), (2, other_mac)] {
        let frame = write(me, to, &mr, &[7; 64]);
        peer.send(0, &[frame]);
        settle(&[&driven]);
        assert_eq!(driven.end.counters(0).dropped(Drop::NotOurAddress), count);
    }
    assert_eq!(mr.bytes(0, 64), [0; 64]);
}

/// A tag with VLAN 0 carries a priority only: untagged ports take it, ports in a VLAN do not.
#[test]
fn frames_of_another_vlan_are_counted() {
    let (mut peer, driven, _qp, mr) = rig("vlans");
    let tagged = |vid| {
        let way = wire::Addressing { vlan: Some(wire::Vlan::new(3, vid)), ..way(peer.at, peer.peer) };
        write_by(&way, QPN, &mr, &[7; 64])
    };
    let untagged = write(peer.at, peer.peer, &mr, &[7; 64]);
    let (tagged_0, tagged_6, tagged_7) = (tagged(0), tagged(6), tagged(7));
    for (vlan, frame, dropped) in [
        (0, &tagged_7, 1),
        (7, &untagged, 2),
        (7, &tagged_0, 3),
        (7, &tagged_6, 4),
        (7, &tagged_7, 4),
        (0, &untagged, 4),
        (0, &tagged_0, 4),
        // What was taken a moment ago is not any more.
        (7, &untagged, 5),
    ] {
        let mut addresses = AddressSet::new(&[peer.peer.mac], &[peer.peer.gid]).unwrap();
        addresses.own.vlan = vlan;
        let command = Command::SetAddresses { lane: 0, addresses: Box::new(addresses) };
        common::done(driven.end.handles[0].call(command));
        peer.send(0, std::slice::from_ref(frame));
        settle(&[&driven]);
        assert_eq!(driven.end.counters(0).dropped(Drop::OtherVlan), dropped, "VLAN {vlan}");
    }
    assert_eq!(peer.receive(0).len(), 2, "what is of the QP's VLAN, which is none, was answered");
    let of_qp = driven.end.query(0, QPN).counters;
    assert_eq!(of_qp.dropped(DropReason::WrongAddress), 1, "in VLAN 7 the same addresses are others'");
}

#[test]
fn a_frame_in_more_pieces_than_fit_is_counted() {
    let (mut peer, driven, _qp, mr) = rig("pieces");
    let frame = write(peer.at, peer.peer, &mr, &[7; 64]);
    let pieces: Vec<&[u8]> = frame.chunks(1).collect();
    let mbuf = common::raw::packet(&peer.pool, &pieces);
    peer.send_mbuf(0, mbuf);
    settle(&[&driven]);
    assert_eq!(driven.end.counters(0).dropped(Drop::TooManySegments), 1);
    assert_eq!(mr.bytes(0, 64), [0; 64]);
}

/// Frames may come in pieces cut anywhere: headers and payload are found all the same.
#[test]
fn a_frame_in_pieces_is_executed() {
    let (mut peer, driven, _qp, mr) = rig("cut");
    let payload: Vec<u8> = (0..1000).map(|at| at as u8 ^ 0x5A).collect();
    let cuts: [&[usize]; 6] =
        [&[1], &[13, 14, 40], &[42, 50, 54, 69, 70, 71], &[127], &[128, 129], &[500, 1073]];
    for (n, cuts) in cuts.into_iter().enumerate() {
        // The next PSN each time.
        let bth = Bth { ack_req: true, ..Bth::new(WRITE_ONLY, QPN, Psn::new(PSN + n as u32)) };
        let remote = mr.remote(n);
        let reth = Reth { va: remote.addr, rkey: remote.rkey, dma_len: payload.len() as u32 };
        let frame = roce(&way(peer.at, peer.peer), &bth, &ExtHeaders::EMPTY.with(reth), &payload);
        let mut pieces = Vec::new();
        let mut begin = 0;
        for &cut in cuts.iter().chain([&frame.len()]) {
            pieces.push(&frame[begin..cut]);
            begin = cut;
        }
        let mbuf = common::raw::packet(&peer.pool, &pieces);
        peer.send_mbuf(0, mbuf);
        settle(&[&driven]);
        assert_eq!(mr.bytes(n, payload.len()), payload, "cut at {cuts:?}: {}", driven.end.account());
    }
}
