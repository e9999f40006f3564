//! `net_af_packet` on both ends of a veth pair: standard and jumbo frames, both ways.

mod common;

use common::{
    burst_without_packets, bytes, eal, frame, ip, open, own_network, packet, pool, queue, receive, send,
};
use dpdk::vdev::AF_PACKET_JUMBO_DATA_ROOM;
use dpdk::{PortConfig, Vdev};

#[test]
fn af_packet_over_veth_passes_traffic() {
    own_network();
    ip("link add rh-a mtu 9000 type veth peer name rh-b mtu 9000");
    ip("link set rh-a up");
    ip("link set rh-b up");
    let eal = eal();
    let pool = pool(&eal, 2047, AF_PACKET_JUMBO_DATA_ROOM);
    let config = PortConfig { mtu: 9000, ..PortConfig::default() };
    let mut a = open(&eal, &Vdev::af_packet("a", "rh-a", 1, true).unwrap(), &config, &pool);
    let mut b = open(&eal, &Vdev::af_packet("b", "rh-b", 1, true).unwrap(), &config, &pool);
    assert_eq!(a.negotiated().driver, "net_af_packet");
    assert_eq!((a.negotiated().mtu_asked, a.negotiated().mtu), (9000, 9000), "{}", a.negotiated());
    let (mut a_rx, mut a_tx) = queue(&mut a);
    burst_without_packets(&mut a_rx, &mut a_tx, &pool);
    let (mut b_rx, mut b_tx) = queue(&mut b);
    for len in [64, 65, 1514, 1900, 2048, 4200, 9014] {
        let sent = frame(len, 1);
        send(&mut a_tx, packet(&pool, &sent));
        assert_eq!(bytes(&receive(&mut b_rx).unwrap_or_else(|| panic!("{len} bytes a to b"))), sent);
        let sent = frame(len, 2);
        send(&mut b_tx, packet(&pool, &sent));
        assert_eq!(bytes(&receive(&mut a_rx).unwrap_or_else(|| panic!("{len} bytes b to a"))), sent);
    }
    drop((a, a_rx, a_tx));

    // Without jumbo slots, and on a smaller interface, the port says what passes, and that passes.
    for (interface_mtu, mtu) in [(9000, 1964), (1400, 1400)] {
        ip(&format!("link set rh-a mtu {interface_mtu}"));
        let mut a = open(&eal, &Vdev::af_packet("a", "rh-a", 1, false).unwrap(), &config, &pool);
        assert_eq!(a.negotiated().mtu, mtu, "{}", a.negotiated());
        let (mut a_rx, mut a_tx) = queue(&mut a);
        let longest = frame(14 + usize::from(mtu), 3);
        send(&mut a_tx, packet(&pool, &longest));
        assert_eq!(bytes(&receive(&mut b_rx).expect("a to b")), longest);
        send(&mut b_tx, packet(&pool, &longest));
        assert_eq!(bytes(&receive(&mut a_rx).expect("b to a")), longest);
    }
    assert_eq!(pool.in_use(), 0, "the driver copies, so every buffer is home");
}
