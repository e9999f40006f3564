//! The base transport header.

use super::slice_forms;
use crate::opcode::Opcode;
use crate::types::{PKey, Psn, Qpn};
use std::fmt;

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
        BthWords::from_bytes(bytes).take_apart()
    }

    /// Its bytes. Bits of a field beyond its width are dropped.
    #[inline]
    pub fn to_bytes(&self) -> [u8; Self::LEN] {
        let bit = |set: bool, at: u32| u32::from(set) << at;
        let first = u32::from(self.opcode.0) << 24
            | bit(self.solicited, 23)
            | bit(self.mig_req, 22)
            | u32::from(self.pad_count & 3) << 20
            | u32::from(self.tver & 0x0F) << 16
            | u32::from(self.pkey.0);
        let second = bit(self.fecn, 31)
            | bit(self.becn, 30)
            | u32::from(self.resv6 & 0x3F) << 24
            | self.dest_qpn.value();
        let third = bit(self.ack_req, 31) | u32::from(self.resv7 & 0x7F) << 24 | self.psn.value();
        let mut bytes = [0; Self::LEN];
        // As it is copied to a frame: eight bytes and four.
        bytes[..8].copy_from_slice(&(u64::from(first) << 32 | u64::from(second)).to_be_bytes());
        bytes[8..].copy_from_slice(&third.to_be_bytes());
        bytes
    }

    /// Whether the last four bytes of a BTH ask for an acknowledgement.
    #[inline]
    pub const fn asks_ack(last: [u8; 4]) -> bool {
        last[0] & 0x80 != 0
    }

    /// The bytes of a BTH with another AckReq and PSN.
    #[inline]
    pub fn with_last(mut bytes: [u8; Self::LEN], ack_req: bool, psn: Psn) -> [u8; Self::LEN] {
        let reserved = u32::from(bytes[8] & 0x7F) << 24;
        bytes[8..].copy_from_slice(&(reserved | Self::last(ack_req, psn)).to_be_bytes());
        bytes
    }

    /// The last four bytes of a BTH without reserved bits, as a number.
    #[inline(always)]
    pub(crate) const fn last(ack_req: bool, psn: Psn) -> u32 {
        (ack_req as u32) << 31 | psn.value()
    }

    /// The pad count in the bytes of a BTH.
    #[inline]
    pub const fn pad_in(bytes: &[u8; Self::LEN]) -> usize {
        (bytes[1] >> 4 & 3) as usize
    }
}

slice_forms!(Bth);

/// A BTH as the three numbers that its bytes are: all of it, in little room.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct BthWords([u32; 3]);

impl BthWords {
    #[inline(always)]
    pub fn from_bytes(bytes: &[u8; Bth::LEN]) -> Self {
        let word = |at: usize| u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        BthWords([word(0), word(4), word(8)])
    }

    pub const fn with_psn(mut self, psn: Psn) -> Self {
        self.0[2] = self.0[2] & 0xFF00_0000 | psn.value();
        self
    }

    pub const fn with_opcode(mut self, opcode: Opcode) -> Self {
        self.0[0] = self.0[0] & 0x00FF_FFFF | (opcode.0 as u32) << 24;
        self
    }

    /// The same with other last four bytes: AckReq, seven reserved bits and the PSN.
    pub const fn with_last(mut self, last: u32) -> Self {
        self.0[2] = last;
        self
    }

    /// Its fields. Where this is inlined, those that nobody uses cost nothing.
    #[inline(always)]
    pub const fn take_apart(self) -> Bth {
        let [first, second, third] = self.0;
        Bth {
            opcode: Opcode((first >> 24) as u8),
            solicited: first & 1 << 23 != 0,
            mig_req: first & 1 << 22 != 0,
            pad_count: (first >> 20 & 3) as u8,
            tver: (first >> 16 & 0x0F) as u8,
            pkey: PKey(first as u16),
            fecn: second & 1 << 31 != 0,
            becn: second & 1 << 30 != 0,
            resv6: (second >> 24 & 0x3F) as u8,
            dest_qpn: Qpn::new(second),
            ack_req: third & 1 << 31 != 0,
            resv7: (third >> 24 & 0x7F) as u8,
            psn: Psn::new(third),
        }
    }
}

impl fmt::Debug for BthWords {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.take_apart(), f)
    }
}
