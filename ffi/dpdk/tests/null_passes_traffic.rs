//! `net_null`: endless frames in, everything sent is taken.

mod common;

use common::{burst_without_packets, eal, frame, open, packet, pool, queue, send};
use dpdk::{MbufBurst, PortConfig, Vdev};

#[test]
fn null_passes_traffic() {
    let eal = eal();
    let pool = pool(&eal, 511, 2048);
    let config = PortConfig { rx_descriptors: 64, tx_descriptors: 64, ..PortConfig::default() };
    let mut port = open(&eal, &Vdev::null("0").unwrap(), &config, &pool);
    assert_eq!(port.negotiated().driver, "net_null");
    let (mut rx, mut tx) = queue(&mut port);
    burst_without_packets(&mut rx, &mut tx, &pool);
    let mut burst = MbufBurst::<32>::new();
    assert_eq!(rx.burst(&mut burst), 32);
    assert!(burst.as_slice().iter().all(|mbuf| mbuf.pkt_len() == 64 && mbuf.port() == port.id().0));
    assert_eq!(tx.burst(&mut burst), 32);
    send(&mut tx, packet(&pool, &frame(1500, 0)));
    assert_eq!(pool.in_use(), 0);
    let stats = port.stats().unwrap();
    assert_eq!((stats.rx_packets, stats.tx_packets), (32, 33));
}
