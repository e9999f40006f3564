//! Frames by hand: what a peer sends, or a stranger.

use super::qp::{PSN, TestMr};
use super::{Place, Side};
use dpdk::{Mbuf, MbufBurst, Mempool};
use std::net::Ipv4Addr;
use wire::{
    Addressing, Aeth, Bth, ExtHeaders, Frame, HeaderTemplate, NakCode, Opcode, Psn, Qpn, Reth, RoceVersion,
    Syndrome, build_frame,
};

/// RC SEND Only.
pub const SEND_ONLY: Opcode = Opcode(0x04);
/// RC WRITE Only.
pub const WRITE_ONLY: Opcode = Opcode(0x0A);
/// RC Acknowledge.
pub const ACKNOWLEDGE: Opcode = Opcode(0x11);
/// UC WRITE Only.
pub const UC_WRITE_ONLY: Opcode = Opcode(0x2A);
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

/// Consecutive WRITEs of a connected peer, as often as its NAKs ask for them.
pub struct Writer {
    bth: Bth,
    frame: Vec<u8>,
    /// Messages that count as delivered: sent, and not asked for again.
    pub sent: u64,
}

impl Writer {
    /// Begins with the first PSN. Each WRITE puts `payload` at the first bytes of the region.
    pub fn new(way: &Addressing, qpn: Qpn, mr: &TestMr, payload: &[u8]) -> Writer {
        let remote = mr.remote(0);
        let reth = Reth { va: remote.addr, rkey: remote.rkey, dma_len: payload.len() as u32 };
        let bth = Bth::new(WRITE_ONLY, qpn, Psn::new(PSN));
        Writer { bth, frame: roce(way, &bth, &ExtHeaders::EMPTY.with(reth), payload), sent: 0 }
    }

    /// The next frame. Every sixteenth asks for an ACK.
    pub fn next_frame(&mut self) -> &[u8] {
        let psn = Psn::new((PSN + self.sent as u32) & 0xFF_FFFF);
        self.sent += 1;
        let bth = Bth { psn, ack_req: self.sent.is_multiple_of(16), ..self.bth };
        self.frame[42..54].copy_from_slice(&bth.to_bytes());
        let icrc = wire::compute_icrc(&self.frame).expect("a right frame");
        let end = self.frame.len();
        self.frame[end - 4..].copy_from_slice(&icrc.to_le_bytes());
        &self.frame
    }

    /// An answer of the other end: a NAK for a gap brings the sequence back.
    pub fn on_answer(&mut self, frame: &[u8]) {
        let Ok(parsed) = Frame::parse(frame, frame.len()) else { return };
        let nak = Syndrome::Nak(NakCode::PsnSequence);
        if parsed.ext::<Aeth>(frame).is_some_and(|aeth| aeth.syndrome == nak)
            && parsed.bth().dest_qpn == PEER_QPN
        {
            let next = Psn::new((PSN + self.sent as u32) & 0xFF_FFFF);
            self.sent -= u64::from(next.value().wrapping_sub(parsed.bth().psn.value()) & 0xFF_FFFF);
        }
    }
}

/// The number of a [`Writer`]'s own queue pair.
pub const PEER_QPN: Qpn = Qpn::new(0x99);

impl Side {
    /// Sends a frame; false when the ring has no room for it.
    pub fn try_send(&mut self, frame: &[u8]) -> bool {
        let mut burst = MbufBurst::<1>::new();
        burst.push(packet(&self.pool, &[frame])).unwrap();
        self.queues[0].1.burst(&mut burst) == 1
    }

    /// Sends frames on one queue, in order.
    pub fn send(&mut self, queue: usize, frames: &[Vec<u8>]) {
        for frame in frames {
            self.send_mbuf(queue, packet(&self.pool, &[frame]));
        }
    }

    /// Sends a frame whose tag, if there is one, is beside it, as behind a NIC that takes tags off.
    pub fn send_stripped(&mut self, queue: usize, frame: &[u8], tci: Option<u16>) {
        let mut mbuf = packet(&self.pool, &[frame]);
        if let Some(tci) = tci {
            mbuf.set_stripped_vlan(tci);
        }
        self.send_mbuf(queue, mbuf);
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
