//! The base transport header.

use super::slice_forms;
use crate::opcode::Opcode;
use crate::types::{PKey, Psn, Qpn};

/// The base transport header: first in every packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bth {
    /// What the packet is.
    pub opcode: Opcode,
    /// SE: the receive completion is a solicited event.
    pub solicited: bool,
    /// M: path migration state. RoCE has no migration; ConnectX sends 1, others 0, nobody looks.
    pub mig_req: bool,
    /// Pad bytes after the payload, 0..=3.
    pub pad_count: u8,
    /// Transport version: 0. Four bits.
    pub tver: u8,
    /// Partition.
    pub pkey: PKey,
    /// Forward congestion: sent 0.
    pub fecn: bool,
    /// Backward congestion: set in a CNP only.
    pub becn: bool,
    /// Reserved, six bits.
    pub resv6: u8,
    /// The QP that the packet is for.
    pub dest_qpn: Qpn,
    /// AckReq: the responder shall acknowledge.
    pub ack_req: bool,
    /// Reserved, seven bits.
    pub resv7: u8,
    /// Packet sequence number.
    pub psn: Psn,
}

impl Bth {
    /// Bytes on the wire.
    pub const LEN: usize = 12;

    /// A BTH as we send it: default partition, no flags but M (as ConnectX), no pad.
    pub const fn new(opcode: Opcode, dest_qpn: Qpn, psn: Psn) -> Self {
        Bth {
            opcode,
            solicited: false,
            mig_req: true,
            pad_count: 0,
            tver: 0,
            pkey: PKey::DEFAULT,
            fecn: false,
            becn: false,
            resv6: 0,
            dest_qpn,
            ack_req: false,
            resv7: 0,
            psn,
        }
    }

    /// The BTH of a congestion notification to `dest_qpn` (rocev2 facts, congestion 2): BECN set, all else zero.
    pub const fn cnp(dest_qpn: Qpn) -> Self {
        Bth { becn: true, mig_req: false, ..Bth::new(Opcode::CNP, dest_qpn, Psn::new(0)) }
    }

    /// Pad bytes that a payload of `len` bytes needs: it ends on a multiple of four.
    pub const fn pad_for(len: usize) -> u8 {
        (len.wrapping_neg() & 3) as u8
    }

    /// From its bytes; every bit is kept.
    #[inline]
    pub fn from_bytes(bytes: &[u8; Self::LEN]) -> Self {
        let [opcode, flags, p0, p1, congestion, q0, q1, q2, ack, s0, s1, s2] = *bytes;
        Bth {
            opcode: Opcode(opcode),
            solicited: flags & 0x80 != 0,
            mig_req: flags & 0x40 != 0,
            pad_count: flags >> 4 & 3,
            tver: flags & 0x0F,
            pkey: PKey(u16::from_be_bytes([p0, p1])),
            fecn: congestion & 0x80 != 0,
            becn: congestion & 0x40 != 0,
            resv6: congestion & 0x3F,
            dest_qpn: Qpn::from_bytes([q0, q1, q2]),
            ack_req: ack & 0x80 != 0,
            resv7: ack & 0x7F,
            psn: Psn::from_bytes([s0, s1, s2]),
        }
    }

    /// Its bytes. Bits of a field beyond its width are dropped.
    #[inline]
    pub fn to_bytes(&self) -> [u8; Self::LEN] {
        let flags = u8::from(self.solicited) << 7
            | u8::from(self.mig_req) << 6
            | (self.pad_count & 3) << 4
            | self.tver & 0x0F;
        let congestion = u8::from(self.fecn) << 7 | u8::from(self.becn) << 6 | self.resv6 & 0x3F;
        let ack = u8::from(self.ack_req) << 7 | self.resv7 & 0x7F;
        let [p0, p1] = self.pkey.0.to_be_bytes();
        let [q0, q1, q2] = self.dest_qpn.to_bytes();
        let [s0, s1, s2] = self.psn.to_bytes();
        [self.opcode.0, flags, p0, p1, congestion, q0, q1, q2, ack, s0, s1, s2]
    }
}

slice_forms!(Bth);
