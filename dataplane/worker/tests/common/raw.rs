//! Frames by hand: what a peer sends, or a stranger.

use super::{Place, Side};
use dpdk::{Mbuf, MbufBurst, Mempool};
use std::net::Ipv4Addr;
use wire::{Addressing, Bth, ExtHeaders, HeaderTemplate, Opcode, RoceVersion, build_frame};

/// RC SEND Only.
pub const SEND_ONLY: Opcode = Opcode(0x04);
/// RC WRITE Only.
pub const WRITE_ONLY: Opcode = Opcode(0x0A);
/// UC SEND Only.
pub const UC_SEND_ONLY: Opcode = Opcode(0x24);
/// UD SEND Only.
pub const UD_SEND_ONLY: Opcode = Opcode(0x64);

/// The way from one place to the other.
pub fn way(from: Place, to: Place) -> Addressing {
    Addressing {
        version: RoceVersion::V2,
        smac: from.mac,
        dmac: to.mac,
        vlan: None,
        src: from.gid,
        dst: to.gid,
        traffic_class: 0,
        flow_label: 0,
        hop_limit: 64,
        udp_sport: 0xC000,
    }
}

/// A whole RoCE frame.
pub fn roce(way: &Addressing, bth: &Bth, ext: &ExtHeaders, payload: &[u8]) -> Vec<u8> {
    let mut frame = Vec::new();
    build_frame(&HeaderTemplate::new(way).unwrap(), bth, ext, 7, payload, &mut frame);
    frame
}

/// An ARP request for an address.
pub fn arp(from: Place, target: Ipv4Addr) -> Vec<u8> {
    let mut frame = vec![0xFF; 6];
    frame.extend(from.mac.0);
    frame.extend([0x08, 0x06, 0, 1, 0x08, 0, 6, 4, 0, 1]);
    frame.extend(from.mac.0);
    frame.extend(&from.gid.0[12..]);
    frame.extend([0; 6]);
    frame.extend(target.octets());
    frame
}

/// A packet of one segment for each piece.
pub fn packet(pool: &Mempool, pieces: &[&[u8]]) -> Mbuf {
    let mut segments = pieces.iter().map(|piece| {
        let mut mbuf = pool.alloc().expect("the pool has buffers");
        assert!(mbuf.extend_from_slice(piece));
        mbuf
    });
    let first = segments.next().expect("a frame has a segment");
    segments.fold(first, |head, tail| head.chain(tail).unwrap())
}

/// A packet's bytes.
pub fn bytes(mbuf: &Mbuf) -> Vec<u8> {
    mbuf.segments().flatten().copied().collect()
}

impl Side {
    /// Sends frames on one queue, in order.
    pub fn send(&mut self, queue: usize, frames: &[Vec<u8>]) {
        for frame in frames {
            self.send_mbuf(queue, packet(&self.pool, &[frame]));
        }
    }

    pub fn send_mbuf(&mut self, queue: usize, mbuf: Mbuf) {
        let mut burst = MbufBurst::<32>::new();
        burst.push(mbuf).unwrap();
        assert_eq!(self.queues[queue].1.burst(&mut burst), 1, "the ring has room");
    }

    /// Takes what has arrived on one queue, at most a burst.
    pub fn receive(&mut self, queue: usize) -> Vec<Vec<u8>> {
        let mut burst = MbufBurst::<32>::new();
        self.queues[queue].0.burst(&mut burst);
        burst.as_slice().iter().map(bytes).collect()
    }
}
