//! The links of one port: its own and one for each VLAN sub-port, with one GID table.
//!
//! Links share the port's MAC and nothing else: each has addresses, gateways, neighbours and groups of its own, as a kernel's
//! VLAN interfaces have. A link is named by its VLAN, the port's own by its VLAN or `None` for untagged. A frame is the
//! business of the link whose VLAN its tag names; a tag of VLAN 0 carries a priority only.

use std::collections::VecDeque;
use std::net::IpAddr;

use wire::{EthernetHeader, Gid, RoceVersion, Vlan};

use super::{
    Config, ConfigError, Counter, GidTable, Interface, LinkEvent, MAX_ADDRESSES, NeighbourEvent, Prefix,
    Resolution, Route, RouteError, TooBig, link_local,
};

/// What happened on a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// A neighbour was resolved, moved or failed.
    Neighbour {
        /// The link.
        vlan: Option<u16>,
        /// What became of it.
        event: NeighbourEvent,
    },
    /// Another station uses our address. At most one event per address and ten seconds.
    Conflict {
        /// The link.
        vlan: Option<u16>,
        /// Our address.
        address: IpAddr,
        /// The other station.
        mac: wire::Mac,
    },
    /// The GID at this index was added or removed.
    GidChange {
        /// Its index.
        index: usize,
    },
}

/// Why an address was not added or removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AddressRefused {
    /// The port has no link with this VLAN.
    #[error("the port has no {}; its links are those of its configuration", link_name(*.0))]
    NoLink(Option<u16>),
    /// There is no room.
    #[error("the link has {MAX_ADDRESSES} addresses already; remove one first")]
    Full,
    /// It belongs to the MAC.
    #[error("{0} belongs to the port's MAC address and stays")]
    Default(IpAddr),
}

/// A link in words.
pub(super) fn link_name(vlan: Option<u16>) -> String {
    vlan.map_or("untagged link".into(), |vlan| format!("VLAN {vlan}"))
}

/// The links of one port.
#[derive(Clone, Debug)]
pub struct Stack {
    /// The port's own first.
    links: Vec<Interface>,
    gids: GidTable,
    events: VecDeque<Event>,
}

impl Stack {
    /// The port's own link and those of its VLANs. No type means RoCE v2.
    pub fn new(types: &[RoceVersion], own: Config, vlans: Vec<Config>) -> Result<Stack, ConfigError> {
        let mut gids = GidTable::new(own.mac, own.vlan, types);
        let mut links: Vec<Interface> = Vec::with_capacity(1 + vlans.len());
        for config in std::iter::once(own).chain(vlans) {
            let link = Interface::new(config)?;
            if links.iter().any(|earlier| earlier.vlan() == link.vlan()) {
                return Err(ConfigError::SameVlan(link.vlan().unwrap_or(0)));
            }
            for own in link.addresses() {
                gids.add(own.address(), link.vlan());
            }
            links.push(link);
        }
        Ok(Stack { links, gids, events: VecDeque::new() })
    }

    /// The links, the port's own first.
    pub fn links(&self) -> &[Interface] {
        &self.links
    }

    /// The port's own link.
    pub fn own(&self) -> &Interface {
        &self.links[0]
    }

    /// The link of a VLAN.
    pub fn link(&self, vlan: Option<u16>) -> Option<&Interface> {
        self.links.iter().find(|link| link.vlan() == vlan)
    }

    fn link_mut(&mut self, vlan: Option<u16>) -> Option<&mut Interface> {
        self.links.iter_mut().find(|link| link.vlan() == vlan)
    }

    /// The GID table.
    pub fn gids(&self) -> &GidTable {
        &self.gids
    }

    /// Adds an address to a link, announces it and returns its GID index: that of the v2 entry where there is one. An address
    /// that is there keeps its index, and takes the new prefix.
    pub fn add_address(&mut self, vlan: Option<u16>, address: Prefix) -> Result<usize, AddressRefused> {
        let link = self.link_mut(vlan).ok_or(AddressRefused::NoLink(vlan))?;
        let known = link.addresses().iter().any(|own| own.address() == address.address());
        if !known && link.addresses().len() >= MAX_ADDRESSES {
            return Err(AddressRefused::Full);
        }
        let is_new = link.add_address(address);
        let indices = self.gids.add(address.address(), vlan);
        if is_new {
            self.events.extend(indices.iter().map(|&index| Event::GidChange { index }));
        }
        Ok(indices.last().copied().unwrap_or_default())
    }

    /// Removes an address from a link; whether it was there.
    pub fn remove_address(&mut self, vlan: Option<u16>, address: IpAddr) -> Result<bool, AddressRefused> {
        let link = self.link_mut(vlan).ok_or(AddressRefused::NoLink(vlan))?;
        if address == IpAddr::V6(link_local(link.mac())) {
            return Err(AddressRefused::Default(address));
        }
        let found = link.remove_address(address);
        let removed = self.gids.remove(address, vlan);
        self.events.extend(removed.into_iter().map(|index| Event::GidChange { index }));
        Ok(found)
    }

    /// Tells all links our addresses and groups: after the port came up, and after a failover.
    pub fn announce(&mut self, now: u64) {
        for link in &mut self.links {
            link.announce();
            link.report_groups(now);
        }
    }

    /// Joins a multicast group on a link; nothing when there is no such link.
    pub fn join_group(&mut self, now: u64, vlan: Option<u16>, group: IpAddr) {
        if let Some(link) = self.link_mut(vlan) {
            link.join_group(now, group);
        }
    }

    /// Leaves a multicast group on a link.
    pub fn leave_group(&mut self, now: u64, vlan: Option<u16>, group: IpAddr) {
        if let Some(link) = self.link_mut(vlan) {
            link.leave_group(now, group);
        }
    }

    /// Takes in a received frame without FCS; `stripped` is the tag that the NIC took off. Any bytes are allowed. What is of
    /// no link is counted by the port's own.
    pub fn on_frame(&mut self, now: u64, frame: &[u8], stripped: Option<u16>) {
        let stripped = stripped.map(Vlan::from_tci);
        let tag = EthernetHeader::parse(frame).and_then(|header| header.vlan).or(stripped);
        let vid = tag.map_or(0, |tag| tag.vid);
        let of_vid = |link: &Interface| link.vlan().unwrap_or(0) == vid;
        let index = self.links.iter().position(of_vid).unwrap_or(0);
        self.links[index].on_frame_of(now, frame, stripped);
    }

    /// The next frame to send, complete but for padding and FCS.
    pub fn poll_transmit(&mut self) -> Option<Vec<u8>> {
        self.links.iter_mut().find_map(Interface::poll_transmit)
    }

    /// The next event.
    pub fn poll_event(&mut self) -> Option<Event> {
        if let Some(event) = self.events.pop_front() {
            return Some(event);
        }
        self.links.iter_mut().find_map(|link| {
            let vlan = link.vlan();
            link.poll_event().map(|event| match event {
                LinkEvent::Neighbour(event) => Event::Neighbour { vlan, event },
                LinkEvent::Conflict { address, mac } => Event::Conflict { vlan, address, mac },
            })
        })
    }

    /// When [`on_timeout`](Self::on_timeout) is due.
    pub fn next_timeout(&self) -> Option<u64> {
        self.links.iter().filter_map(Interface::next_timeout).min()
    }

    /// Does what is due at `now`.
    pub fn on_timeout(&mut self, now: u64) {
        self.links.iter_mut().for_each(|link| link.on_timeout(now));
    }

    /// The link that leads to a destination, and the way on it: the link with the longest prefix around it, the port's own
    /// before others, else the first with a gateway.
    pub fn route(&self, destination: IpAddr) -> Result<(Option<u16>, Route), RouteError> {
        let mut best: Option<(u8, Option<u16>, Route)> = None;
        for link in &self.links {
            let Ok(route) = link.route(destination) else { continue };
            let fit = link.fit(destination);
            if best.is_none_or(|(other, ..)| fit > other) {
                best = Some((fit, link.vlan(), route));
            }
        }
        match best {
            Some((_, vlan, route)) => Ok((vlan, route)),
            None => self.own().route(destination).map(|route| (self.own().vlan(), route)),
        }
    }

    /// The MAC to send to for `destination` on a link; see [`Interface::resolve`].
    pub fn resolve(&mut self, now: u64, vlan: Option<u16>, destination: IpAddr) -> Resolution {
        self.link_mut(vlan).map_or(Resolution::Failed, |link| link.resolve(now, destination))
    }

    /// Looks after a next hop; see [`Interface::look_after`].
    pub fn look_after(&mut self, now: u64, vlan: Option<u16>, destination: IpAddr) {
        if let Some(link) = self.link_mut(vlan) {
            link.look_after(now, destination);
        }
    }

    /// All counters by name, over all links.
    pub fn counted(&self) -> impl Iterator<Item = (&'static str, u64)> + '_ {
        self.links.iter().flat_map(|link| link.counters().iter())
    }

    /// One counter, over all links.
    pub fn count_of(&self, counter: Counter) -> u64 {
        self.links.iter().map(|link| link.counters().get(counter)).sum()
    }

    /// What routers have said of our packets, on any link.
    pub fn too_big(&self) -> Vec<TooBig> {
        self.links.iter().flat_map(|link| link.too_big()).cloned().collect()
    }

    /// The solicited-node groups of all our addresses: what the port's multicast filter has to let through.
    pub fn solicited_groups(&self) -> impl Iterator<Item = Gid> + '_ {
        let addresses = self.links.iter().flat_map(Interface::addresses);
        addresses.filter_map(|own| match own.address() {
            IpAddr::V6(v6) => Some(Gid::from(super::solicited_node(v6))),
            IpAddr::V4(_) => None,
        })
    }
}
