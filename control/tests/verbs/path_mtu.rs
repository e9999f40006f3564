//! Path MTUs that do not go together after all: found, counted and told.

use crate::support::{Pair, SOON, devices, end, family};
use rockhopper::stats::PortStats;
use rockhopper::{ConnectOptions, Mtu, QpInfo, QpState, QpType, RawPort, RecvWr, RingPair, SendWr, WcStatus};
use std::net::Ipv4Addr;
use std::time::Instant;

/// `a` uses 4096, `b` 1024: each was told that the other does so, too.
fn at_odds() -> Pair {
    let (a, b) = devices(&RingPair::default());
    let (a, b) = (end(&a, QpType::Rc), end(&b, QpType::Rc));
    let of = |mtu| ConnectOptions { path_mtu: Some(mtu), ..ConnectOptions::default() };
    let (large, small) = (of(Mtu::Mtu4096), of(Mtu::Mtu1024));
    b.qp.connect(&QpInfo { mtu: 1024, ..a.qp.info(&large) }, &small).unwrap();
    a.qp.connect(&QpInfo { mtu: 4096, ..b.qp.info(&small) }, &large).unwrap();
    Pair { a, b }
}

#[test]
fn a_peer_that_sends_longer_packets_is_refused_and_told_of() {
    let pair = at_odds();
    pair.b.qp.post_recv(RecvWr::new(1).sge(pair.b.mr.sge(0..10_000))).unwrap();
    pair.a.qp.post_send(SendWr::send(1).sge(pair.a.mr.sge(0..5000))).unwrap();
    assert_eq!(pair.at_a().status, WcStatus::RemInvReqErr);
    let stats = pair.b.device.stats();
    assert_eq!(stats.roce["rx_over_path_mtu"], 1);
    assert_eq!((stats.qps[0].path_mtu, stats.qps[0].counters["rx_over_path_mtu"]), (1024, 1));
    let note = format!(
        "QP {:#x} got 1 packets longer than its path MTU 1024: the peer has a larger path MTU; connect both ends with the same",
        pair.b.qp.qpn().value()
    );
    assert_eq!(stats.notes, [note]);
    assert_eq!(pair.a.device.stats().notes, [""; 0]);
}

#[test]
fn a_peer_that_cuts_messages_smaller_is_refused_and_told_of() {
    let pair = at_odds();
    pair.b.qp.post_send(SendWr::write(1, pair.a.mr.remote().at(0)).sge(pair.b.mr.sge(0..5000))).unwrap();
    assert_eq!(pair.at_b().status, WcStatus::RemInvReqErr);
    let stats = pair.a.device.stats();
    assert!(stats.notes[0].contains("shorter than its path MTU 4096: the peer has a smaller"), "{stats:?}");
}

/// An IPv4 header, or what checks one: the sum over 16-bit words.
fn checksum(bytes: &[u8]) -> [u8; 2] {
    let sum: u32 = bytes.chunks(2).map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]]))).sum();
    (!((sum & 0xFFFF) + (sum >> 16)) as u16).to_be_bytes()
}

fn ipv4(protocol: u8, from: Ipv4Addr, to: Ipv4Addr, len: u16) -> Vec<u8> {
    let mut header = vec![0x45, 0];
    header.extend((20 + len).to_be_bytes());
    header.extend([0, 0, 0x40, 0, 60, protocol, 0, 0]);
    header.extend(from.octets());
    header.extend(to.octets());
    let sum = checksum(&header);
    header[10..12].copy_from_slice(&sum);
    header
}

/// "Fragmentation needed" from 10.82.72.77 to `us`, quoting a packet of 4000 bytes from `quoted` to QP 0x77 at 10.82.72.1.
fn fragmentation_needed(frame: &[u8], us: Ipv4Addr, quoted: Ipv4Addr) -> Vec<u8> {
    let mut icmp = vec![3, 4, 0, 0, 0, 0];
    icmp.extend(1300u16.to_be_bytes());
    icmp.extend(ipv4(17, quoted, Ipv4Addr::new(10, 82, 72, 1), 3980));
    icmp.extend([0xC0, 1, 0x12, 0xB7, 0x0F, 0x8C, 0, 0]);
    icmp.extend([4, 0x40, 0xFF, 0xFF, 0, 0, 0, 0x77, 0, 0, 0, 1]);
    let sum = checksum(&icmp);
    icmp[2..4].copy_from_slice(&sum);
    let ip = ipv4(1, Ipv4Addr::new(10, 82, 72, 77), us, icmp.len() as u16);
    [&frame[..14], &ip, &icmp].concat()
}

/// The notes of a port, when this counter has reached `count`.
fn after(device: &rockhopper::Device, counter: &str, count: u64) -> PortStats {
    let end = Instant::now() + SOON;
    loop {
        let stats = device.stats();
        if stats.network[counter] == count {
            return stats;
        }
        assert!(Instant::now() < end, "{:?}", stats.network);
        device.drive();
    }
}

#[test]
fn a_router_that_drops_long_packets_is_told_of_and_changes_nothing() {
    let (mut raw, endpoint) = RawPort::beside(&RingPair::default()).unwrap();
    let us = end(&endpoint.device(0).unwrap(), QpType::Rc);
    let device = &us.device;
    let mac = raw
        .resolve("10.82.72.2".parse().unwrap(), || {
            device.drive();
        })
        .unwrap();
    let peer = QpInfo { qpn: 0x77, gid: "10.82.72.1".parse().unwrap(), ..us.qp.info(&family(false)) };
    // The raw port answers for the peer's address.
    std::thread::scope(|threads| {
        let connected = threads.spawn(|| us.qp.connect(&peer, &family(false)));
        while !connected.is_finished() {
            raw.receive(&mut Vec::new());
        }
        connected.join().unwrap().unwrap();
    });
    let link = [&mac.0[..], &raw.mac().0, &[8, 0]].concat();
    let ours = Ipv4Addr::new(10, 82, 72, 2);
    let before = us.qp.query().unwrap();
    // Made up: it quotes a packet of another host.
    assert!(raw.send(&fragmentation_needed(&link, ours, Ipv4Addr::new(10, 82, 72, 3))));
    assert_eq!(after(device, "drop_icmp_too_big_not_ours", 1).notes, [""; 0]);
    assert!(raw.send(&fragmentation_needed(&link, ours, ours)));
    let stats = after(device, "icmp_packet_too_big", 1);
    let note = format!(
        "10.82.72.77 says that packets of QP {:#x} to 10.82.72.1 are too long (at most 1300 bytes of IP pass; said 1 times): \
         connect with a path MTU of 1024, or raise the MTU on the way",
        us.qp.qpn().value()
    );
    assert_eq!(stats.notes, [note]);
    let now = us.qp.query().unwrap();
    assert_eq!(now.attr.path_mtu, Mtu::Mtu4096);
    assert_eq!((format!("{:?}", now.attr), us.qp.state()), (format!("{:?}", before.attr), QpState::Rts));
    // The queue pair goes, the router's word stays.
    let device = device.clone();
    drop(us);
    assert!(device.stats().notes[0].contains("no queue pair is connected there now"));
}
