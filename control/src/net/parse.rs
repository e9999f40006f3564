//! From bytes to the few messages that the slow path serves. Everything else becomes the counter of its
//! reason.
//!
//! The order of checks is that of the layers: length, then checksum, then meaning. What depends on our own
//! addresses is decided in `interface`.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use smoltcp::phy::ChecksumCapabilities;
use smoltcp::wire::{
    ArpOperation, ArpPacket, ArpRepr, Icmpv4Message, Icmpv4Packet, Icmpv4Repr, Icmpv6Message, Icmpv6Packet,
    Icmpv6Repr, IpProtocol, Ipv4Packet, Ipv6Packet, NdiscNeighborFlags, NdiscRepr, RawHardwareAddress,
};

use wire::{EthernetHeader, Mac, Vlan, ethertype};

use super::Counter;
use super::address::is_station;
use super::membership::{self, Query};
use super::too_big;

/// The EtherType of ARP; those of IP are the data path's too and come from `wire`.
pub(super) const ETHERTYPE_ARP: u16 = 0x0806;

/// The hop limit of neighbour discovery: proof that no router passed it on (unverified RFC 4861 7.1.1,
/// 7.1.2).
pub(super) const ND_HOP_LIMIT: u8 = 255;

/// unverified RFC 792: the code of "fragmentation needed and DF set".
const FRAGMENTATION_NEEDED: u8 = 4;

/// The Ethernet header without its EtherType.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Link {
    pub destination: Mac,
    pub source: Mac,
    pub vlan: Option<Vlan>,
}

/// A message for the slow path. Checksums, lengths and the rules of each protocol hold; addresses are
/// unchecked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Message<'a> {
    Arp { operation: ArpKind, sender_mac: Mac, sender: Ipv4Addr, target: Ipv4Addr },
    EchoRequest(Echo<'a>),
    GroupQuery(Query),
    TooBig(too_big::Message),
    Solicitation { source: Ipv6Addr, target: Ipv6Addr, sender_mac: Option<Mac> },
    Advertisement { target: Ipv6Addr, target_mac: Option<Mac>, overrides: bool },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ArpKind {
    Request,
    Reply,
}

/// An echo request, or the reply to it with the addresses swapped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Echo<'a> {
    pub source: IpAddr,
    pub destination: IpAddr,
    /// TOS or traffic class.
    pub class: u8,
    pub ident: u16,
    pub sequence: u16,
    pub data: &'a [u8],
}

/// Splits a frame into its Ethernet header, EtherType and the rest. One 802.1Q tag is taken off.
pub(super) fn link(frame: &[u8]) -> Result<(Link, u16, &[u8]), Counter> {
    let header = EthernetHeader::parse(frame).ok_or(Counter::Malformed)?;
    let payload = frame.get(header.len()..).ok_or(Counter::Malformed)?;
    if !is_station(header.smac) {
        return Err(Counter::BadSource);
    }
    let link = Link { destination: header.dmac, source: header.smac, vlan: header.vlan };
    Ok((link, header.ethertype, payload))
}

/// Reads what follows the Ethernet header.
pub(super) fn message(kind: u16, payload: &[u8]) -> Result<Message<'_>, Counter> {
    match kind {
        ETHERTYPE_ARP => arp(payload),
        ethertype::IPV4 => ipv4(payload),
        ethertype::IPV6 => ipv6(payload),
        _ => Err(Counter::UnknownProtocol),
    }
}

fn arp(payload: &[u8]) -> Result<Message<'_>, Counter> {
    let packet = ArpPacket::new_checked(payload).map_err(|_| Counter::Malformed)?;
    let ArpRepr::EthernetIpv4 {
        operation,
        source_hardware_addr,
        source_protocol_addr,
        target_protocol_addr,
        ..
    } = ArpRepr::parse(&packet).map_err(|_| Counter::Malformed)?
    else {
        return Err(Counter::UnknownProtocol);
    };
    let operation = match operation {
        ArpOperation::Request => ArpKind::Request,
        ArpOperation::Reply => ArpKind::Reply,
        ArpOperation::Unknown(_) => return Err(Counter::UnknownProtocol),
    };
    let sender_mac = Mac(source_hardware_addr.0);
    if !is_station(sender_mac) {
        return Err(Counter::BadSource);
    }
    Ok(Message::Arp { operation, sender_mac, sender: source_protocol_addr, target: target_protocol_addr })
}

fn ipv4(payload: &[u8]) -> Result<Message<'_>, Counter> {
    let packet = Ipv4Packet::new_checked(payload).map_err(|_| Counter::Malformed)?;
    if packet.version() != 4 || packet.header_len() < 20 {
        return Err(Counter::Malformed);
    }
    if !packet.verify_checksum() {
        return Err(Counter::BadChecksum);
    }
    if !matches!(packet.next_header(), IpProtocol::Icmp | IpProtocol::Igmp) {
        return Err(Counter::UnknownProtocol);
    }
    if packet.more_frags() || packet.frag_offset() != 0 {
        return Err(Counter::Fragment);
    }
    if packet.next_header() == IpProtocol::Igmp {
        return membership::igmp(packet.payload()).map(Message::GroupQuery);
    }
    let icmp = Icmpv4Packet::new_checked(packet.payload()).map_err(|_| Counter::Malformed)?;
    if !icmp.verify_checksum() {
        return Err(Counter::BadChecksum);
    }
    match icmp.msg_type() {
        Icmpv4Message::EchoRequest => {}
        Icmpv4Message::DstUnreachable if icmp.msg_code() == FRAGMENTATION_NEEDED => {
            let quoted = too_big::quoted_v4(icmp.data()).ok_or(Counter::TooBigNotOurs)?;
            // unverified RFC 1191 4: where an unreachable destination has nothing.
            let mtu = packet.payload().get(6..8).and_then(|bytes| bytes.first_chunk::<2>());
            let mtu = u16::from_be_bytes(*mtu.ok_or(Counter::Malformed)?).into();
            let (reporter, to) = (IpAddr::V4(packet.src_addr()), IpAddr::V4(packet.dst_addr()));
            return Ok(Message::TooBig(too_big::Message { reporter, to, mtu, quoted }));
        }
        _ => return Err(Counter::UnknownProtocol),
    }
    match Icmpv4Repr::parse(&icmp, &ChecksumCapabilities::ignored()) {
        Ok(Icmpv4Repr::EchoRequest { ident, seq_no, data }) => Ok(Message::EchoRequest(Echo {
            source: IpAddr::V4(packet.src_addr()),
            destination: IpAddr::V4(packet.dst_addr()),
            class: packet.dscp() << 2,
            ident,
            sequence: seq_no,
            data,
        })),
        _ => Err(Counter::Malformed),
    }
}

fn ipv6(payload: &[u8]) -> Result<Message<'_>, Counter> {
    let packet = Ipv6Packet::new_checked(payload).map_err(|_| Counter::Malformed)?;
    if packet.version() != 6 {
        return Err(Counter::Malformed);
    }
    match packet.next_header() {
        IpProtocol::Icmpv6 => {}
        IpProtocol::HopByHop => return listener_query(&packet),
        IpProtocol::Ipv6Frag => return Err(Counter::Fragment),
        _ => return Err(Counter::UnknownProtocol),
    }
    let icmp = Icmpv6Packet::new_checked(packet.payload()).map_err(|_| Counter::Malformed)?;
    let (source, destination) = (packet.src_addr(), packet.dst_addr());
    if !icmp.verify_checksum(&source, &destination) {
        return Err(Counter::BadChecksum);
    }
    match icmp.msg_type() {
        Icmpv6Message::EchoRequest => {}
        Icmpv6Message::PktTooBig => {
            let quoted = too_big::quoted_v6(icmp.payload()).ok_or(Counter::TooBigNotOurs)?;
            let (reporter, to) = (IpAddr::V6(source), IpAddr::V6(destination));
            return Ok(Message::TooBig(too_big::Message {
                reporter,
                to,
                mtu: icmp.pkt_too_big_mtu(),
                quoted,
            }));
        }
        Icmpv6Message::NeighborSolicit | Icmpv6Message::NeighborAdvert => check_nd(&packet, &icmp)?,
        _ => return Err(Counter::UnknownProtocol),
    }
    match Icmpv6Repr::parse(&source, &destination, &icmp, &ChecksumCapabilities::ignored()) {
        Ok(Icmpv6Repr::EchoRequest { ident, seq_no, data }) => Ok(Message::EchoRequest(Echo {
            source: IpAddr::V6(source),
            destination: IpAddr::V6(destination),
            class: packet.traffic_class() & !0b11,
            ident,
            sequence: seq_no,
            data,
        })),
        Ok(Icmpv6Repr::Ndisc(nd)) => neighbour(source, destination, nd),
        _ => Err(Counter::Malformed),
    }
}

/// MLD comes behind a hop-by-hop header, and is the only thing that we look for there.
fn listener_query<'a>(packet: &Ipv6Packet<&[u8]>) -> Result<Message<'a>, Counter> {
    let payload = packet.payload();
    let Some(&[next, length]) = payload.first_chunk() else { return Err(Counter::Malformed) };
    if IpProtocol::from(next) != IpProtocol::Icmpv6 {
        return Err(Counter::UnknownProtocol);
    }
    let message = payload.get(8 * (usize::from(length) + 1)..).ok_or(Counter::Malformed)?;
    let query = membership::mld(packet.src_addr(), packet.dst_addr(), message)?;
    // unverified RFC 3810 5.1.14: proof that no router passed it on.
    if packet.hop_limit() == 1 { Ok(Message::GroupQuery(query)) } else { Err(Counter::BadSource) }
}

/// unverified RFC 4861 7.1: the hop limit, and options that have a length and end where the packet ends.
fn check_nd(packet: &Ipv6Packet<&[u8]>, icmp: &Icmpv6Packet<&[u8]>) -> Result<(), Counter> {
    if packet.hop_limit() != ND_HOP_LIMIT {
        return Err(Counter::NdHopLimit);
    }
    let mut options = icmp.payload();
    while !options.is_empty() {
        // The length counts eight octets and includes the two of type and length.
        let length = usize::from(*options.get(1).ok_or(Counter::NdInvalid)?) * 8;
        if length == 0 {
            return Err(Counter::NdInvalid);
        }
        options = options.get(length..).ok_or(Counter::NdInvalid)?;
    }
    Ok(())
}

fn neighbour(source: Ipv6Addr, destination: Ipv6Addr, nd: NdiscRepr<'_>) -> Result<Message<'_>, Counter> {
    match nd {
        NdiscRepr::NeighborSolicit { target_addr, lladdr } => {
            let to_group = super::solicited_node(target_addr) == destination;
            // unverified RFC 4861 7.1.1: an asker without an address asks the group and names no MAC.
            let anonymous_ok = !source.is_unspecified() || (to_group && lladdr.is_none());
            if target_addr.is_multicast() || source.is_multicast() || !anonymous_ok {
                return Err(Counter::NdInvalid);
            }
            Ok(Message::Solicitation { source, target: target_addr, sender_mac: station(lladdr)? })
        }
        NdiscRepr::NeighborAdvert { flags, target_addr, lladdr } => {
            // unverified RFC 4861 7.1.2: nobody solicited what was sent to a group.
            let false_answer = destination.is_multicast() && flags.contains(NdiscNeighborFlags::SOLICITED);
            if target_addr.is_multicast() || false_answer {
                return Err(Counter::NdInvalid);
            }
            let overrides = flags.contains(NdiscNeighborFlags::OVERRIDE);
            Ok(Message::Advertisement { target: target_addr, target_mac: station(lladdr)?, overrides })
        }
        _ => Err(Counter::UnknownProtocol),
    }
}

fn station(address: Option<RawHardwareAddress>) -> Result<Option<Mac>, Counter> {
    let Some(address) = address else { return Ok(None) };
    let mac = Mac(address.as_bytes().try_into().map_err(|_| Counter::NdInvalid)?);
    if is_station(mac) { Ok(Some(mac)) } else { Err(Counter::BadSource) }
}
