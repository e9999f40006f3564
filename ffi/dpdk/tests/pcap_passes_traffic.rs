//! `net_pcap`: a capture file in, a capture file out, and a kernel interface.

mod common;

use std::path::Path;

use common::{
    burst_without_packets, bytes, eal, frame, ip, open, own_network, packet, pool, queue, receive, send,
};
use dpdk::{PortConfig, Vdev};

#[test]
fn pcap_passes_traffic() {
    own_network();
    let eal = eal();
    let pool = pool(&eal, 8191, 2048);
    let config = PortConfig { mtu: 9000, ..PortConfig::default() };
    let directory = std::env::temp_dir().join(format!("rockhopper-pcap-{}", std::process::id()));
    std::fs::create_dir_all(&directory).unwrap();
    let (input, output) = (directory.join("in.pcap"), directory.join("out.pcap"));

    let frames: Vec<Vec<u8>> = [64, 65, 1514, 2049, 9014].map(|len| frame(len, 7)).into();
    write_capture(&input, &frames);
    let mut port = open(&eal, &Vdev::pcap_files("f", &input, &output).unwrap(), &config, &pool);
    assert_eq!(port.negotiated().driver, "net_pcap");
    assert_eq!((port.negotiated().mtu, port.negotiated().scatter), (9000, true), "{}", port.negotiated());
    let (mut rx, mut tx) = queue(&mut port);
    burst_without_packets(&mut rx, &mut tx, &pool);
    let mut burst = dpdk::MbufBurst::<32>::new();
    assert_eq!(rx.burst(&mut burst), frames.len());
    let got: Vec<Vec<u8>> = burst.as_slice().iter().map(bytes).collect();
    assert_eq!(got, frames);
    assert_eq!(burst.as_slice()[4].nb_segs(), 5, "9014 bytes in buffers of 2048");
    assert_eq!(tx.burst(&mut burst), frames.len());
    drop((port, rx, tx));
    assert_eq!(read_capture(&output), frames);
    std::fs::remove_dir_all(&directory).unwrap();

    ip("link add rh-a type veth peer name rh-b");
    ip("link set rh-a up");
    ip("link set rh-b up");
    let mut a = open(&eal, &Vdev::pcap_interface("a", "rh-a").unwrap(), &config, &pool);
    let mut b = open(&eal, &Vdev::pcap_interface("b", "rh-b").unwrap(), &config, &pool);
    assert_eq!(a.negotiated().mtu, 1500, "{}", a.negotiated());
    let (mut a_rx, mut a_tx) = queue(&mut a);
    let (mut b_rx, mut b_tx) = queue(&mut b);
    for len in [64, 1000, 1514] {
        send(&mut a_tx, packet(&pool, &frame(len, 1)));
        assert_eq!(bytes(&receive(&mut b_rx).expect("a to b")), frame(len, 1));
        send(&mut b_tx, packet(&pool, &frame(len, 2)));
        assert_eq!(bytes(&receive(&mut a_rx).expect("b to a")), frame(len, 2));
    }
    drop((a, a_rx, a_tx, b, b_rx, b_tx));
    assert_eq!(pool.in_use(), 0);
}

/// The classic format, little endian, Ethernet.
fn write_capture(path: &Path, frames: &[Vec<u8>]) {
    let mut file = Vec::new();
    for word in [0xa1b2_c3d4u32, 0x0004_0002, 0, 0, 65535, 1] {
        file.extend(word.to_le_bytes());
    }
    for frame in frames {
        let len = frame.len() as u32;
        for word in [1, 0, len, len] {
            file.extend(word.to_le_bytes());
        }
        file.extend(frame);
    }
    std::fs::write(path, file).unwrap();
}

fn read_capture(path: &Path) -> Vec<Vec<u8>> {
    let file = std::fs::read(path).unwrap();
    let mut rest = &file[24..];
    let mut frames = Vec::new();
    while let [_, _, _, _, _, _, _, _, a, b, c, d, _, _, _, _, data @ ..] = rest {
        let len = u32::from_le_bytes([*a, *b, *c, *d]) as usize;
        frames.push(data[..len].to_vec());
        rest = &data[len..];
    }
    frames
}
