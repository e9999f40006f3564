//! Frames that the slow path sends. Short ones are left for the port to pad.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use smoltcp::phy::ChecksumCapabilities;
use smoltcp::wire::{
    ArpOperation, ArpPacket, ArpRepr, EthernetAddress, Icmpv4Packet, Icmpv4Repr, Icmpv6Packet, Icmpv6Repr,
    IpProtocol, Ipv4Packet, Ipv4Repr, Ipv6Packet, Ipv6Repr, NdiscNeighborFlags, NdiscRepr,
};

use wire::{EthernetHeader, Mac, ethertype};

use super::parse::{ArpKind, ETHERTYPE_ARP, Echo, Link, ND_HOP_LIMIT};

/// What Linux uses for packets of its own.
const TTL: u8 = 64;
const IPV4_HEADER: usize = 20;
const IPV6_HEADER: usize = 40;
const ECHO_HEADER: usize = 8;

/// An ARP packet. `target_mac` is zero in questions.
pub(super) fn arp(link: Link, kind: ArpKind, sender: (Mac, Ipv4Addr), target: (Mac, Ipv4Addr)) -> Vec<u8> {
    let repr = ArpRepr::EthernetIpv4 {
        operation: match kind {
            ArpKind::Request => ArpOperation::Request,
            ArpKind::Reply => ArpOperation::Reply,
        },
        source_hardware_addr: EthernetAddress(sender.0.octets()),
        source_protocol_addr: sender.1,
        target_hardware_addr: EthernetAddress(target.0.octets()),
        target_protocol_addr: target.1,
    };
    frame(link, ETHERTYPE_ARP, repr.buffer_len(), |bytes| repr.emit(&mut ArpPacket::new_unchecked(bytes)))
}

/// A neighbour solicitation; it always names our MAC.
pub(super) fn solicitation(link: Link, source: Ipv6Addr, destination: Ipv6Addr, target: Ipv6Addr) -> Vec<u8> {
    let lladdr = Some(EthernetAddress(link.source.octets()).into());
    icmpv6(
        link,
        (source, destination, ND_HOP_LIMIT, 0),
        Icmpv6Repr::Ndisc(NdiscRepr::NeighborSolicit { target_addr: target, lladdr }),
    )
}

/// A neighbour advertisement for `target`, an address of ours.
pub(super) fn advertisement(link: Link, target: Ipv6Addr, destination: Ipv6Addr, solicited: bool) -> Vec<u8> {
    let lladdr = Some(EthernetAddress(link.source.octets()).into());
    let mut flags = NdiscNeighborFlags::OVERRIDE;
    flags.set(NdiscNeighborFlags::SOLICITED, solicited);
    icmpv6(
        link,
        (target, destination, ND_HOP_LIMIT, 0),
        Icmpv6Repr::Ndisc(NdiscRepr::NeighborAdvert { flags, target_addr: target, lladdr }),
    )
}

/// The length of an echo's IP packet in bytes: what the MTU bounds.
pub(super) fn echo_length(echo: &Echo<'_>) -> usize {
    let header = if echo.source.is_ipv4() { IPV4_HEADER } else { IPV6_HEADER };
    header + ECHO_HEADER + echo.data.len()
}

/// An echo reply. `None` if the two addresses are of different families.
pub(super) fn echo_reply(link: Link, reply: &Echo<'_>) -> Option<Vec<u8>> {
    let Echo { source, destination, class, ident, sequence: seq_no, data } = *reply;
    match (source, destination) {
        (IpAddr::V4(source), IpAddr::V4(destination)) => {
            let icmp = Icmpv4Repr::EchoReply { ident, seq_no, data };
            let ip = Ipv4Repr {
                src_addr: source,
                dst_addr: destination,
                next_header: IpProtocol::Icmp,
                payload_len: icmp.buffer_len(),
                hop_limit: TTL,
            };
            let checksums = ChecksumCapabilities::default();
            Some(frame(link, ethertype::IPV4, ip.buffer_len() + ip.payload_len, |bytes| {
                let mut packet = Ipv4Packet::new_unchecked(bytes);
                ip.emit(&mut packet, &checksums);
                packet.set_dscp(class >> 2);
                packet.fill_checksum();
                icmp.emit(&mut Icmpv4Packet::new_unchecked(packet.payload_mut()), &checksums);
            }))
        }
        (IpAddr::V6(source), IpAddr::V6(destination)) => {
            let icmp = Icmpv6Repr::EchoReply { ident, seq_no, data };
            Some(icmpv6(link, (source, destination, TTL, class), icmp))
        }
        _ => None,
    }
}

fn icmpv6(
    link: Link,
    (source, destination, hop_limit, class): (Ipv6Addr, Ipv6Addr, u8, u8),
    icmp: Icmpv6Repr<'_>,
) -> Vec<u8> {
    let ip = Ipv6Repr {
        src_addr: source,
        dst_addr: destination,
        next_header: IpProtocol::Icmpv6,
        payload_len: icmp.buffer_len(),
        hop_limit,
    };
    frame(link, ethertype::IPV6, ip.buffer_len() + ip.payload_len, |bytes| {
        let mut packet = Ipv6Packet::new_unchecked(bytes);
        ip.emit(&mut packet);
        packet.set_traffic_class(class);
        let mut payload = Icmpv6Packet::new_unchecked(packet.payload_mut());
        icmp.emit(&source, &destination, &mut payload, &ChecksumCapabilities::default());
    })
}

/// The Ethernet header with its tag, then `length` zero bytes for `fill`.
fn frame(link: Link, ethertype: u16, length: usize, fill: impl FnOnce(&mut [u8])) -> Vec<u8> {
    let Link { destination: dmac, source: smac, vlan } = link;
    let header = EthernetHeader { dmac, smac, vlan, ethertype };
    let start = header.len();
    let mut bytes = vec![0; start + length];
    header.emit(&mut bytes);
    fill(&mut bytes[start..]);
    bytes
}
