//! GIDs: 128-bit addresses in the form of IPv6, IPv4 among them as `::ffff:a.b.c.d` (rocev2 facts, wire 12 and 13).

use super::Mac;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

/// A global identifier.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Gid(pub [u8; 16]);

const V4_MAPPED: [u8; 12] = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF];
const LINK_LOCAL: [u8; 8] = [0xFE, 0x80, 0, 0, 0, 0, 0, 0];

impl Gid {
    /// The all-zero GID, which names nobody.
    pub const UNSPECIFIED: Gid = Gid([0; 16]);

    /// The sixteen bytes.
    pub const fn octets(self) -> [u8; 16] {
        self.0
    }

    /// The GID of an IPv4 address.
    pub const fn from_v4(octets: [u8; 4]) -> Gid {
        // One number, not sixteen: packets are parsed by this.
        Gid((0xFFFF << 32 | u32::from_be_bytes(octets) as u128).to_be_bytes())
    }

    /// The default GID of a port: fe80::/64 and the MAC's EUI-64 (FF:FE in the middle, universal/local bit flipped).
    pub const fn link_local(mac: Mac) -> Gid {
        let [a, b, c, d, e, f] = mac.0;
        Gid([0xFE, 0x80, 0, 0, 0, 0, 0, 0, a ^ 2, b, c, 0xFF, 0xFE, d, e, f])
    }

    /// The MAC inside a link-local GID made from one; RoCE v1 resolves so.
    pub fn link_local_mac(self) -> Option<Mac> {
        match self.0[8..] {
            [a, b, c, 0xFF, 0xFE, d, e, f] if self.is_link_local() => Some(Mac([a ^ 2, b, c, d, e, f])),
            _ => None,
        }
    }

    /// The IPv4 address inside `::ffff:a.b.c.d`.
    pub fn v4(self) -> Option<Ipv4Addr> {
        let (prefix, address) = self.0.split_at(12);
        (prefix == V4_MAPPED).then(|| Ipv4Addr::new(address[0], address[1], address[2], address[3]))
    }

    /// It stands for an IPv4 address.
    pub fn is_v4(self) -> bool {
        self.v4().is_some()
    }

    /// All zero.
    pub fn is_unspecified(self) -> bool {
        self == Gid::UNSPECIFIED
    }

    /// In fe80::/64.
    pub fn is_link_local(self) -> bool {
        self.0[..8] == LINK_LOCAL
    }

    /// A group: ff00::/8, or an IPv4 group in 224.0.0.0/4.
    pub fn is_multicast(self) -> bool {
        self.0[0] == 0xFF || self.v4().is_some_and(|address| address.is_multicast())
    }

    /// The MAC that a group is sent to: 01:00:5e and the low 23 bits for IPv4, 33:33 and the low 32 bits for IPv6.
    /// `None` when this is no group.
    pub fn multicast_mac(self) -> Option<Mac> {
        let [.., a, b, c, d] = self.0;
        match self.v4() {
            _ if !self.is_multicast() => None,
            Some(_) => Some(Mac([0x01, 0x00, 0x5E, b & 0x7F, c, d])),
            None => Some(Mac([0x33, 0x33, a, b, c, d])),
        }
    }

    /// The address: IPv4 when it stands for one.
    pub fn ip(self) -> IpAddr {
        match self.v4() {
            Some(address) => IpAddr::V4(address),
            None => IpAddr::V6(Ipv6Addr::from(self.0)),
        }
    }
}

impl From<Ipv4Addr> for Gid {
    #[inline]
    fn from(address: Ipv4Addr) -> Self {
        Gid::from_v4(address.octets())
    }
}

impl From<Ipv6Addr> for Gid {
    #[inline]
    fn from(address: Ipv6Addr) -> Self {
        Gid(address.octets())
    }
}

impl From<IpAddr> for Gid {
    fn from(address: IpAddr) -> Self {
        match address {
            IpAddr::V4(v4) => v4.into(),
            IpAddr::V6(v6) => v6.into(),
        }
    }
}

impl From<Gid> for IpAddr {
    fn from(gid: Gid) -> Self {
        gid.ip()
    }
}

/// Text that is neither an IPv4 nor an IPv6 address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ParseGidError;

impl fmt::Display for ParseGidError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("expected a GID: an IPv4 or IPv6 address")
    }
}

impl std::error::Error for ParseGidError {}

impl FromStr for Gid {
    type Err = ParseGidError;

    fn from_str(text: &str) -> Result<Self, ParseGidError> {
        text.parse::<IpAddr>().map(Gid::from).map_err(|_| ParseGidError)
    }
}

impl fmt::Display for Gid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&Ipv6Addr::from(self.0), f)
    }
}

impl fmt::Debug for Gid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Gid({self})")
    }
}
