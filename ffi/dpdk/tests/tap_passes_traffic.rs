//! `net_tap`: frames to and from the kernel's interface, received as chains when longer than a buffer, and a
//! UDP exchange with the kernel's own stack.

mod common;

use std::net::UdpSocket;
use std::time::Duration;

use common::{
    burst_without_packets, bytes, eal, frame, ip, open, own_network, packet, pool, queue, receive, send,
    within,
};
use dpdk::vdev::AF_PACKET_JUMBO_DATA_ROOM;
use dpdk::{MbufBurst, Port, PortConfig, RxQueue, TxQueue, Vdev};

#[test]
fn tap_passes_traffic() {
    own_network();
    let eal = eal();
    let small = pool(&eal, 8191, 512);
    let large = pool(&eal, 2047, AF_PACKET_JUMBO_DATA_ROOM);
    let config = PortConfig { mtu: 9000, rx_descriptors: 256, ..PortConfig::default() };
    let mac = [2, 0, 0, 0, 0, 0x11];
    let mut tap = open(&eal, &Vdev::tap("t", "rh-tap", Some(mac)).unwrap(), &config, &small);
    assert_eq!(tap.negotiated().driver, "net_tap");
    // DPDK 22.11 takes 1504 at most, later releases more.
    let mtu = tap.negotiated().mtu;
    assert!(mtu >= 1500 && tap.mtu().unwrap() == mtu, "{}", tap.negotiated());
    assert!(tap.negotiated().scatter && tap.negotiated().tx_multi_segs, "{}", tap.negotiated());
    assert_eq!(tap.mac().unwrap(), mac);
    let (mut rx, mut tx) = queue(&mut tap);
    burst_without_packets(&mut rx, &mut tx, &small);

    // The kernel's side of the interface, which has got the port's MTU, read and written through another port.
    let kernel_side = Vdev::af_packet("k", "rh-tap", 1, true).unwrap();
    let mut kernel = open(&eal, &kernel_side, &config, &large);
    assert_eq!(kernel.negotiated().mtu, mtu);
    let (mut kernel_rx, mut kernel_tx) = queue(&mut kernel);
    for len in [64, 512, 513, 1514, 14 + usize::from(mtu)] {
        let sent = frame(len, 1);
        send(&mut kernel_tx, packet(&large, &sent));
        let got = receive(&mut rx).unwrap_or_else(|| panic!("{len} bytes from the kernel"));
        assert_eq!(bytes(&got), sent);
        assert!(len <= 512 || got.nb_segs() > 1, "{len} bytes in {} segments", got.nb_segs());
        let sent = frame(len, 2);
        send(&mut tx, packet(&small, &sent));
        let got = receive(&mut kernel_rx).unwrap_or_else(|| panic!("{len} bytes to the kernel"));
        assert_eq!(bytes(&got), sent);
    }
    drop((kernel, kernel_rx, kernel_tx));
    udp_echo(&mut rx, &mut tx);

    let stats = tap.stats().unwrap();
    assert!(stats.rx_packets >= 6 && stats.tx_packets >= 6, "{stats:?}");
    close(tap, rx, tx);
    assert_eq!(small.in_use(), 0);
    assert_eq!(large.in_use(), 0);
}

/// The kernel sends a datagram to an address behind the port, and gets it back with both ends swapped.
fn udp_echo(rx: &mut RxQueue, tx: &mut TxQueue) {
    ip("addr add 192.0.2.1/24 dev rh-tap");
    ip("neigh add 192.0.2.2 lladdr 02:00:00:00:00:22 dev rh-tap");
    let socket = UdpSocket::bind("192.0.2.1:4791").unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    socket.send_to(b"hello", "192.0.2.2:4791").unwrap();

    let mut burst = MbufBurst::<32>::new();
    let request = within(Duration::from_secs(5), || {
        rx.burst(&mut burst);
        let mut all: Vec<_> = burst.drain().collect();
        let at = all.iter().position(|mbuf| mbuf.data().ends_with(b"hello"))?;
        Some(all.swap_remove(at))
    });
    let mut packet = request.expect("the kernel's datagram");
    let data = packet.data_mut();
    assert_eq!(&data[..6], [2, 0, 0, 0, 0, 0x22]);
    // Addresses and ports swap in place: all checksums stay right.
    for (left, right, len) in [(0, 6, 6), (26, 30, 4), (34, 36, 2)] {
        for at in 0..len {
            data.swap(left + at, right + at);
        }
    }
    send(tx, packet);
    let mut answer = [0u8; 16];
    let (len, from) = socket.recv_from(&mut answer).expect("the datagram comes back");
    assert_eq!((&answer[..len], from), (&b"hello"[..], "192.0.2.2:4791".parse().unwrap()));
}

/// Closing the port removes the kernel's interface.
fn close(port: Port, rx: RxQueue, tx: TxQueue) {
    let exists = || std::process::Command::new("ip").args(["link", "show", "rh-tap"]).output().unwrap();
    drop(port);
    drop(rx);
    assert!(exists().status.success(), "a queue keeps its port open");
    drop(tx);
    assert!(!exists().status.success(), "the last handle closes it");
}
