//! What tests of programs share: captures of Linux programs, and connected queue pairs.

use crate::endpoint::{Endpoint, RingPair};
use crate::verbs::{ConnectOptions, Cq, Pd, Qp, QpOptions};
use engine::QpType;
use std::fs::File;
use std::path::Path;
use wire::{Deth, Frame, ImmDt, QKey, Qpn};

/// A RoCE packet of a capture.
pub struct Packet {
    /// By name, like "RC SEND Only".
    pub opcode: String,
    /// Of a datagram.
    pub src_qp: Option<Qpn>,
    pub imm: Option<[u8; 4]>,
    /// The sender's address, its last byte.
    pub from: u8,
    pub payload: Vec<u8>,
}

/// The RoCE packets of a capture between Linux programs.
pub fn capture(name: &str) -> Vec<Packet> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../dataplane/wire/tests/data/captures").join(name);
    let mut packets = Vec::new();
    let file = File::open(&path).unwrap();
    check::capture::each_frame(file, |_, bytes, len| {
        if let Ok(frame) = Frame::parse(bytes, len) {
            let payload = bytes[frame.payload_offset()..][..frame.payload_len()].to_vec();
            let from = frame.src.octets()[15];
            let src_qp = frame.ext::<Deth>(bytes).map(|header| header.src_qpn);
            let imm = frame.ext::<ImmDt>(bytes).map(|header| header.0);
            packets.push(Packet { opcode: frame.bth().opcode.to_string(), from, src_qp, imm, payload });
        }
    })
    .unwrap();
    assert!(!packets.is_empty());
    packets
}

/// One end of a connection.
pub struct End {
    pub pd: Pd,
    pub cq: Cq,
    pub qp: Qp,
}

/// Two queue pairs in INIT, and what connects them.
pub fn pair(qp_type: QpType) -> (End, End, impl FnOnce()) {
    let (a, b) = Endpoint::ring_pair(&RingPair::default()).unwrap();
    let end = |endpoint: &Endpoint| {
        let device = endpoint.device(0).unwrap();
        let (pd, cq) = (device.alloc_pd(), device.create_cq(64).unwrap());
        let qp = pd.create_qp(&QpOptions::new(qp_type, &cq)).unwrap();
        let options = ConnectOptions { qkey: QKey::new(0x0123_4567), ..ConnectOptions::default() };
        if qp_type == QpType::Ud {
            qp.activate(&options).unwrap()
        } else {
            qp.to_init(&options).unwrap()
        }
        End { pd, cq, qp }
    };
    let (a, b) = (end(&a), end(&b));
    let (one, other) = (a.qp.clone(), b.qp.clone());
    let connect = move || {
        let options = ConnectOptions::default();
        if qp_type != QpType::Ud {
            other.connect(&one.info(&options), &options).unwrap();
            one.connect(&other.info(&options), &options).unwrap();
        }
    };
    (a, b, connect)
}
