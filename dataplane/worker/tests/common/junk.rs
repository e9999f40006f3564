//! Frames that nobody should send: every kind that the worker and the engine discard, by the name under which they count it.

use super::qp::{PSN, TestMr, TestQp};
use super::raw::{
    ACKNOWLEDGE, SEND_ONLY, UC_SEND_ONLY, UC_WRITE_ONLY, UD_SEND_ONLY, WRITE_ONLY, arp, roce, way,
};
use super::{Driven, Place};
use engine::QpType;
use std::net::Ipv4Addr;
use wire::{
    Addressing, Aeth, Bth, Deth, ExtHeaders, FrameError, Gid, Mac, Msn, Mtu, OnesComplement, PKey, Psn, QKey,
    Qpn, RKey, Reth, RoceVersion, Syndrome, Vlan,
};

/// Where things are in an IPv4 frame.
const IP: usize = 14;
const UDP: usize = 34;
const BTH: usize = 42;

/// Queue pairs that junk is meant for: connected to the peer whose addresses it has.
const RC: Qpn = Qpn::new(0x78);
const UC: Qpn = Qpn::new(0x79);
const UD: Qpn = Qpn::new(0x7A);
/// One that a refused request puts into ERROR.
const FRAGILE: Qpn = Qpn::new(0x7B);

/// One kind of junk.
pub struct Junk {
    /// The counter that grows by one for each frame.
    pub name: &'static str,
    /// The frame; any number of them may be sent.
    pub frame: Vec<u8>,
}

/// Makes the queue pairs that [`every_kind`] is meant for.
pub fn victims(driven: &Driven) -> Vec<TestQp> {
    let connected = [(RC, QpType::Rc), (UC, QpType::Uc), (FRAGILE, QpType::Rc)].map(|(qpn, qp_type)| {
        let qp = driven.end.create_qp(0, qpn, qp_type);
        driven.end.connect(&qp, Qpn::new(0x9000 + qpn.value()), Mtu::Mtu4096);
        qp
    });
    let ud = driven.end.create_qp(0, UD, QpType::Ud);
    driven.end.activate_ud(&ud, QKey::new(0x1234));
    connected.into_iter().chain([ud]).collect()
}

/// Every kind, with `payload` where it has one. The region is one that good frames may write.
pub fn every_kind(from: Place, to: Place, mr: &TestMr, payload: &[u8]) -> Vec<Junk> {
    let bent =
        |&reason: &FrameError| Junk { name: reason.name(), frame: bent(reason, from, to, RC, mr, payload) };
    FrameError::ALL
        .iter()
        .map(bent)
        .chain(misled(from, to, mr, payload))
        .chain(unwanted(from, to, mr, payload))
        .collect()
}

/// Good frames of somebody else's traffic.
fn misled(from: Place, to: Place, mr: &TestMr, payload: &[u8]) -> Vec<Junk> {
    let by = |way: Addressing| write_by(&way, RC, mr, payload);
    let usual = way(from, to);
    let group = Gid::from_v4([239, 1, 2, 3]);
    let to_group = Addressing { dst: group, dmac: Mac([1, 0, 0x5E, 1, 2, 3]), ..usual };
    let stranger = Gid::from_v4([10, 0, 0, 77]);
    vec![
        Junk { name: "drop_not_our_address", frame: by(Addressing { dst: stranger, ..usual }) },
        Junk { name: "drop_own_source", frame: by(Addressing { src: to.gid, ..usual }) },
        Junk { name: "drop_other_vlan", frame: by(Addressing { vlan: Some(Vlan::new(0, 7)), ..usual }) },
        Junk {
            name: "drop_group_not_attached",
            frame: datagram(&to_group, Qpn::new(0xFF_FFFF), 0x1234, payload),
        },
        Junk { name: "drop_wrong_address", frame: by(Addressing { src: stranger, ..usual }) },
        Junk { name: "drop_unknown_qp", frame: write_by(&usual, Qpn::new(0x5_4321), mr, payload) },
    ]
}

/// Frames that reach a queue pair, which does not want them.
fn unwanted(from: Place, to: Place, mr: &TestMr, payload: &[u8]) -> Vec<Junk> {
    let way = way(from, to);
    let write = |opcode, qpn, psn: u32, rkey: RKey, pkey| {
        let reth = Reth { va: mr.remote(0).addr, rkey, dma_len: payload.len() as u32 };
        let bth = Bth { pkey, ..Bth::new(opcode, qpn, Psn::new(psn)) };
        roce(&way, &bth, &ExtHeaders::EMPTY.with(reth), payload)
    };
    let (right, wrong, pkey) =
        (mr.remote(0).rkey, RKey::new(mr.remote(0).rkey.value() ^ 0x100), PKey::DEFAULT);
    let ack = ExtHeaders::EMPTY.with(Aeth { syndrome: Syndrome::ACK, msn: Msn::new(9) });
    let send = roce(&way, &Bth::new(UC_SEND_ONLY, UC, Psn::new(PSN)), &ExtHeaders::EMPTY, payload);
    vec![
        Junk { name: "drop_wrong_service", frame: write(UC_WRITE_ONLY, RC, PSN, right, pkey) },
        Junk { name: "drop_pkey", frame: write(WRITE_ONLY, RC, PSN, right, PKey(0x9234)) },
        Junk { name: "drop_qkey", frame: datagram(&way, UD, 0x4321, payload) },
        Junk { name: "out_of_sequence", frame: write(WRITE_ONLY, RC, PSN + 9, right, pkey) },
        Junk { name: "duplicate_request", frame: write(WRITE_ONLY, RC, PSN - 9, right, pkey) },
        Junk {
            name: "drop_ghost_response",
            frame: roce(&way, &Bth::new(ACKNOWLEDGE, RC, Psn::new(PSN)), &ack, &[]),
        },
        Junk { name: "drop_uc_access", frame: write(UC_WRITE_ONLY, UC, PSN, wrong, pkey) },
        Junk { name: "drop_no_receive", frame: send },
        // The first is refused and ends its connection; that is what the R_Key of a connection is worth.
        Junk { name: "drop_wrong_state", frame: write(WRITE_ONLY, FRAGILE, PSN, wrong, pkey) },
    ]
}

fn datagram(way: &Addressing, qpn: Qpn, qkey: u32, payload: &[u8]) -> Vec<u8> {
    let deth = Deth { qkey: QKey::new(qkey), src_qpn: Qpn::new(0x99) };
    roce(way, &Bth::new(UD_SEND_ONLY, qpn, Psn::new(PSN)), &ExtHeaders::EMPTY.with(deth), payload)
}

/// A WRITE of `payload` to the first bytes of a region, with the first PSN.
pub fn write_by(way: &Addressing, qpn: Qpn, mr: &TestMr, payload: &[u8]) -> Vec<u8> {
    let remote = mr.remote(0);
    let reth = Reth { va: remote.addr, rkey: RKey::new(remote.rkey.value()), dma_len: payload.len() as u32 };
    let bth = Bth { ack_req: true, ..Bth::new(WRITE_ONLY, qpn, Psn::new(PSN)) };
    roce(way, &bth, &ExtHeaders::EMPTY.with(reth), payload)
}

fn fix_ip_checksum(frame: &mut [u8]) {
    frame[IP + 10..IP + 12].fill(0);
    let mut sum = OnesComplement::default();
    sum.bytes(&frame[IP..IP + 20]);
    let checksum = sum.checksum().to_be_bytes();
    frame[IP + 10..IP + 12].copy_from_slice(&checksum);
}

/// A good frame bent so that the parser refuses it for each reason.
pub fn bent(reason: FrameError, from: Place, to: Place, qpn: Qpn, mr: &TestMr, payload: &[u8]) -> Vec<u8> {
    let mut frame = write_by(&way(from, to), qpn, mr, payload);
    match reason {
        FrameError::EtherType => return arp(from, Ipv4Addr::new(10, 0, 0, 2)),
        FrameError::NotUdp => frame[IP + 9] = 1,
        FrameError::OtherPort => frame[UDP + 2] ^= 1,
        FrameError::Truncated => frame.truncate(frame.len() - 30),
        FrameError::IpHeader => frame[IP] = 0x65,
        FrameError::IpOptions => {
            frame[IP] = 0x46;
            frame.splice(UDP..UDP, [1, 1, 1, 0]);
        }
        FrameError::Fragment => frame[IP + 6] |= 0x20,
        FrameError::IpChecksum => frame[IP + 10] ^= 0x10,
        FrameError::IpLength => {
            frame[IP + 2..IP + 4].copy_from_slice(&[0, 19]);
            fix_ip_checksum(&mut frame);
        }
        FrameError::UdpLength => frame[UDP + 5] ^= 4,
        FrameError::UdpChecksum => frame[UDP + 6..UDP + 8].copy_from_slice(&[0x12, 0x34]),
        FrameError::GrhNextHeader => {
            let mut way = way(from, to);
            way.version = RoceVersion::V1;
            frame = write_by(&way, qpn, mr, payload);
            frame[IP + 6] = 17;
        }
        FrameError::TooShort => {
            frame[IP + 2..IP + 4].copy_from_slice(&[0, 36]);
            frame[UDP + 4..UDP + 6].copy_from_slice(&[0, 16]);
            fix_ip_checksum(&mut frame);
        }
        FrameError::UnknownOpcode => frame[BTH] = 0x1F,
        FrameError::NegativePayload => {
            let bth = Bth::new(SEND_ONLY, qpn, Psn::new(PSN));
            frame = roce(&way(from, to), &bth, &ExtHeaders::EMPTY, &[]);
            frame[BTH] = WRITE_ONLY.0;
        }
        FrameError::TransportVersion => frame[BTH + 1] |= 1,
        FrameError::DestQpZero => frame[BTH + 5..BTH + 8].fill(0),
        FrameError::BadIcrc => *frame.last_mut().unwrap() ^= 1,
    }
    frame
}
