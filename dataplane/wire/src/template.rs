//! Header templates: Ethernet, IP and UDP of everything that one QP (or address handle) sends.
//!
//! All but lengths, IPv4 identification and IPv4 checksum is written once. The same holds for the iCRC: it is computed once
//! with zeros in the variable fields, and their bytes are put in through tables, because CRCs of equally long strings add up.

use crate::crc::{Change, change_after, update};
use crate::frame::Network;
use crate::icrc::{Icrc, mask_headers};
use crate::net::{
    EthernetHeader, Ipv4Header, Ipv6Header, OnesComplement, ROCE_PORT, UdpHeader, Vlan, ethertype, protocol,
};
use crate::types::{Gid, Mac};
use std::net::Ipv6Addr;

/// RoCE v1 or v2.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum RoceVersion {
    /// A GRH on Ethernet.
    V1,
    /// UDP over IP.
    #[default]
    V2,
}

/// Where packets go and what they carry below the BTH.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Addressing {
    /// v1 or v2.
    pub version: RoceVersion,
    /// Source MAC.
    pub smac: Mac,
    /// Destination MAC: the next hop's.
    pub dmac: Mac,
    /// 802.1Q tag.
    pub vlan: Option<Vlan>,
    /// Source GID.
    pub src: Gid,
    /// Destination GID. In v2, IPv4 is spoken when it is `::ffff:a.b.c.d`.
    pub dst: Gid,
    /// DSCP in the upper 6 bits, ECN in the lower 2.
    pub traffic_class: u8,
    /// IPv6 flow label, 20 bits; not on the wire of IPv4.
    pub flow_label: u32,
    /// TTL or hop limit.
    pub hop_limit: u8,
    /// UDP source port, see [`crate::udp_sport`].
    pub udp_sport: u16,
}

/// How far a packet has to go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reach {
    /// Another station on the link.
    Wire,
    /// The station that sends it: source and destination MAC are the same.
    Own,
    /// A group, to which the sender's own station may belong too.
    Group,
}

/// In v2, one GID is an IPv4 address and the other is not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MixedFamilies;

impl std::fmt::Display for MixedFamilies {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("source and destination GID must both be IPv4 or both be IPv6 addresses")
    }
}

impl std::error::Error for MixedFamilies {}

impl Addressing {
    /// How far its packets go.
    pub fn reach(&self) -> Reach {
        match () {
            _ if self.dmac == self.smac => Reach::Own,
            _ if self.dmac.is_multicast() => Reach::Group,
            _ => Reach::Wire,
        }
    }

    /// The VLAN of its link, `None` for the untagged one: a tag of VLAN 0 carries a priority only.
    pub fn link_vlan(&self) -> Option<u16> {
        self.vlan.map(|tag| tag.vid).filter(|&vid| vid != 0)
    }

    /// What carries the BTH.
    pub fn network(&self) -> Result<Network, MixedFamilies> {
        match (self.version, self.src.is_v4(), self.dst.is_v4()) {
            (RoceVersion::V1, ..) => Ok(Network::V1),
            (RoceVersion::V2, true, true) => Ok(Network::V4),
            (RoceVersion::V2, false, false) => Ok(Network::V6),
            (RoceVersion::V2, ..) => Err(MixedFamilies),
        }
    }
}

/// Headers below the BTH, ready to be copied.
#[derive(Clone, Copy, Debug)]
pub struct HeaderTemplate {
    bytes: [u8; Self::MAX_LEN],
    len: u8,
    l3: u8,
    network: Network,
    reach: Reach,
    /// IPv4: sum of the header with lengths, identification and checksum zero.
    ip_sum: OnesComplement,
    /// CRC of the masked headers with lengths and identification zero.
    crc: u32,
}

impl HeaderTemplate {
    /// Bytes of the longest headers: Ethernet with tag, IPv6, UDP.
    pub const MAX_LEN: usize = EthernetHeader::MAX_LEN + Ipv6Header::LEN + UdpHeader::LEN;

    /// The template of an address. Fails when its GIDs are of two families.
    pub fn new(addressing: &Addressing) -> Result<HeaderTemplate, MixedFamilies> {
        let network = addressing.network()?;
        let ethertype = match network {
            Network::V4 => ethertype::IPV4,
            Network::V6 => ethertype::IPV6,
            Network::V1 => ethertype::ROCE_V1,
        };
        let Addressing { smac, dmac, vlan, .. } = *addressing;
        let ethernet = EthernetHeader { dmac, smac, vlan, ethertype };
        let l3 = ethernet.len();
        let udp = l3 + network.header_len();
        let len = udp + network.udp_len();

        let mut bytes = [0; Self::MAX_LEN];
        // MAX_LEN has room for every header, so these cannot fail.
        ethernet.emit(&mut bytes);
        write_network(addressing, network, &mut bytes[l3..udp]);
        if network.udp_len() != 0 {
            let header = UdpHeader { sport: addressing.udp_sport, dport: ROCE_PORT, len: 0, checksum: 0 };
            bytes[udp..len].copy_from_slice(&header.to_bytes());
        }

        let mut ip_sum = OnesComplement::default();
        ip_sum.bytes(&bytes[l3..udp]);
        let mut masked = bytes;
        mask_headers(network, &mut masked[l3..len]);
        let crc = update(Icrc::start().value(), &masked[l3..len]);
        Ok(HeaderTemplate {
            bytes,
            len: len as u8,
            l3: l3 as u8,
            network,
            reach: addressing.reach(),
            ip_sum,
            crc,
        })
    }

    /// Bytes of the headers.
    #[inline]
    #[expect(clippy::len_without_is_empty, reason = "headers are never empty")]
    pub const fn len(&self) -> usize {
        self.len as usize
    }

    /// What carries the BTH.
    pub const fn network(&self) -> Network {
        self.network
    }

    /// How far its packets go.
    #[inline]
    pub const fn reach(&self) -> Reach {
        self.reach
    }

    /// The destination GID.
    pub fn dst(&self) -> Gid {
        let l3 = &self.bytes[self.l3 as usize..];
        match (self.network, l3[16..].first_chunk::<4>(), l3[24..].first_chunk::<16>()) {
            (Network::V4, Some(address), _) => Gid::from_v4(*address),
            (_, _, Some(gid)) => Gid(*gid),
            // Every network header is longer.
            (..) => Gid::UNSPECIFIED,
        }
    }

    /// The VLAN in the tag; 0 when there is none.
    pub fn vid(&self) -> u16 {
        if usize::from(self.l3) == EthernetHeader::MAX_LEN {
            Vlan::from_tci(u16::from_be_bytes([self.bytes[14], self.bytes[15]])).vid
        } else {
            0
        }
    }

    /// The destination MAC.
    pub fn dmac(&self) -> Mac {
        let [a, b, c, d, e, f, ..] = self.bytes;
        Mac([a, b, c, d, e, f])
    }

    /// The same headers to another station on the link. No checksum covers MACs.
    pub fn with_dmac(&self, dmac: Mac) -> HeaderTemplate {
        let mut changed = *self;
        changed.bytes[..6].copy_from_slice(&dmac.0);
        changed
    }

    /// The UDP source port; 0 for RoCE v1.
    pub fn udp_sport(&self) -> u16 {
        let at = self.udp();
        if self.network.udp_len() == 0 { 0 } else { u16::from_be_bytes([self.bytes[at], self.bytes[at + 1]]) }
    }

    /// The same headers with another UDP source port; RoCE v1 has none, and stays as it is.
    #[inline]
    pub fn with_udp_sport(&self, sport: u16) -> HeaderTemplate {
        let mut changed = *self;
        if self.network.udp_len() != 0 {
            let at = self.udp();
            changed.bytes[at..at + 2].copy_from_slice(&sport.to_be_bytes());
            // CRCs of equally long strings add up: out with the old port, in with the new.
            changed.crc ^= UDP_SPORT.of(self.udp_sport()) ^ UDP_SPORT.of(sport);
        }
        changed
    }

    const fn udp(&self) -> usize {
        self.l3 as usize + self.network.header_len()
    }

    /// Writes the headers of a packet to the beginning of `out` and gives their length. `transport_len` is what follows
    /// them, from the BTH to the iCRC, both included. `ip_id` is the IPv4 identification: anything, as DF is set.
    ///
    /// Bytes behind the headers, up to [`MAX_LEN`](Self::MAX_LEN), may be overwritten: write the BTH afterwards.
    ///
    /// # Panics
    /// When `out` is shorter than [`len`](Self::len). A caller allots room by that, or for the longest.
    #[inline]
    pub fn emit(&self, out: &mut [u8], ip_id: u16, transport_len: usize) -> usize {
        match out.first_chunk_mut() {
            Some(room) => self.emit_to(room, ip_id, transport_len),
            None => self.emit_short(out, ip_id, transport_len),
        }
        self.len()
    }

    /// The same where there is room for the longest headers: a copy of constant length is a few moves, and whatever is written lies inside.
    #[inline]
    pub(crate) fn emit_to(&self, out: &mut [u8; Self::MAX_LEN], ip_id: u16, transport_len: usize) {
        *out = self.bytes;
        let lengths = self.lengths(transport_len);
        // It is never more, which the compiler does not know.
        let l3 = usize::from(self.l3).min(EthernetHeader::MAX_LEN);
        let mut put = |at: usize, value: u16| out[l3 + at..l3 + at + 2].copy_from_slice(&value.to_be_bytes());
        match self.network {
            Network::V4 => {
                let mut sum = self.ip_sum;
                sum.word(lengths.ip);
                sum.word(ip_id);
                put(2, lengths.ip);
                put(4, ip_id);
                put(10, sum.checksum());
                put(24, lengths.udp);
            }
            Network::V6 => {
                put(4, lengths.ip);
                put(44, lengths.udp);
            }
            Network::V1 => put(4, lengths.ip),
        }
    }

    #[inline(never)]
    fn emit_short(&self, out: &mut [u8], ip_id: u16, transport_len: usize) {
        let mut room = [0; Self::MAX_LEN];
        self.emit_to(&mut room, ip_id, transport_len);
        out[..self.len()].copy_from_slice(&room[..self.len()]);
    }

    /// The iCRC after the headers that [`emit`](Self::emit) writes for the same arguments: BTH and all the rest are to
    /// follow.
    #[inline]
    pub fn icrc(&self, ip_id: u16, transport_len: usize) -> Icrc {
        let lengths = self.lengths(transport_len);
        Icrc::after(match self.network {
            Network::V4 => self.crc ^ IPV4_LEN.of(lengths.ip) ^ IPV4_ID.of(ip_id) ^ UDP_LEN.of(lengths.udp),
            Network::V6 => self.crc ^ IPV6_LEN.of(lengths.ip) ^ UDP_LEN.of(lengths.udp),
            Network::V1 => self.crc ^ GRH_LEN.of(lengths.ip),
        })
    }

    #[inline]
    fn lengths(&self, transport_len: usize) -> Lengths {
        debug_assert!(
            transport_len <= usize::from(u16::MAX) - Ipv4Header::LEN - UdpHeader::LEN,
            "{transport_len}"
        );
        let udp = (transport_len + UdpHeader::LEN) as u16;
        match self.network {
            Network::V4 => Lengths { ip: udp.wrapping_add(Ipv4Header::LEN as u16), udp },
            Network::V6 => Lengths { ip: udp, udp },
            Network::V1 => Lengths { ip: transport_len as u16, udp: 0 },
        }
    }
}

/// Length fields of a packet: IPv4 total length, IPv6 or GRH payload length; UDP length.
struct Lengths {
    ip: u16,
    udp: u16,
}

fn write_network(addressing: &Addressing, network: Network, out: &mut [u8]) {
    let Addressing { traffic_class, flow_label, hop_limit, src, dst, .. } = *addressing;
    if let (Network::V4, Some(src), Some(dst)) = (network, src.v4(), dst.v4()) {
        let header = Ipv4Header {
            tos: traffic_class,
            total_len: 0,
            id: 0,
            df: true,
            mf: false,
            fragment_offset: 0,
            ttl: hop_limit,
            protocol: protocol::UDP,
            checksum: 0,
            src,
            dst,
        };
        out.copy_from_slice(&header.to_bytes());
        return;
    }
    let header = Ipv6Header {
        traffic_class,
        flow_label,
        payload_len: 0,
        next_header: if network == Network::V1 { protocol::BTH } else { protocol::UDP },
        hop_limit,
        src: Ipv6Addr::from(src.0),
        dst: Ipv6Addr::from(dst.0),
    };
    out.copy_from_slice(&header.to_bytes());
}

/// What a 16-bit field adds to the CRC of headers in which it was zero.
pub(crate) struct Field {
    high: Change,
    low: Change,
}

impl Field {
    /// The field at `offset` in headers of `len` bytes.
    pub const fn at(offset: usize, len: usize) -> Field {
        Field { high: change_after(len - offset - 1), low: change_after(len - offset - 2) }
    }

    #[inline]
    pub fn of(&self, value: u16) -> u32 {
        let [high, low] = value.to_be_bytes();
        self.high[usize::from(high)] ^ self.low[usize::from(low)]
    }
}

static IPV4_LEN: Field = Field::at(2, Ipv4Header::LEN + UdpHeader::LEN);
static IPV4_ID: Field = Field::at(4, Ipv4Header::LEN + UdpHeader::LEN);
static IPV6_LEN: Field = Field::at(4, Ipv6Header::LEN + UdpHeader::LEN);
static GRH_LEN: Field = Field::at(4, Ipv6Header::LEN);
static UDP_SPORT: Field = Field::at(0, UdpHeader::LEN);
static UDP_LEN: Field = Field::at(4, UdpHeader::LEN);
