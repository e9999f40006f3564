//! Two ports joined by rings: frames of all sizes, in order, on every queue, without losing a buffer.

mod common;

use std::slice::from_ref;

use common::{burst_without_packets, bytes, eal, frame, packet, pool, receive, send};
use dpdk::port::ports;
use dpdk::ring::{RingConfig, ring_pair};
use dpdk::{MbufBurst, Port, PortConfig};

#[test]
fn ring_pair_passes_traffic() {
    let eal = eal();
    let pool = pool(&eal, 1023, 2048);
    let rings = RingConfig { queues: 2, size: 8, socket: None };
    let (a, b) = ring_pair(&eal, "pair", &rings).unwrap();
    let names: Vec<String> = ports(&eal).into_iter().map(|port| port.name).collect();
    assert_eq!(names, ["net_ring_pair_a", "net_ring_pair_b"]);

    let config = PortConfig { queues: 2, mtu: 9000, ..PortConfig::default() };
    let mut a = Port::open(&eal, a, &config, from_ref(&pool)).unwrap();
    let mut b = Port::open(&eal, b, &config, from_ref(&pool)).unwrap();
    assert_eq!((a.negotiated().driver.as_str(), a.negotiated().queues), ("net_ring", 2));
    assert_eq!(a.negotiated().mtu, 9000, "{}", a.negotiated());
    assert!(a.negotiated().tx_multi_segs);
    assert!(a.link().unwrap().up);

    let mut a_queues = a.take_queues();
    let mut b_queues = b.take_queues();
    assert_eq!((a_queues.len(), b_queues.len(), a.take_queues().len()), (2, 2, 0));
    for queue in 0..2 {
        let (a_rx, a_tx) = &mut a_queues[queue];
        let (b_rx, b_tx) = &mut b_queues[queue];
        burst_without_packets(a_rx, a_tx, &pool);
        for len in [64, 65, 1500, 2048, 2049, 4200, 9018] {
            let sent = frame(len, queue as u8);
            send(a_tx, packet(&pool, &sent));
            let got = receive(b_rx).expect("a to b");
            assert_eq!(usize::from(got.nb_segs()), len.div_ceil(2048));
            assert_eq!(bytes(&got), sent);
            // And back, the same buffers.
            send(b_tx, got);
            assert_eq!(bytes(&receive(a_rx).expect("b to a")), sent);
        }
    }

    // What does not fit into the ring stays with the caller, in order.
    let (_, a_tx) = &mut a_queues[0];
    let (b_rx, _) = &mut b_queues[0];
    let mut burst = MbufBurst::<32>::new();
    for seed in 0..12 {
        burst.push(packet(&pool, &frame(64, seed))).unwrap();
    }
    assert_eq!(a_tx.burst(&mut burst), 8);
    let left: Vec<Vec<u8>> = burst.as_slice().iter().map(bytes).collect();
    assert_eq!(left, (8..12).map(|seed| frame(64, seed)).collect::<Vec<_>>());
    assert_eq!(a_tx.burst(&mut burst), 0);
    let mut received = MbufBurst::<32>::new();
    assert_eq!(b_rx.burst(&mut received), 8);
    assert_eq!(a_tx.burst(&mut burst), 4);
    assert!(burst.is_empty());
    assert_eq!(b_rx.burst(&mut received), 4);
    let all: Vec<Vec<u8>> = received.drain().map(|mbuf| bytes(&mbuf)).collect();
    assert_eq!(all, (0..12).map(|seed| frame(64, seed)).collect::<Vec<_>>());

    let stats = b.stats().unwrap();
    assert_eq!((stats.rx_packets, stats.tx_packets), (14 + 12, 14));
    assert!(b.xstats().unwrap().contains(&("rx_good_packets".to_owned(), 26)));

    // Packets left in the rings come home when both ports are closed, and the ports are gone.
    send(&mut a_queues[1].1, packet(&pool, &frame(64, 0)));
    drop((a, a_queues));
    assert_eq!(pool.in_use(), 1);
    drop((b, b_queues));
    assert_eq!(pool.in_use(), 0);
    assert_eq!(ports(&eal), []);
}
