//! Frames in a row that come in one burst, and are executed as a run, leave what they leave when each comes by itself; also with one
//! among them that is odd.

mod common;

use common::qp::{PSN, TestMr, TestQp, poll_all};
use common::raw::{SEND_ONLY, WRITE_ONLY, packet, roce, way};
use common::{Driven, Endpoint, Shape, Side, sides};
use engine::{Counter, QpState, QpType};
use wire::{Addressing, Bth, ExtHeaders, Frame, FrameError, Mtu, OnesComplement, Psn, Qpn, Reth, Vlan};
use worker::{AddressSet, Command, Drop};

const QPN: Qpn = Qpn::new(0x77);
const OTHER: Qpn = Qpn::new(0x78);
/// Where IPv4 and UDP begin.
const IP: usize = 14;
const UDP: usize = 34;

/// An endpoint with two connected QPs, and a peer by hand.
struct Rig {
    peer: Side,
    driven: Driven,
    qps: [TestQp; 2],
    mr: TestMr,
}

impl Rig {
    fn new(name: &str) -> Rig {
        let (peer, side) = sides(name, &Shape::default());
        let driven = Endpoint::new(side, &Shape::default()).driven();
        let qps = [QPN, OTHER].map(|qpn| {
            let qp = driven.end.create_qp(0, qpn, QpType::Rc);
            driven.end.connect(&qp, Qpn::new(0x99), Mtu::Mtu1024);
            qp
        });
        let mr = driven.end.register(0x1234, 4096);
        for wr_id in 0..250 {
            qps[0].post_recv(wr_id, mr.sge(2048 + 8 * (wr_id as usize % 128), 64));
        }
        Rig { peer, driven, qps, mr }
    }

    fn poll(&self) {
        (0..4).for_each(|_| self.driven.poll());
    }

    /// All that can be seen but answers.
    fn left(&mut self) -> String {
        // In a burst one answers what several do one by one.
        while !self.peer.receive(0).is_empty() {}
        let end = &self.driven.end;
        let named = |(name, value): (&'static str, u64)| {
            let answers = name.starts_with("tx_") || matches!(name, "acks_sent" | "seq_nak_sent");
            (value != 0 && !answers).then(|| format!("{name}={value}"))
        };
        let counted: Vec<_> = end.counters(0).iter().filter_map(named).collect();
        let slow: Vec<_> = std::iter::from_fn(|| end.link.take_slow()).map(|mbuf| mbuf.pkt_len()).collect();
        let states = [QPN, OTHER].map(|qpn| end.query(0, qpn).attr.state);
        let cqes = self.qps.each_ref().map(|qp| poll_all(&qp.receives));
        format!("{counted:?} {slow:?} {states:?} {cqes:?} {:?}", self.mr.bytes(0, 4096))
    }
}

/// Two that hear the same: one in bursts, the other one by one.
struct Both {
    rigs: [Rig; 2],
    /// Messages of the first QP that were executed.
    sent: u32,
}

impl Both {
    fn new(name: &str) -> Both {
        Both { rigs: ["burst", "single"].map(|how| Rig::new(&format!("{name}-{how}"))), sent: 0 }
    }

    /// A frame of the first QP so many messages from now, of a WRITE or SEND of these bytes. Its region is known to each.
    fn message(&self, rig: &Rig, send: bool, ahead: u32, payload: &[u8]) -> Vec<u8> {
        let number = self.sent + ahead;
        let way = way(rig.peer.at, rig.peer.peer);
        let psn = Psn::new((PSN + number) & 0xFF_FFFF);
        let remote = rig.mr.remote(8 * (number as usize % 128));
        let reth = Reth { va: remote.addr, rkey: remote.rkey, dma_len: payload.len() as u32 };
        let payload: Vec<_> = payload.iter().map(|byte| byte ^ number as u8).collect();
        let mut frame = match send {
            true => roce(&way, &Bth::new(SEND_ONLY, QPN, psn), &ExtHeaders::EMPTY, &payload),
            false => roce(&way, &Bth::new(WRITE_ONLY, QPN, psn), &ExtHeaders::EMPTY.with(reth), &payload),
        };
        frame[IP + 4..IP + 6].copy_from_slice(&(number as u16).wrapping_mul(77).to_be_bytes());
        mend(&mut frame);
        frame
    }

    /// Each hears `count` messages in a row, changed by `odd`, and then what is missing once more: both leave the same.
    fn hear(&mut self, name: &str, send: bool, count: u32, odd: impl Fn(&mut Side, &mut Vec<Vec<u8>>)) {
        let mut left = [0, 1].map(|_| Vec::new());
        for again in [false, true] {
            for (one_by_one, left) in left.iter_mut().enumerate() {
                let rig = &self.rigs[one_by_one];
                let payload = [0x5A; 40];
                let mut frames: Vec<_> = (0..count).map(|n| self.message(rig, send, n, &payload)).collect();
                let rig = &mut self.rigs[one_by_one];
                if !again {
                    odd(&mut rig.peer, &mut frames);
                }
                for frame in frames {
                    rig.peer.send(0, &[frame]);
                    if one_by_one == 1 {
                        rig.poll();
                    }
                }
                rig.poll();
                left.push(rig.left());
            }
        }
        self.sent += count;
        assert_eq!(
            self.rigs[0].driven.end.query(0, QPN).attr.state,
            QpState::Rts,
            "{name}: the test goes on"
        );
        for again in [0, 1] {
            assert_eq!(left[0][again], left[1][again], "{name}, send: {send}, again: {again}");
        }
    }
}

/// Makes the checksum and the iCRC of a frame right.
fn mend(frame: &mut [u8]) {
    frame[IP + 10..IP + 12].fill(0);
    let mut sum = OnesComplement::default();
    sum.bytes(&frame[IP..IP + 20]);
    let checksum = sum.checksum().to_be_bytes();
    frame[IP + 10..IP + 12].copy_from_slice(&checksum);
    if let (Ok(parsed), Ok(icrc)) = (Frame::parse(frame, frame.len()), wire::compute_icrc(frame)) {
        frame[parsed.icrc_offset()..parsed.end()].copy_from_slice(&icrc.to_le_bytes());
    }
}

#[test]
fn messages_in_a_row() {
    let mut both = Both::new("row");
    for round in 0..6 {
        both.hear("row", round % 2 == 1, 12 + round, |_, _| {});
    }
    both.hear("answered", false, 9, |_, frames| {
        for at in [2, 8] {
            frames[at][50] |= 0x80;
            mend(&mut frames[at]);
        }
    });
    let rig = &both.rigs[0];
    let counters = rig.driven.end.query(0, QPN).counters;
    assert_eq!(counters.get(Counter::RxWriteRequests), 12 + 14 + 16 + 9);
    assert_eq!(counters.get(Counter::RxSendRequests), 13 + 15 + 17);
}

/// A bit that is flipped anywhere in a frame that would follow.
#[test]
fn one_that_is_bent() {
    let mut both = Both::new("bent");
    for redone in [false, true] {
        // What is behind the BTH is covered by the iCRC alone, and when that is redone it is another message.
        let end = if redone { 54 } else { 110 };
        for byte in 0..end {
            let bit = 1 << (byte % 8);
            both.hear(&format!("byte {byte}, redone: {redone}"), false, 5, |_, frames| {
                frames[2][byte] ^= bit;
                if redone {
                    mend(&mut frames[2]);
                }
            });
        }
    }
    let counted = both.rigs[0].driven.end.counters(0);
    for reason in [FrameError::IpChecksum, FrameError::BadIcrc, FrameError::UdpLength, FrameError::OtherPort]
    {
        assert_ne!(counted.frame_errors(reason), 0, "{reason}");
    }
}

#[test]
fn others_in_between() {
    let mut both = Both::new("between");
    for send in [false, true] {
        both.hear("missing", send, 6, |_, frames| drop(frames.remove(3)));
        both.hear("twice", send, 6, |_, frames| frames.insert(3, frames[2].clone()));
        both.hear("exchanged", send, 6, |_, frames| frames.swap(2, 3));
        both.hear("padded", send, 6, |_, frames| frames[3].extend([0; 5]));
        both.hear("all padded", send, 6, |_, frames| {
            frames.iter_mut().for_each(|frame| frame.extend([0; 5]))
        });
        both.hear("cut", send, 6, |_, frames| frames[3].truncate(70));
        both.hear("of another QP", send, 6, |_, frames| {
            let mut other = frames[2].clone();
            other[47..50].copy_from_slice(&OTHER.to_bytes());
            mend(&mut other);
            frames.insert(3, other);
        });
        both.hear("for no QP", send, 6, |_, frames| {
            for frame in frames {
                frame[47..50].copy_from_slice(&[0, 0x12, 0x34]);
                mend(frame);
            }
        });
        both.hear("with UDP checksums", send, 6, |_, frames| {
            frames.iter_mut().for_each(|frame| frame[UDP + 6] = 0x12);
        });
        both.hear("ECN", send, 6, |_, frames| {
            frames[3][IP + 1] |= 3;
            mend(&mut frames[3]);
        });
    }
}

/// A frame whose tag is beside it, or that comes in segments, does not follow: it is of another VLAN, or is put together first.
#[test]
fn one_that_comes_otherwise() {
    let (mut peer, side) = sides("otherwise", &Shape::default());
    let driven = Endpoint::new(side, &Shape::default()).driven();
    let qp = driven.end.create_qp(0, QPN, QpType::Rc);
    driven.end.connect(&qp, Qpn::new(0x99), Mtu::Mtu1024);
    let mr = driven.end.register(0x1234, 4096);
    let frame = |number: u32| {
        let remote = mr.remote(8 * number as usize);
        let reth = Reth { va: remote.addr, rkey: remote.rkey, dma_len: 8 };
        let bth = Bth::new(WRITE_ONLY, QPN, Psn::new((PSN + number) & 0xFF_FFFF));
        roce(&way(peer.at, peer.peer), &bth, &ExtHeaders::EMPTY.with(reth), &[number as u8 + 1; 8])
    };
    let frames: Vec<_> = (0..8).map(frame).collect();
    peer.send(0, &frames[..2]);
    peer.send_stripped(0, &frames[2], Some(7));
    let pieces = packet(&peer.pool, &[&frames[2][..60], &frames[2][60..]]);
    peer.send_mbuf(0, pieces);
    peer.send(0, &frames[3..5]);
    let pieces = packet(&peer.pool, &[&frames[5][..30], &frames[5][30..80], &frames[5][80..]]);
    peer.send_mbuf(0, pieces);
    peer.send(0, &frames[6..]);
    common::settle(&[&driven]);
    assert_eq!(driven.end.counters(0).dropped(Drop::OtherVlan), 1, "{}", driven.end.account());
    let counters = driven.end.query(0, QPN).counters;
    assert_eq!(counters.get(Counter::RxWriteRequests), 8, "{}", driven.end.account());
    let expected: Vec<u8> = (1..=8).flat_map(|number| [number; 8]).collect();
    assert_eq!(mr.bytes(0, 64), expected);
}

/// In a VLAN whose tags the NIC takes off, a frame without one does not follow one that had it.
#[test]
fn one_without_a_tag_behind_one_with_it() {
    let (mut peer, side) = sides("tagged", &Shape::default());
    let driven = Endpoint::new(side, &Shape::default()).driven();
    let mut addresses = AddressSet::new(&[peer.peer.mac], &[peer.peer.gid]).unwrap();
    addresses.own.vlan = 7;
    common::done(
        driven.end.handles[0].call(Command::SetAddresses { lane: 0, addresses: Box::new(addresses) }),
    );
    let qp = driven.end.create_qp(0, QPN, QpType::Rc);
    let tagged = Addressing { vlan: Some(Vlan::new(0, 7)), ..way(peer.peer, peer.at) };
    driven.end.connect_by(&tagged, &qp, Qpn::new(0x99), Mtu::Mtu1024);
    let mr = driven.end.register(0x1234, 4096);
    let frame = |number: u32| {
        let reth = Reth { va: mr.remote(0).addr, rkey: mr.remote(0).rkey, dma_len: 8 };
        let bth = Bth::new(WRITE_ONLY, QPN, Psn::new(PSN + number));
        roce(&way(peer.at, peer.peer), &bth, &ExtHeaders::EMPTY.with(reth), &[number as u8 + 1; 8])
    };
    let frames: Vec<_> = (0..4).map(frame).collect();
    peer.send_stripped(0, &frames[0], Some(7));
    peer.send(0, &frames[1..2]);
    peer.send_stripped(0, &frames[1], Some(7));
    peer.send(0, &frames[2..3]);
    common::settle(&[&driven]);
    assert_eq!(driven.end.counters(0).dropped(Drop::OtherVlan), 2, "{}", driven.end.account());
    assert_eq!(mr.bytes(0, 8), [2; 8]);
}

/// A QP that goes away between two bursts takes its frames along.
#[test]
fn a_qp_that_is_gone() {
    let mut both = Both::new("gone");
    both.hear("there", false, 8, |_, _| {});
    for rig in &both.rigs {
        common::done(rig.driven.end.handles[0].call(Command::DestroyQp { lane: 0, qpn: OTHER }));
        let qp = rig.driven.end.create_qp(0, OTHER, QpType::Rc);
        assert_eq!(qp.home, 0);
    }
    both.hear("another", false, 8, |_, frames| {
        for frame in frames {
            frame[47..50].copy_from_slice(&OTHER.to_bytes());
            mend(frame);
        }
    });
}
