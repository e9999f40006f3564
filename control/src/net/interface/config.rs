//! What an interface starts with, and why it may be refused.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use wire::Mac;

use crate::net::address::{is_host, is_station};
use crate::net::{CacheLimits, Prefix, Router};

/// Addresses of one link, its link-local one among them: what is looked through for each packet.
pub const MAX_ADDRESSES: usize = 64;

/// What an interface starts with.
#[derive(Clone, Debug)]
pub struct Config {
    /// Our MAC.
    pub mac: Mac,
    /// Largest IP packet in bytes.
    pub mtu: u16,
    /// 802.1Q VLAN, 1 to 4094. `None`: untagged; a tag with VLAN 0 carries priority only and is taken as
    /// untagged.
    pub vlan: Option<u16>,
    /// Addresses in the order of their GIDs. The link-local address is added by itself.
    pub addresses: Vec<Prefix>,
    /// Where IPv4 beyond the link goes.
    pub gateway_v4: Option<Ipv4Addr>,
    /// Where IPv6 beyond the link goes.
    pub gateway_v6: Option<Ipv6Addr>,
    /// Bounds of the neighbour cache.
    pub cache: CacheLimits,
    /// Most answers per second to ARP and neighbour discovery, and again as many to echo requests.
    pub answers_per_second: u32,
}

impl Config {
    /// An untagged interface with MTU 1500, no gateway and default bounds.
    pub fn new(mac: Mac, addresses: Vec<Prefix>) -> Self {
        Config {
            mac,
            mtu: 1500,
            vlan: None,
            addresses,
            gateway_v4: None,
            gateway_v6: None,
            cache: CacheLimits::default(),
            answers_per_second: 20_000,
        }
    }

    /// Checks the values that stand alone.
    pub(super) fn check(&self) -> Result<(), ConfigError> {
        if !is_station(self.mac) {
            return Err(ConfigError::Mac);
        }
        if let Some(vlan) = self.vlan.filter(|vlan| !(1..=4094).contains(vlan)) {
            return Err(ConfigError::Vlan(vlan));
        }
        // The link-local one comes by itself.
        if self.addresses.len() >= MAX_ADDRESSES {
            return Err(ConfigError::Addresses);
        }
        if self.mtu < 1280 { Err(ConfigError::Mtu(self.mtu)) } else { Ok(()) }
    }
}

/// Why a [`Config`] is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// A group address or all zero.
    #[error("the MAC is not that of a single station")]
    Mac,
    /// VLANs are 1 to 4094.
    #[error("VLAN {0} does not exist: 1 to 4094, or none for untagged")]
    Vlan(u16),
    /// Two links of one port have the same VLAN.
    #[error("VLAN {0} is there twice: give each link of the port a VLAN of its own")]
    SameVlan(u16),
    /// More addresses than a link takes.
    #[error("a link has {MAX_ADDRESSES} addresses at most, the link-local one among them: remove some")]
    Addresses,
    /// Below 1280, the least that IPv6 allows.
    #[error("MTU {0} is too small: IPv6 needs 1280 at least")]
    Mtu(u16),
    /// Not a unicast address.
    #[error("the gateway {0} is not an address that a station can have")]
    Gateway(IpAddr),
    /// No own prefix covers it, so it cannot be resolved.
    #[error("the gateway {0} is in none of the interface's networks")]
    GatewayOffLink(IpAddr),
}

/// Checks the gateways against the interface's own networks, the link-local one included.
pub(super) fn check_gateways(router: &Router) -> Result<(), ConfigError> {
    let v4 = router.gateway_v4.map(IpAddr::V4);
    let v6 = router.gateway_v6.map(IpAddr::V6);
    for gateway in v4.into_iter().chain(v6) {
        if !is_host(gateway) || router.is_own(gateway) {
            return Err(ConfigError::Gateway(gateway));
        }
        if !router.addresses.iter().any(|own| own.contains(gateway)) {
            return Err(ConfigError::GatewayOffLink(gateway));
        }
    }
    Ok(())
}
