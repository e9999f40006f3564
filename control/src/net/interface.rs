//! The network identity of one link of a port: it answers for its addresses and resolves those of others.
//!
//! After each input ([`Interface::on_frame`], [`Interface::on_timeout`], [`Interface::resolve`], address
//! changes) drain [`Interface::poll_transmit`] and [`Interface::poll_event`].

use std::collections::{BTreeMap, VecDeque};
use std::net::IpAddr;

use wire::{Gid, Mac, Vlan};

use super::address::{ALL_NODES, NO_IPV4, NO_MAC};
use super::bucket::TokenBucket;
use super::cache::{Cache, Question};
use super::membership::{Hosts, Membership, report};
use super::parse::{ArpKind, Link};
use super::too_big::Heard;
use super::{
    Counter, Counters, NeighbourEvent, NextHop, Prefix, Resolution, Route, RouteError, Router, TooBig, build,
    link_local, solicited_node,
};

mod config;
mod receive;

pub use config::{Config, ConfigError, MAX_ADDRESSES};

/// Most frames and most events that wait to be polled.
const QUEUE_LIMIT: usize = 1024;

/// What happened, for the control thread to act on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkEvent {
    /// A neighbour was resolved, moved or failed.
    Neighbour(NeighbourEvent),
    /// Another station uses our address. At most one event per address and ten seconds.
    Conflict {
        /// Our address.
        address: IpAddr,
        /// The other station.
        mac: Mac,
    },
}

/// Another station uses an address of ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Conflict {
    /// The station.
    pub mac: Mac,
    /// How often it was heard.
    pub count: u64,
    /// When it was last heard.
    pub heard_ns: u64,
    /// When the address was last defended.
    defended_ns: u64,
}

/// The slow path of one link: of the port itself, or of a VLAN on it.
#[derive(Clone, Debug)]
pub struct Interface {
    mac: Mac,
    mtu: u16,
    vlan: Option<u16>,
    router: Router,
    cache: Cache,
    membership: Membership,
    neighbour_answers: TokenBucket,
    echo_answers: TokenBucket,
    /// Our addresses that another station uses, too.
    conflicts: BTreeMap<IpAddr, Conflict>,
    transmit: VecDeque<Vec<u8>>,
    events: VecDeque<LinkEvent>,
    counters: Counters,
    too_big: Heard,
}

impl Interface {
    /// An interface that is silent until asked; call [`Interface::announce`] once its link is up.
    pub fn new(config: Config) -> Result<Self, ConfigError> {
        config.check()?;
        let mut interface = Interface {
            mac: config.mac,
            mtu: config.mtu,
            vlan: config.vlan,
            router: Router {
                addresses: Vec::new(),
                gateway_v4: config.gateway_v4,
                gateway_v6: config.gateway_v6,
            },
            cache: Cache::new(config.cache),
            membership: Membership::new(config.mac),
            neighbour_answers: TokenBucket::new(config.answers_per_second),
            echo_answers: TokenBucket::new(config.answers_per_second),
            conflicts: BTreeMap::new(),
            transmit: VecDeque::new(),
            events: VecDeque::new(),
            counters: Counters::default(),
            too_big: Heard::default(),
        };
        if let Ok(own) = Prefix::new(IpAddr::V6(link_local(config.mac)), 64) {
            interface.router.addresses.push(own);
        }
        for address in config.addresses {
            if !interface.router.is_own(address.address()) {
                interface.router.addresses.push(address);
            }
        }
        config::check_gateways(&interface.router)?;
        Ok(interface)
    }

    /// Adds an address and announces it; whether it was not there before. One that is there takes the new prefix.
    pub fn add_address(&mut self, address: Prefix) -> bool {
        let known = self.router.addresses.iter_mut().find(|own| own.address() == address.address());
        match known {
            Some(own) => {
                *own = address;
                false
            }
            None => {
                self.router.addresses.push(address);
                self.announce_one(address.address());
                true
            }
        }
    }

    /// Removes an address; whether it was there. The link-local address of our MAC stays.
    pub fn remove_address(&mut self, address: IpAddr) -> bool {
        if address == IpAddr::V6(link_local(self.mac)) || !self.router.is_own(address) {
            return false;
        }
        self.router.addresses.retain(|own| own.address() != address);
        self.conflicts.remove(&address);
        true
    }

    /// Tells the link our addresses: after its link came up, and after a failover.
    pub fn announce(&mut self) {
        for own in self.router.addresses.clone() {
            self.announce_one(own.address());
        }
    }

    /// Joins a multicast group: routers and switches are told, now and when they ask.
    pub fn join_group(&mut self, now: u64, group: IpAddr) {
        self.membership.join(now, group.to_canonical());
        self.send_reports(now);
    }

    /// Leaves a multicast group.
    pub fn leave_group(&mut self, now: u64, group: IpAddr) {
        self.membership.leave(now, group.to_canonical());
        self.send_reports(now);
    }

    /// Tells the link our groups anew: after it came up, and after a failover.
    pub fn report_groups(&mut self, now: u64) {
        self.membership.repeat_all(now);
        self.send_reports(now);
    }

    /// The groups joined.
    pub fn groups(&self) -> Vec<IpAddr> {
        self.membership.members()
    }

    /// Takes in a received frame, with or without its 802.1Q tag, without FCS. Any bytes are allowed.
    pub fn on_frame(&mut self, now: u64, frame: &[u8]) {
        self.on_frame_of(now, frame, None);
    }

    /// As [`on_frame`](Self::on_frame), for a frame whose tag the NIC has taken off.
    pub fn on_frame_of(&mut self, now: u64, frame: &[u8], stripped: Option<Vlan>) {
        if let Err(reason) = self.receive(now, frame, stripped) {
            self.counters.count(reason);
        }
        self.drain_cache();
    }

    /// The next frame to send, complete but for padding and FCS.
    pub fn poll_transmit(&mut self) -> Option<Vec<u8>> {
        self.transmit.pop_front()
    }

    /// The next event.
    pub fn poll_event(&mut self) -> Option<LinkEvent> {
        self.events.pop_front()
    }

    /// The MAC to send to for `destination`, IPv4 plain or mapped. Asks the link if it is not known.
    ///
    /// A neighbour in use should be resolved again now and then (each second, say): that is what finds out
    /// that it moved or died.
    pub fn resolve(&mut self, now: u64, destination: IpAddr) -> Resolution {
        let resolution = match self.router.route(destination) {
            Err(_) => Resolution::Failed,
            Ok(Route { next_hop: NextHop::Local, .. }) => Resolution::Ready(self.mac),
            Ok(Route { next_hop: NextHop::Group(mac), .. }) => Resolution::Ready(mac),
            Ok(Route { next_hop: NextHop::Neighbour(address), .. }) => self.cache.resolve(now, address),
        };
        self.drain_cache();
        resolution
    }

    /// How well the interface's own networks fit a destination: more is better, and 0 is by a gateway at most.
    pub fn fit(&self, destination: IpAddr) -> u8 {
        self.router.fit(destination)
    }

    /// The source address and next hop for `destination`.
    pub fn route(&self, destination: IpAddr) -> Result<Route, RouteError> {
        self.router.route(destination)
    }

    /// Looks after a next hop that connections send to: it is probed when it was not heard of for long, and asked for again when
    /// it is dead. Call it each second or so. A full cache is not cleared for it.
    pub fn look_after(&mut self, now: u64, destination: IpAddr) {
        if let Ok(Route { next_hop: NextHop::Neighbour(address), .. }) = self.router.route(destination) {
            self.cache.look_after(now, address);
        }
        self.drain_cache();
    }

    /// The MAC of the next hop to a destination, if it is known.
    pub fn known_mac(&self, destination: IpAddr) -> Option<Mac> {
        match self.router.route(destination).ok()?.next_hop {
            NextHop::Neighbour(address) => self.cache.known(address),
            NextHop::Local | NextHop::Group(_) => None,
        }
    }

    /// Whether a neighbour is the next hop to others, beyond our own networks.
    pub fn is_gateway(&self, neighbour: IpAddr) -> bool {
        let Router { gateway_v4, gateway_v6, .. } = &self.router;
        *gateway_v4 == as_v4(neighbour) && gateway_v4.is_some()
            || *gateway_v6 == as_v6(neighbour) && gateway_v6.is_some()
    }

    /// When [`Interface::on_timeout`] is due; `None` if nothing waits.
    pub fn next_timeout(&self) -> Option<u64> {
        self.cache.next_timeout().into_iter().chain(self.membership.next_timeout()).min()
    }

    /// Does what is due at `now`. Calling it early is harmless.
    pub fn on_timeout(&mut self, now: u64) {
        self.cache.on_timeout(now);
        self.send_reports(now);
        self.drain_cache();
    }

    /// The counters.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Our addresses that another station uses, too.
    pub fn conflicts(&self) -> impl Iterator<Item = (IpAddr, Conflict)> + '_ {
        self.conflicts.iter().map(|(&address, &conflict)| (address, conflict))
    }

    /// What routers have said of our packets: that they are too long for the way.
    pub fn too_big(&self) -> &[TooBig] {
        self.too_big.all()
    }

    /// Our MAC.
    pub fn mac(&self) -> Mac {
        self.mac
    }

    /// Our VLAN.
    pub fn vlan(&self) -> Option<u16> {
        self.vlan
    }

    /// Largest IP packet in bytes.
    pub fn mtu(&self) -> u16 {
        self.mtu
    }

    /// Own addresses, the link-local one first.
    pub fn addresses(&self) -> &[Prefix] {
        &self.router.addresses
    }

    fn announce_one(&mut self, address: IpAddr) {
        let frame = match address {
            IpAddr::V4(v4) => {
                // unverified RFC 5227 3: the request form, which every stack takes in.
                build::arp(self.link(Mac::BROADCAST), ArpKind::Request, (self.mac, v4), (NO_MAC, v4))
            }
            IpAddr::V6(v6) => {
                let Some(everybody) = Gid::from(ALL_NODES).multicast_mac() else { return };
                build::advertisement(self.link(everybody), v6, ALL_NODES, false)
            }
        };
        if let Err(reason) = self.send(frame, Counter::Announced) {
            self.counters.count(reason);
        }
    }

    fn send_reports(&mut self, now: u64) {
        while let Some(due) = self.membership.poll(now) {
            let first_v4 = self.router.addresses.iter().find_map(|own| match own.address() {
                IpAddr::V4(v4) => Some(v4),
                IpAddr::V6(_) => None,
            });
            let from = Hosts {
                mac: self.mac,
                vlan: self.vlan.map(|vid| Vlan::new(0, vid)),
                v4: first_v4.unwrap_or(NO_IPV4),
                v6: link_local(self.mac),
            };
            let Some(frame) = report(&from, due) else { continue };
            if let Err(reason) = self.send(frame, Counter::GroupReported) {
                self.counters.count(reason);
            }
        }
    }

    fn ask(&mut self, question: Question) {
        let frame = match (self.router.solicit_source(question.address), question.address) {
            (Some(IpAddr::V4(source)), IpAddr::V4(target)) => {
                let link = self.link(question.to.unwrap_or(Mac::BROADCAST));
                build::arp(link, ArpKind::Request, (self.mac, source), (NO_MAC, target))
            }
            (Some(IpAddr::V6(source)), IpAddr::V6(target)) => {
                let group = solicited_node(target);
                let group_mac = Gid::from(group).multicast_mac().unwrap_or(Mac::BROADCAST);
                let destination = if question.to.is_some() { target } else { group };
                build::solicitation(self.link(question.to.unwrap_or(group_mac)), source, destination, target)
            }
            // Our address was removed meanwhile: the entry fails by itself.
            _ => return,
        };
        if let Err(reason) = self.send(frame, Counter::Solicited) {
            self.counters.count(reason);
        }
    }

    /// The header of a frame of our own.
    fn link(&self, destination: Mac) -> Link {
        Link { destination, source: self.mac, vlan: self.vlan.map(|vid| Vlan::new(0, vid)) }
    }

    fn send(&mut self, frame: Vec<u8>, counter: Counter) -> Result<(), Counter> {
        if self.transmit.len() >= QUEUE_LIMIT {
            return Err(Counter::RateLimited);
        }
        self.transmit.push_back(frame);
        self.counters.count(counter);
        Ok(())
    }

    fn event(&mut self, event: LinkEvent) {
        if self.events.len() >= QUEUE_LIMIT {
            self.counters.count(Counter::EventLost);
        } else {
            self.events.push_back(event);
        }
    }

    fn drain_cache(&mut self) {
        while let Some(question) = self.cache.questions.pop_front() {
            self.ask(question);
        }
        while let Some(event) = self.cache.events.pop_front() {
            self.event(LinkEvent::Neighbour(event));
        }
    }
}

fn as_v4(address: IpAddr) -> Option<std::net::Ipv4Addr> {
    if let IpAddr::V4(v4) = address { Some(v4) } else { None }
}

fn as_v6(address: IpAddr) -> Option<std::net::Ipv6Addr> {
    if let IpAddr::V6(v6) = address { Some(v6) } else { None }
}
