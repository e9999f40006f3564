//! Wishes beyond a driver's offer are reduced and reported, never an error; what is offered is used.

mod common;

use std::slice::from_ref;

use common::{bytes, eal, frame, ip, open, own_network, packet, pool, queue, receive, send};
use dpdk::ring::{RingConfig, ring_pair};
use dpdk::vdev::AF_PACKET_JUMBO_DATA_ROOM;
use dpdk::{Port, PortConfig, PortError, Vdev};

#[test]
fn a_port_takes_what_its_driver_offers() {
    own_network();
    let eal = eal();
    let pool = pool(&eal, 8191, 2048);
    let everything = PortConfig {
        queues: 64,
        rx_descriptors: 60_000,
        tx_descriptors: 60_000,
        mtu: u16::MAX,
        vlan_strip: true,
        promiscuous: true,
        ..PortConfig::default()
    };

    let null = open(&eal, &Vdev::null("0").unwrap(), &everything, &pool);
    assert_eq!((null.negotiated().mtu, null.negotiated().vlan_strip), (2030, false), "one buffer, no chains");
    assert!(null.negotiated().to_string().contains("MTU 2030 (asked 65535)"), "{}", null.negotiated());

    let (a, b) = ring_pair(&eal, "r", &RingConfig { queues: 3, ..RingConfig::default() }).unwrap();
    for id in [a, b] {
        let port = Port::open(&eal, id, &everything, from_ref(&pool)).unwrap();
        assert_eq!(port.negotiated().queues, 3);
        assert!(port.negotiated().to_string().contains("3 queues (asked 64)"), "{}", port.negotiated());
        // The driver has no function for these: an error says so and nothing else happens.
        let refused = port.set_mtu(9000).unwrap_err();
        assert!(
            matches!(refused, PortError::Driver { .. }) && refused.to_string().contains("MTU"),
            "{refused}"
        );
        assert!(port.set_multicast(&[[0x33, 0x33, 0, 0, 0, 1]]).is_err());
    }

    multi_queue_tap(&eal, &pool);

    // A packet socket with two queues, and one that has fewer than wished.
    ip("link add rh-a type veth peer name rh-b");
    ip("link set rh-a up");
    ip("link set rh-b up");
    let large = common::pool(&eal, 2047, AF_PACKET_JUMBO_DATA_ROOM);
    let a = open(&eal, &Vdev::af_packet("a", "rh-a", 2, true).unwrap(), &everything, &large);
    assert_eq!((a.negotiated().queues, a.negotiated().mtu), (2, 1500), "{}", a.negotiated());
    assert!(a.negotiated().promiscuous, "{}", a.negotiated());
    a.set_promiscuous(false).unwrap();
    let b = open(&eal, &Vdev::af_packet("b", "rh-b", 1, true).unwrap(), &everything, &large);
    assert_eq!(b.negotiated().queues, 1);
}

/// A tap with two queues: what it sends on either comes out of one interface, and its settings work.
fn multi_queue_tap(eal: &dpdk::Eal, pool: &std::sync::Arc<dpdk::Mempool>) {
    let config = PortConfig { queues: 2, promiscuous: true, ..PortConfig::default() };
    let mut tap = open(eal, &Vdev::tap("t", "rh-tap", None).unwrap(), &config, pool);
    assert_eq!(tap.negotiated().queues, 2, "{}", tap.negotiated());
    assert!(tap.negotiated().promiscuous && tap.link().unwrap().up, "{}", tap.negotiated());
    assert_eq!(tap.set_mtu(1400).unwrap(), 1400);
    assert_eq!(tap.mtu().unwrap(), 1400);
    tap.set_multicast(&[[0x33, 0x33, 0, 0, 0, 1]]).unwrap();

    let mut kernel = open(eal, &Vdev::pcap_interface("k", "rh-tap").unwrap(), &PortConfig::default(), pool);
    assert_eq!(kernel.negotiated().mtu, 1400);
    let (mut kernel_rx, _kernel_tx) = queue(&mut kernel);
    for (number, (rx, tx)) in tap.take_queues().iter_mut().enumerate() {
        assert_eq!((usize::from(rx.index()), tx.port()), (number, tap.id()));
        let sent = frame(200, number as u8);
        send(tx, packet(pool, &sent));
        assert_eq!(bytes(&receive(&mut kernel_rx).expect("to the kernel")), sent);
    }
}
