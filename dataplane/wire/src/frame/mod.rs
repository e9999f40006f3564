//! Receive parse: from the first bytes of a frame to where everything in it lies (rocev2 facts, wire 1 and 15).
//!
//! Lengths come from IP and UDP, never from the frame, which Ethernet may have padded. What is not RoCE at all is told
//! apart from RoCE that is broken, see [`FrameError::is_roce`]. Left out: everything that needs a table (destination GID,
//! QP, P_Key, Q_Key), and what needs the payload, which has functions of its own ([`Frame::verify_icrc`],
//! [`Frame::verify_udp_checksum`]).

mod error;
mod flow;
mod lower;
mod run;

pub use error::FrameError;
pub use flow::Flow;
pub use run::Run;

use crate::header::{Bth, BthWords, ExtHeader};
use crate::icrc::ICRC_LEN;
use crate::net::{EthernetHeader, Ipv4Header, Ipv6Header, OnesComplement, UdpHeader, Vlan, protocol};
use crate::opcode::OpcodeInfo;
use crate::types::{Gid, Mac, Psn, Qpn};
use lower::Lower;

/// So many bytes at the beginning of a frame hold all of its headers: 18 + 40 + 8 + 12 + 40 = 118 at most.
pub const HEAD_LEN: usize = 128;

/// What carries the BTH.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Network {
    /// RoCEv2 over IPv4.
    V4,
    /// RoCEv2 over IPv6.
    V6,
    /// RoCE v1: a GRH directly on Ethernet, without UDP.
    V1,
}

impl Network {
    /// Bytes of the network header.
    pub const fn header_len(self) -> usize {
        match self {
            Network::V4 => Ipv4Header::LEN,
            Network::V6 | Network::V1 => Ipv6Header::LEN,
        }
    }

    /// Bytes of UDP header.
    pub const fn udp_len(self) -> usize {
        match self {
            Network::V4 | Network::V6 => UdpHeader::LEN,
            Network::V1 => 0,
        }
    }
}

/// A RoCE frame, parsed. Small and free of references: it says where things are in the bytes that it was parsed from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame {
    /// Destination MAC.
    pub dmac: Mac,
    /// Source MAC.
    pub smac: Mac,
    /// 802.1Q tag.
    pub vlan: Option<Vlan>,
    /// What carries the BTH.
    pub network: Network,
    /// Source address.
    pub src: Gid,
    /// Destination address.
    pub dst: Gid,
    /// DSCP in the upper 6 bits, ECN in the lower 2.
    pub traffic_class: u8,
    /// IPv6 or GRH flow label; 0 for IPv4.
    pub flow_label: u32,
    /// TTL or hop limit.
    pub hop_limit: u8,
    /// UDP source port; 0 for RoCE v1.
    pub udp_sport: u16,
    /// UDP checksum as received; 0 is "none", and for RoCE v1.
    pub udp_checksum: u16,
    bth: BthWords,
    /// What its opcode means.
    pub info: &'static OpcodeInfo,
    l3: u8,
    bth_offset: u8,
    payload_offset: u8,
    payload_len: u16,
}

impl Frame {
    /// Parses a frame of `frame_len` bytes (without FCS) by its first bytes.
    ///
    /// `head` is the beginning of the frame in one piece: all of it, or [`HEAD_LEN`] bytes or more.
    ///
    /// Errors name the first check that fails, in the order of the facts: Ethernet, IP, UDP, opcode, lengths, TVer,
    /// destination QP.
    #[inline(always)]
    pub fn parse(head: &[u8], frame_len: usize) -> Result<Frame, FrameError> {
        let ethernet = EthernetHeader::parse(head).ok_or(FrameError::Truncated)?;
        let lower = Lower::parse(head, ethernet.len(), ethernet.ethertype, frame_len)?;
        let bth_offset = ethernet.len() + lower.network.header_len() + lower.network.udp_len();
        let Transport { bth, info, payload_len } = Transport::parse(head, bth_offset, lower.transport_len)?;
        Ok(Frame {
            dmac: ethernet.dmac,
            smac: ethernet.smac,
            vlan: ethernet.vlan,
            network: lower.network,
            src: Gid(lower.src.to_be_bytes()),
            dst: Gid(lower.dst.to_be_bytes()),
            traffic_class: lower.traffic_class,
            flow_label: lower.flow_label,
            hop_limit: lower.hop_limit,
            udp_sport: lower.udp_sport,
            udp_checksum: lower.udp_checksum,
            bth,
            info,
            l3: ethernet.len() as u8,
            bth_offset: bth_offset as u8,
            payload_offset: (bth_offset + info.header_len()) as u8,
            payload_len,
        })
    }

    /// An extension header of this packet: `frame.ext::<Reth>(head)`. `None` when its opcode has no such header (or `head`
    /// is not what the frame was parsed from).
    #[inline]
    pub fn ext<H: ExtHeader>(&self, head: &[u8]) -> Option<H> {
        let offset = self.info.offset_of(H::KIND)?;
        H::parse(head.get(self.bth_offset() + offset..)?)
    }

    /// The base transport header. Most fields of most packets are never looked at: they are taken apart here.
    #[inline(always)]
    pub const fn bth(&self) -> Bth {
        self.bth.take_apart()
    }

    /// What a frame was parsed to that differs from this one's in its PSN.
    #[must_use]
    pub const fn with_psn(mut self, psn: Psn) -> Frame {
        self.bth = self.bth.with_psn(psn);
        self
    }

    /// Where the network header begins, in bytes from the start of the frame.
    #[inline]
    pub const fn l3_offset(&self) -> usize {
        self.l3 as usize
    }

    /// Where the BTH begins.
    #[inline]
    pub const fn bth_offset(&self) -> usize {
        self.bth_offset as usize
    }

    /// Where the payload begins.
    #[inline]
    pub const fn payload_offset(&self) -> usize {
        self.payload_offset as usize
    }

    /// Bytes of payload, without pad.
    #[inline]
    pub const fn payload_len(&self) -> usize {
        self.payload_len as usize
    }

    /// Where the iCRC begins, behind payload and pad.
    #[inline]
    pub const fn icrc_offset(&self) -> usize {
        self.payload_offset() + self.payload_len as usize + self.bth().pad_count as usize
    }

    /// Where the packet ends; the frame may go on with Ethernet padding.
    #[inline]
    pub const fn end(&self) -> usize {
        self.icrc_offset() + ICRC_LEN
    }

    /// Bytes from the BTH to the iCRC, both included.
    pub const fn transport_len(&self) -> usize {
        self.end() - self.bth_offset()
    }

    /// Differentiated services code point.
    pub const fn dscp(&self) -> u8 {
        self.traffic_class >> 2
    }

    /// Congestion field: 3 is "congestion experienced".
    pub const fn ecn(&self) -> u8 {
        self.traffic_class & 3
    }

    /// The network header as received.
    pub fn network_header<'a>(&self, head: &'a [u8]) -> &'a [u8] {
        head.get(self.l3_offset()..self.l3_offset() + self.network.header_len()).unwrap_or_default()
    }

    /// Whether the UDP checksum is right; 0 means there is none, and is right. `segments` are all bytes of the frame in
    /// order, cut anywhere; they are looked at only if there is a checksum.
    ///
    /// Errors: [`FrameError::UdpChecksum`], or [`FrameError::Truncated`] when the segments end before the packet does.
    pub fn verify_udp_checksum<'a>(
        &self,
        segments: impl IntoIterator<Item = &'a [u8]>,
    ) -> Result<(), FrameError> {
        if self.udp_checksum == 0 {
            return Ok(());
        }
        let mut sum = OnesComplement::default();
        // The ::ffff: in front of an IPv4 address is a word of ones, which is zero in this arithmetic.
        sum.bytes(&self.src.0);
        sum.bytes(&self.dst.0);
        sum.word(u16::from(protocol::UDP));
        sum.word((UdpHeader::LEN + self.transport_len()) as u16);
        self.each_piece(segments, self.bth_offset() - UdpHeader::LEN, |piece| sum.bytes(piece))?;
        if sum.folded() == 0xFFFF { Ok(()) } else { Err(FrameError::UdpChecksum) }
    }

    /// Calls `with` for the bytes from offset `from` to the end of the packet, piece by piece.
    #[inline(always)]
    pub(crate) fn each_piece<'a>(
        &self,
        segments: impl IntoIterator<Item = &'a [u8]>,
        from: usize,
        mut with: impl FnMut(&'a [u8]),
    ) -> Result<(), FrameError> {
        let mut skip = from;
        let mut left = self.end() - from;
        for segment in segments {
            let begin = skip.min(segment.len());
            skip -= begin;
            let take = left.min(segment.len() - begin);
            with(&segment[begin..begin + take]);
            left -= take;
            if left == 0 {
                return Ok(());
            }
        }
        Err(FrameError::Truncated)
    }
}

/// What follows the layers below.
struct Transport {
    bth: BthWords,
    info: &'static OpcodeInfo,
    payload_len: u16,
}

impl Transport {
    /// Parses the BTH at `bth_offset`, of a packet that is `len` bytes long from there on.
    #[inline(always)]
    fn parse(head: &[u8], bth_offset: usize, len: usize) -> Result<Transport, FrameError> {
        let room = len.checked_sub(Bth::LEN + ICRC_LEN).ok_or(FrameError::TooShort)?;
        let bytes = head.get(bth_offset..).and_then(|rest| rest.first_chunk());
        let words = BthWords::from_bytes(bytes.ok_or(FrameError::Truncated)?);
        let bth = words.take_apart();
        let info = bth.opcode.info().ok_or(FrameError::UnknownOpcode)?;
        let payload_len = room
            .checked_sub(info.ext_len() + usize::from(bth.pad_count))
            .ok_or(FrameError::NegativePayload)?;
        if bth.tver != 0 {
            return Err(FrameError::TransportVersion);
        }
        if bth.dest_qpn == Qpn::SMI {
            return Err(FrameError::DestQpZero);
        }
        if head.len() < bth_offset + info.header_len() {
            return Err(FrameError::Truncated);
        }
        Ok(Transport { bth: words, info, payload_len: payload_len as u16 })
    }
}
