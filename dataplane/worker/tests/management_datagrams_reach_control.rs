//! Datagrams for queue pair 1 go to the control thread by a ring of their own: whole, bounded, and beside what else waits for it.

mod common;

use common::raw::{UC_SEND_ONLY, UD_SEND_ONLY, arp, roce, way};
use common::{Driven, Endpoint, Place, Shape, Side, settle, sides};
use engine::DropReason;
use std::net::Ipv4Addr;
use wire::{Addressing, Bth, Deth, ExtHeaders, Psn, QKey, Qpn, Vlan};
use worker::{AddressSet, Command, Drop, LinkConfig, MAD_LEN};

fn rig(name: &str, link: LinkConfig) -> (Side, Driven) {
    let shape = Shape { link, ..Shape::default() };
    let (peer, side) = sides(name, &shape);
    (peer, Endpoint::new(side, &shape).driven())
}

fn datagram(way: &Addressing, payload: &[u8]) -> Vec<u8> {
    let deth = Deth { qkey: QKey::GSI, src_qpn: Qpn::GSI };
    roce(way, &Bth::new(UD_SEND_ONLY, Qpn::GSI, Psn::new(5)), &ExtHeaders::EMPTY.with(deth), payload)
}

fn mad(seed: u8) -> [u8; MAD_LEN] {
    std::array::from_fn(|at| at as u8 ^ seed)
}

#[test]
fn a_datagram_arrives_whole_with_its_headers() {
    let (mut peer, driven) = rig("mad", LinkConfig::default());
    let frame = datagram(&way(peer.at, peer.peer), &mad(3));
    peer.send(0, &[frame]);
    settle(&[&driven]);
    let got = driven.end.link.take_mad().expect("it came");
    assert_eq!(got.mad, mad(3));
    assert_eq!((got.deth.qkey, got.deth.src_qpn), (QKey::GSI, Qpn::GSI));
    assert_eq!((got.frame.src, got.frame.dst, got.vlan), (peer.at.gid, peer.peer.gid, None));
    assert!(driven.end.link.take_mad().is_none());
    assert_eq!(driven.end.counters(0).traffic.mads, 1);
}

#[test]
fn its_vlan_is_told() {
    let (mut peer, driven) = rig("madvlan", LinkConfig::default());
    let mut addresses = AddressSet::new(&[peer.peer.mac], &[peer.peer.gid]).unwrap();
    addresses.own.vlan = 7;
    common::done(driven.end.handles[0].call(Command::SetAddresses { lane: 0, addresses: addresses.into() }));
    let tagged = Addressing { vlan: Some(Vlan::new(3, 7)), ..way(peer.at, peer.peer) };
    let (tagged, bare) = (datagram(&tagged, &mad(1)), datagram(&way(peer.at, peer.peer), &mad(2)));
    peer.send(0, &[tagged, bare]);
    settle(&[&driven]);
    assert_eq!(driven.end.link.take_mad().and_then(|got| got.vlan), Some(Vlan::new(3, 7)));
    assert!(driven.end.link.take_mad().is_none(), "the other is of no VLAN");
    assert_eq!(driven.end.counters(0).dropped(Drop::OtherVlan), 1);
}

#[test]
fn what_is_no_mad_is_counted() {
    let (mut peer, driven) = rig("nomad", LinkConfig::default());
    for len in [0, 1, MAD_LEN - 1, MAD_LEN + 1, 1024] {
        let frame = datagram(&way(peer.at, peer.peer), &vec![7; len]);
        peer.send(0, &[frame]);
    }
    let uc = roce(
        &way(peer.at, peer.peer),
        &Bth::new(UC_SEND_ONLY, Qpn::GSI, Psn::new(5)),
        &ExtHeaders::EMPTY,
        &mad(1),
    );
    peer.send(0, &[uc]);
    settle(&[&driven]);
    let counters = driven.end.counters(0);
    assert_eq!((counters.dropped(Drop::MadLength), counters.traffic.mads), (5, 0));
    assert_eq!(counters.engine.dropped(DropReason::UnknownQp), 1, "another service");
    assert!(driven.end.link.mads_is_empty());
}

/// What floods queue pair 1 finds its ring full, or its share used up; ARP passes by, and other sources are heard.
#[test]
fn a_flood_is_bounded_and_leaves_the_rest_alone() {
    let link = LinkConfig { mads: 1500, slow: 4, ..LinkConfig::default() };
    let (mut peer, driven) = rig("madflood", link);
    let stranger = |n: u8| Place { gid: wire::Gid::from_v4([10, 0, 1, n]), ..peer.at };
    let sources: Vec<Place> = (0..3).map(stranger).collect();
    let (mut sent, to) = (0, peer.peer);
    // Faster than its share, however slow this machine is at the moment.
    while driven.end.counters(0).dropped(Drop::MadRate) == 0 {
        assert!(sent < 1_000_000, "{}", driven.end.account());
        let burst: Vec<Vec<u8>> = (0..500).map(|_| datagram(&way(sources[0], to), &mad(1))).collect();
        peer.send(0, &burst);
        sent += burst.len() as u64;
        settle(&[&driven]);
    }
    let counters = driven.end.counters(0);
    let dropped = counters.dropped(Drop::MadRate) + counters.dropped(Drop::MadRingFull);
    assert_eq!(dropped + counters.traffic.mads, sent, "each is counted once");

    while driven.end.link.take_mad().is_some() {}
    peer.send(0, &[datagram(&way(sources[1], to), &mad(2)), arp(peer.at, Ipv4Addr::new(10, 0, 0, 2))]);
    settle(&[&driven]);
    let heard: Vec<_> = std::iter::from_fn(|| driven.end.link.take_mad()).map(|got| got.frame.src).collect();
    assert!(heard.contains(&sources[1].gid), "{heard:?}");
    assert!(driven.end.link.take_slow().is_some(), "ARP has a ring of its own");
}

#[test]
fn a_full_ring_is_counted() {
    let (mut peer, driven) = rig("madfull", LinkConfig { mads: 4, ..LinkConfig::default() });
    let frames: Vec<Vec<u8>> = (0..6).map(|n| datagram(&way(peer.at, peer.peer), &mad(n))).collect();
    peer.send(0, &frames);
    settle(&[&driven]);
    let counters = driven.end.counters(0);
    assert_eq!((counters.traffic.mads, counters.dropped(Drop::MadRingFull)), (4, 2));
    let got: Vec<u8> = std::iter::from_fn(|| driven.end.link.take_mad()).map(|got| got.mad[0]).collect();
    assert_eq!(got, [0, 1, 2, 3], "in order");
}
