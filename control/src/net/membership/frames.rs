//! Reports as frames. They carry the Router Alert option and are not forwarded; `smoltcp` has neither that option, nor
//! IGMPv3, nor MLDv1, and all of them are a few fixed bytes.

use super::{Report, Said, Version};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use wire::{EthernetHeader, Gid, Mac, OnesComplement, Vlan, ethertype};

/// Who reports.
#[derive(Clone, Copy, Debug)]
pub(in crate::net) struct Hosts {
    pub mac: Mac,
    pub vlan: Option<Vlan>,
    /// Our first IPv4 address; 0.0.0.0 when there is none, which IGMP allows.
    pub v4: Ipv4Addr,
    /// Our link-local address.
    pub v6: Ipv6Addr,
}

/// unverified RFC 3376 4, 4.2.14; RFC 2236 9; RFC 3810 5.2.14; RFC 2710 8: where they go.
const V3_ROUTERS: Ipv4Addr = Ipv4Addr::new(224, 0, 0, 22);
const ALL_ROUTERS: Ipv4Addr = Ipv4Addr::new(224, 0, 0, 2);
const V2_ROUTERS_6: Ipv6Addr = Ipv6Addr::new(0xFF02, 0, 0, 0, 0, 0, 0, 0x16);
const ALL_ROUTERS_6: Ipv6Addr = Ipv6Addr::new(0xFF02, 0, 0, 0, 0, 0, 0, 2);

const IGMP: u8 = 2;
const ICMPV6: u8 = 58;
/// Class selector 6, as Linux sends it.
const NETWORK_CONTROL: u8 = 0xC0;
const ROUTER_ALERT_V4: [u8; 4] = [0x94, 4, 0, 0];
/// A hop-by-hop header: next header, length, Router Alert for MLD, two bytes of padding.
const ROUTER_ALERT_V6: [u8; 8] = [ICMPV6, 0, 5, 2, 0, 0, 1, 0];

/// The frame of a report. `None` when the version spoken has no words for it.
pub(in crate::net) fn report(from: &Hosts, report: Report) -> Option<Vec<u8>> {
    match report.group {
        IpAddr::V4(group) => igmp(from, group, report.said, report.version),
        IpAddr::V6(group) => Some(mld(from, group, report.said, report.version)),
    }
}

/// Record types of IGMPv3 and MLDv2. No sources excluded is what "any source" is called there.
fn record_type(said: Said) -> u8 {
    match said {
        Said::Member => 2,
        Said::Left => 3,
        Said::Joined => 4,
    }
}

fn igmp(from: &Hosts, group: Ipv4Addr, said: Said, version: Version) -> Option<Vec<u8>> {
    let (to, mut body) = match (version, said) {
        (Version::Third, _) => (V3_ROUTERS, vec![0x22, 0, 0, 0, 0, 0, 0, 1, record_type(said), 0, 0, 0]),
        (Version::Second, Said::Left) => (ALL_ROUTERS, vec![0x17, 0, 0, 0]),
        (Version::Second, _) => (group, vec![0x16, 0, 0, 0]),
        (Version::First, Said::Left) => return None,
        (Version::First, _) => (group, vec![0x12, 0, 0, 0]),
    };
    body.extend(group.octets());
    put_checksum(&mut body, OnesComplement::default());

    let total = (24 + body.len()) as u16;
    let mut ip = vec![0x46, NETWORK_CONTROL];
    ip.extend(total.to_be_bytes());
    ip.extend([0, 0, 0x40, 0, 1, IGMP, 0, 0]);
    ip.extend(from.v4.octets());
    ip.extend(to.octets());
    ip.extend(ROUTER_ALERT_V4);
    let mut sum = OnesComplement::default();
    sum.bytes(&ip);
    ip[10..12].copy_from_slice(&sum.checksum().to_be_bytes());
    ip.extend(body);
    Some(framed(from, to.into(), ethertype::IPV4, &ip))
}

fn mld(from: &Hosts, group: Ipv6Addr, said: Said, version: Version) -> Vec<u8> {
    let (to, mut body) = match (version, said) {
        (Version::Third, _) => (V2_ROUTERS_6, vec![143, 0, 0, 0, 0, 0, 0, 1, record_type(said), 0, 0, 0]),
        (_, Said::Left) => (ALL_ROUTERS_6, vec![132, 0, 0, 0, 0, 0, 0, 0]),
        (..) => (group, vec![131, 0, 0, 0, 0, 0, 0, 0]),
    };
    body.extend(group.octets());
    let sum = pseudo_header(from.v6, to, body.len());
    put_checksum(&mut body, sum);

    let mut ip = vec![0x60, 0, 0, 0];
    ip.extend(((ROUTER_ALERT_V6.len() + body.len()) as u16).to_be_bytes());
    ip.extend([0, 1]);
    ip.extend(from.v6.octets());
    ip.extend(to.octets());
    ip.extend(ROUTER_ALERT_V6);
    ip.extend(body);
    framed(from, to.into(), ethertype::IPV6, &ip)
}

/// What an ICMPv6 checksum covers beside the message of `len` bytes.
pub(super) fn pseudo_header(from: Ipv6Addr, to: Ipv6Addr, len: usize) -> OnesComplement {
    let mut sum = OnesComplement::default();
    sum.bytes(&from.octets());
    sum.bytes(&to.octets());
    sum.word(len as u16);
    sum.word(u16::from(ICMPV6));
    sum
}

fn put_checksum(body: &mut [u8], mut sum: OnesComplement) {
    sum.bytes(body);
    body[2..4].copy_from_slice(&sum.checksum().to_be_bytes());
}

fn framed(from: &Hosts, to: IpAddr, ethertype: u16, packet: &[u8]) -> Vec<u8> {
    let dmac = Gid::from(to).multicast_mac().unwrap_or(Mac::BROADCAST);
    let header = EthernetHeader { dmac, smac: from.mac, vlan: from.vlan, ethertype };
    let mut frame = vec![0; header.len()];
    header.emit(&mut frame);
    frame.extend_from_slice(packet);
    frame
}
