//! IPv4 and IPv6 headers. The GRH of RoCE v1 is an IPv6 header with next header 0x1B.

use std::net::{Ipv4Addr, Ipv6Addr};

/// Protocol numbers that we know.
pub mod protocol {
    /// UDP.
    pub const UDP: u8 = 17;
    /// In a GRH: a BTH follows.
    pub const BTH: u8 = 0x1B;
}

/// An IPv4 header without options.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ipv4Header {
    /// Traffic class: DSCP in the upper 6 bits, ECN in the lower 2.
    pub tos: u8,
    /// Bytes from here to the end of the packet.
    pub total_len: u16,
    /// Identification.
    pub id: u16,
    /// Do not fragment.
    pub df: bool,
    /// More fragments follow.
    pub mf: bool,
    /// Fragment offset in units of 8 bytes, 13 bits.
    pub fragment_offset: u16,
    /// Hops left.
    pub ttl: u8,
    /// What follows.
    pub protocol: u8,
    /// Header checksum as on the wire.
    pub checksum: u16,
    /// Source.
    pub src: Ipv4Addr,
    /// Destination.
    pub dst: Ipv4Addr,
}

impl Ipv4Header {
    /// Bytes on the wire.
    pub const LEN: usize = 20;

    /// From its bytes; version and header length (byte 0) are the caller's to look at.
    #[inline]
    pub fn from_bytes(bytes: &[u8; Self::LEN]) -> Self {
        let word = |at: usize| u16::from_be_bytes([bytes[at], bytes[at + 1]]);
        let address = |at: usize| {
            Ipv4Addr::from_bits(u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]))
        };
        let fragment = word(6);
        Ipv4Header {
            tos: bytes[1],
            total_len: word(2),
            id: word(4),
            df: fragment & 0x4000 != 0,
            mf: fragment & 0x2000 != 0,
            fragment_offset: fragment & 0x1FFF,
            ttl: bytes[8],
            protocol: bytes[9],
            checksum: word(10),
            src: address(12),
            dst: address(16),
        }
    }

    /// Its bytes, with the checksum that the value has.
    pub fn to_bytes(&self) -> [u8; Self::LEN] {
        let fragment = u16::from(self.df) << 14 | u16::from(self.mf) << 13 | self.fragment_offset & 0x1FFF;
        let mut bytes = [0; Self::LEN];
        bytes[0] = 0x45;
        bytes[1] = self.tos;
        bytes[2..4].copy_from_slice(&self.total_len.to_be_bytes());
        bytes[4..6].copy_from_slice(&self.id.to_be_bytes());
        bytes[6..8].copy_from_slice(&fragment.to_be_bytes());
        bytes[8] = self.ttl;
        bytes[9] = self.protocol;
        bytes[10..12].copy_from_slice(&self.checksum.to_be_bytes());
        bytes[12..16].copy_from_slice(&self.src.octets());
        bytes[16..].copy_from_slice(&self.dst.octets());
        bytes
    }

    /// The checksum of a header with these bytes is right. RFC 1071 2: a sum over longer words, and in any byte order, folds to
    /// the same.
    #[inline]
    pub fn checksum_ok(bytes: &[u8; Self::LEN]) -> bool {
        let words =
            bytes.chunks_exact(4).map(|word| u32::from_ne_bytes([word[0], word[1], word[2], word[3]]));
        let sum: u64 = words.map(u64::from).sum();
        // Five 32-bit words sum to less than 2^35: this gives at most 18 bits.
        Self::sum_ok(((sum & 0xFFFF) + (sum >> 16 & 0xFFFF) + (sum >> 32)) as u32)
    }

    /// The same, by the sum of the header's words of two bytes in any one byte order. There are ten: it has less than 20 bits.
    #[inline]
    pub(crate) const fn sum_ok(sum: u32) -> bool {
        // Twice 0xFFFF is out of reach behind this fold, so nothing is left to be folded of a right one.
        (sum & 0xFFFF) + (sum >> 16) == 0xFFFF
    }
}

/// An IPv6 header, or a GRH.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ipv6Header {
    /// Traffic class: DSCP in the upper 6 bits, ECN in the lower 2.
    pub traffic_class: u8,
    /// Flow label, 20 bits.
    pub flow_label: u32,
    /// Bytes after this header.
    pub payload_len: u16,
    /// What follows.
    pub next_header: u8,
    /// Hops left.
    pub hop_limit: u8,
    /// Source.
    pub src: Ipv6Addr,
    /// Destination.
    pub dst: Ipv6Addr,
}

impl Ipv6Header {
    /// Bytes on the wire.
    pub const LEN: usize = 40;

    /// From its bytes; the version (top of byte 0) is the caller's to look at.
    #[inline]
    pub fn from_bytes(bytes: &[u8; Self::LEN]) -> Self {
        let first = u32::from_be_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
        let address = |at: usize| {
            let mut octets = [0; 16];
            octets.copy_from_slice(&bytes[at..at + 16]);
            Ipv6Addr::from_bits(u128::from_be_bytes(octets))
        };
        Ipv6Header {
            traffic_class: (first >> 20) as u8,
            flow_label: first & 0x000F_FFFF,
            payload_len: u16::from_be_bytes([bytes[4], bytes[5]]),
            next_header: bytes[6],
            hop_limit: bytes[7],
            src: address(8),
            dst: address(24),
        }
    }

    /// Its bytes.
    pub fn to_bytes(&self) -> [u8; Self::LEN] {
        let first = 6 << 28 | u32::from(self.traffic_class) << 20 | self.flow_label & 0x000F_FFFF;
        let mut bytes = [0; Self::LEN];
        bytes[..4].copy_from_slice(&first.to_be_bytes());
        bytes[4..6].copy_from_slice(&self.payload_len.to_be_bytes());
        bytes[6] = self.next_header;
        bytes[7] = self.hop_limit;
        bytes[8..24].copy_from_slice(&self.src.octets());
        bytes[24..].copy_from_slice(&self.dst.octets());
        bytes
    }
}
