//! Addresses with a prefix, and the addresses and MACs that follow from others by rule.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

use super::Mac;

/// An address of an interface and the length of its on-link prefix, as in `192.0.2.1/24`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Prefix {
    address: IpAddr,
    bits: u8,
}

/// Why text or values are no usable [`Prefix`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PrefixError {
    /// Not of the form `ADDRESS/BITS`.
    #[error("expected ADDRESS/BITS, as in 192.0.2.1/24 or 2001:db8::1/64")]
    Syntax,
    /// More bits than the address has.
    #[error("the prefix is longer than the address: at most 32 bits for IPv4, 128 for IPv6")]
    TooLong,
    /// Multicast, unspecified, loopback, broadcast or IPv4-mapped.
    #[error("not an address that an interface can have")]
    NotUnicast,
}

impl Prefix {
    /// `address` with `bits` of on-link prefix. Only unicast addresses that can be on a network are taken.
    pub fn new(address: IpAddr, bits: u8) -> Result<Self, PrefixError> {
        if !is_host(address) || address.to_canonical() != address {
            return Err(PrefixError::NotUnicast);
        }
        if bits > if address.is_ipv4() { 32 } else { 128 } {
            return Err(PrefixError::TooLong);
        }
        Ok(Prefix { address, bits })
    }

    /// The interface's own address.
    pub fn address(&self) -> IpAddr {
        self.address
    }

    /// Length of the prefix in bits.
    pub fn bits(&self) -> u8 {
        self.bits
    }

    /// Whether `other` is on the same link by this prefix.
    pub fn contains(&self, other: IpAddr) -> bool {
        match (self.address, other) {
            (IpAddr::V4(a), IpAddr::V4(b)) => {
                let different = a.to_bits() ^ b.to_bits();
                different.leading_zeros() >= u32::from(self.bits)
            }
            (IpAddr::V6(a), IpAddr::V6(b)) => {
                let different = a.to_bits() ^ b.to_bits();
                different.leading_zeros() >= u32::from(self.bits)
            }
            _ => false,
        }
    }

    /// Whether `other` is this IPv4 network's broadcast or network address. /31 and /32 have neither (unverified RFC 3021).
    pub fn is_broadcast(&self, other: IpAddr) -> bool {
        let (IpAddr::V4(_), IpAddr::V4(b)) = (self.address, other) else { return false };
        let host_bits = u32::MAX.checked_shr(u32::from(self.bits)).unwrap_or(0);
        self.bits < 31
            && self.contains(other)
            && (b.to_bits() & host_bits == host_bits || b.to_bits() & host_bits == 0)
    }
}

impl FromStr for Prefix {
    type Err = PrefixError;

    fn from_str(text: &str) -> Result<Self, PrefixError> {
        let (address, bits) = text.split_once('/').ok_or(PrefixError::Syntax)?;
        let address = address.parse().map_err(|_| PrefixError::Syntax)?;
        Prefix::new(address, bits.parse().map_err(|_| PrefixError::Syntax)?)
    }
}

impl std::fmt::Display for Prefix {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.address, self.bits)
    }
}

/// Whether one host on a network can have this address.
pub(super) fn is_host(address: IpAddr) -> bool {
    let broadcast = match address {
        IpAddr::V4(v4) => v4.is_broadcast() || v4.octets()[0] == 0,
        IpAddr::V6(_) => false,
    };
    !broadcast && !address.is_multicast() && !address.is_unspecified() && !address.is_loopback()
}

/// Whether this is the MAC of one station: neither a group nor all zero.
pub(super) fn is_station(mac: Mac) -> bool {
    mac[0] & 1 == 0 && mac != [0; 6]
}

/// The link-local address of a MAC: fe80::/64 and its modified EUI-64 (unverified RFC 4291 2.5.1), also the default GID.
pub fn link_local(mac: Mac) -> Ipv6Addr {
    let [a, b, c, d, e, f] = mac;
    let mut octets = [0; 16];
    octets[..2].copy_from_slice(&[0xfe, 0x80]);
    octets[8..].copy_from_slice(&[a ^ 0x02, b, c, 0xff, 0xfe, d, e, f]);
    Ipv6Addr::from(octets)
}

/// The solicited-node group of an address: ff02::1:ff00:0/104 and its low 24 bits (unverified RFC 4291 2.7.1).
pub fn solicited_node(address: Ipv6Addr) -> Ipv6Addr {
    let [.., a, b, c] = address.octets();
    Ipv6Addr::new(0xff02, 0, 0, 0, 0, 1, 0xff00 | u16::from(a), u16::from_be_bytes([b, c]))
}

/// The MAC of a group, which needs no resolution (wire facts 12); `None` if `group` is not multicast.
pub fn multicast_mac(group: IpAddr) -> Option<Mac> {
    match group {
        IpAddr::V4(v4) if v4.is_multicast() => {
            let [_, b, c, d] = v4.octets();
            Some([0x01, 0x00, 0x5e, b & 0x7f, c, d])
        }
        IpAddr::V6(v6) if v6.is_multicast() => {
            let [.., a, b, c, d] = v6.octets();
            Some([0x33, 0x33, a, b, c, d])
        }
        _ => None,
    }
}

/// Every host of the link.
pub(super) const ALL_NODES: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1);

/// The sender of an ARP probe, before it has an address.
pub(super) const NO_IPV4: Ipv4Addr = Ipv4Addr::UNSPECIFIED;

/// The Ethernet broadcast.
pub(super) const BROADCAST: Mac = [0xff; 6];
