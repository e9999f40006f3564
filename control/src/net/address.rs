//! Addresses with a prefix, and the addresses and MACs that follow from others by rule.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

use wire::{Gid, Mac};

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

    /// Whether `other` is this IPv4 network's broadcast or network address. /31 and /32 have neither
    /// (unverified RFC 3021).
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
    !mac.is_multicast() && mac != NO_MAC
}

/// The link-local address of a MAC, which is also its default GID.
pub fn link_local(mac: Mac) -> Ipv6Addr {
    Ipv6Addr::from(Gid::link_local(mac).octets())
}

/// The solicited-node group of an address: ff02::1:ff00:0/104 and its low 24 bits (unverified RFC 4291
/// 2.7.1).
pub fn solicited_node(address: Ipv6Addr) -> Ipv6Addr {
    let [.., a, b, c] = address.octets();
    Ipv6Addr::new(0xff02, 0, 0, 0, 0, 1, 0xff00 | u16::from(a), u16::from_be_bytes([b, c]))
}

/// Every host of the link.
pub(super) const ALL_NODES: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1);

/// The sender of an ARP probe, before it has an address.
pub(super) const NO_IPV4: Ipv4Addr = Ipv4Addr::UNSPECIFIED;

/// The target of a question for a MAC.
pub(super) const NO_MAC: Mac = Mac([0; 6]);
