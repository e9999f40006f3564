//! Which own address to send from and which station to send to.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use wire::{Gid, Mac};

use super::Prefix;
use super::address::is_host;

/// Where a packet for some destination goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Route {
    /// The own address to send from.
    pub source: IpAddr,
    /// Who takes the packet on the link.
    pub next_hop: NextHop,
}

/// Who takes a packet on the link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NextHop {
    /// One of our own addresses.
    Local,
    /// A group, reached at this MAC without resolution.
    Group(Mac),
    /// A station on the link, the destination itself or a gateway: its MAC has to be resolved.
    Neighbour(IpAddr),
}

/// Why there is no route.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RouteError {
    /// The interface has no address of that family (or only a link-local one) to send from.
    #[error("no address of this family to send from")]
    NoSource,
    /// Neither on the link nor is there a gateway.
    #[error("not on the link, and no gateway is configured")]
    NoGateway,
    /// Broadcast, unspecified, loopback: no RoCE destination.
    #[error("not an address that a packet can be sent to")]
    BadDestination,
}

/// The addresses and gateways of an interface.
#[derive(Clone, Debug, Default)]
pub struct Router {
    /// Own addresses in the order they were added.
    pub addresses: Vec<Prefix>,
    /// Where IPv4 beyond the link goes.
    pub gateway_v4: Option<Ipv4Addr>,
    /// Where IPv6 beyond the link goes: a link-local or an on-link address.
    pub gateway_v6: Option<Ipv6Addr>,
}

impl Router {
    /// Whether `address` is one of our own.
    pub fn is_own(&self, address: IpAddr) -> bool {
        self.addresses.iter().any(|own| own.address() == address)
    }

    /// The way to `destination`. IPv4-mapped IPv6 addresses (as in GIDs) mean IPv4.
    pub fn route(&self, destination: IpAddr) -> Result<Route, RouteError> {
        let destination = destination.to_canonical();
        if let Some(mac) = Gid::from(destination).multicast_mac() {
            let source = self.group_source(destination).ok_or(RouteError::NoSource)?;
            return Ok(Route { source, next_hop: NextHop::Group(mac) });
        }
        if self.is_own(destination) {
            return Ok(Route { source: destination, next_hop: NextHop::Local });
        }
        if !is_host(destination) || self.addresses.iter().any(|own| own.is_broadcast(destination)) {
            return Err(RouteError::BadDestination);
        }
        if let Some(source) = self.on_link_source(destination) {
            return Ok(Route { source, next_hop: NextHop::Neighbour(destination) });
        }
        let gateway = match destination {
            IpAddr::V4(_) => self.gateway_v4.map(IpAddr::V4),
            IpAddr::V6(_) => self.gateway_v6.map(IpAddr::V6),
        };
        let gateway = gateway.ok_or(RouteError::NoGateway)?;
        let source = self.gateway_source(gateway).ok_or(RouteError::NoSource)?;
        Ok(Route { source, next_hop: NextHop::Neighbour(gateway) })
    }

    /// How well the addresses fit a destination: the bits of the longest prefix that it is in, more than any for an own
    /// address, none beyond a gateway.
    pub fn fit(&self, destination: IpAddr) -> u8 {
        let destination = destination.to_canonical();
        if self.is_own(destination) {
            return u8::MAX;
        }
        let covering = self.addresses.iter().filter(|own| own.contains(destination));
        covering.map(Prefix::bits).max().unwrap_or(0)
    }

    /// The address to ask from when `target`, a station on the link, has to be resolved.
    pub(super) fn solicit_source(&self, target: IpAddr) -> Option<IpAddr> {
        let same_family = |own: &&Prefix| own.address().is_ipv4() == target.is_ipv4();
        let any = || self.addresses.iter().find(same_family).map(Prefix::address);
        self.on_link_source(target).or_else(any)
    }

    /// The own address with the longest prefix that covers `destination`; the earlier one of equals.
    fn on_link_source(&self, destination: IpAddr) -> Option<IpAddr> {
        let covering = self.addresses.iter().rev().filter(|own| own.contains(destination));
        covering.max_by_key(|own| own.bits()).map(Prefix::address)
    }

    /// A source for a destination beyond `gateway`: never link-local, which no router forwards (unverified
    /// RFC 4291 2.5.6).
    fn gateway_source(&self, gateway: IpAddr) -> Option<IpAddr> {
        let near = self.on_link_source(gateway).filter(|own| !is_link_local(*own));
        near.or_else(|| self.first(|own| own.is_ipv4() == gateway.is_ipv4() && !is_link_local(own)))
    }

    fn group_source(&self, group: IpAddr) -> Option<IpAddr> {
        match group {
            IpAddr::V4(_) => self.first(|own| own.is_ipv4()),
            IpAddr::V6(group) => {
                // Scope 2 is the link: its source is of the same scope (unverified RFC 6724 rule 2).
                let link_scope = group.octets()[1] & 0x0f <= 2;
                self.first(|own| own.is_ipv6() && is_link_local(own) == link_scope)
                    .or_else(|| self.first(|own| own.is_ipv6()))
            }
        }
    }

    fn first(&self, fits: impl Fn(IpAddr) -> bool) -> Option<IpAddr> {
        self.addresses.iter().map(Prefix::address).find(|own| fits(*own))
    }
}

fn is_link_local(address: IpAddr) -> bool {
    matches!(address, IpAddr::V6(v6) if v6.is_unicast_link_local())
}
