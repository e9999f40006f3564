//! What an interface does with a received frame: admit, then answer or learn.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use wire::{Gid, Mac, Vlan};

use super::{Conflict, Interface, LinkEvent};
use crate::net::address::{ALL_NODES, NO_IPV4, is_host};
use crate::net::cache::Evidence;
use crate::net::parse::{self, ArpKind, Echo, Link, Message};
use crate::net::{Counter, NextHop, SECOND_NS, build, link_local, too_big};

/// unverified RFC 5227 2.4: an address is defended at most once in this time, or two defenders would argue
/// for ever.
const DEFEND_INTERVAL_NS: u64 = 10 * SECOND_NS;

impl Interface {
    /// Answers or takes in one frame; the error names the counter of what was not served.
    pub(super) fn receive(&mut self, now: u64, frame: &[u8], stripped: Option<Vlan>) -> Result<(), Counter> {
        let (mut link, ethertype, payload) = parse::link(frame)?;
        link.vlan = link.vlan.or(stripped);
        self.admit(&link)?;
        match parse::message(ethertype, payload)? {
            Message::Arp { operation, sender_mac, sender, target } => {
                self.on_arp(now, &link, operation, (sender_mac, sender), target)
            }
            Message::EchoRequest(request) => self.on_echo(now, &link, request),
            Message::GroupQuery(query) => {
                self.membership.on_query(now, &query);
                self.counters.count(Counter::GroupQuery);
                self.send_reports(now);
                Ok(())
            }
            Message::TooBig(message) => self.on_too_big(now, &message),
            Message::Solicitation { source, target, sender_mac } => {
                self.on_solicitation(now, &link, source, target, sender_mac)
            }
            Message::Advertisement { target, target_mac, overrides } => {
                self.on_advertisement(now, &link, target, target_mac, overrides)
            }
        }
    }

    /// Whether a frame is for us: sender, receiver, VLAN.
    fn admit(&self, link: &Link) -> Result<(), Counter> {
        if link.source == self.mac {
            return Err(Counter::BadSource);
        }
        if link.destination != self.mac && !link.destination.is_multicast() {
            return Err(Counter::NotOurMac);
        }
        let vlan = link.vlan.map_or(0, |tag| tag.vid);
        if vlan != self.vlan.unwrap_or(0) { Err(Counter::OtherVlan) } else { Ok(()) }
    }

    fn on_arp(
        &mut self,
        now: u64,
        link: &Link,
        operation: ArpKind,
        (sender_mac, sender): (Mac, Ipv4Addr),
        target: Ipv4Addr,
    ) -> Result<(), Counter> {
        let (sender_ip, target_ip) = (IpAddr::V4(sender), IpAddr::V4(target));
        if self.router.is_own(sender_ip) {
            return self.on_conflict(now, sender_ip, sender_mac);
        }
        if sender_mac == self.mac {
            return Err(Counter::BadSource);
        }
        let probe = sender == NO_IPV4;
        if !probe && !self.is_neighbour(sender_ip) {
            return Err(if self.router.is_own(target_ip) {
                Counter::BadSource
            } else {
                Counter::NotOurAddress
            });
        }
        let asked = operation == ArpKind::Request && self.router.is_own(target_ip);
        if !asked {
            if probe || (operation == ArpKind::Request && sender != target) {
                return Err(Counter::NotOurAddress);
            }
            return self.learn(now, sender_ip, sender_mac, Evidence::Told { overrides: true });
        }
        self.allow_answer(now)?;
        if !probe && self.cache.learn(now, sender_ip, sender_mac, Evidence::AskedUs) {
            self.counters.count(Counter::NeighbourLearned);
        }
        let reply = self.reply_link(link, sender_mac);
        self.send(
            build::arp(reply, ArpKind::Reply, (self.mac, target), (sender_mac, sender)),
            Counter::ArpAnswered,
        )
    }

    fn on_solicitation(
        &mut self,
        now: u64,
        link: &Link,
        source: Ipv6Addr,
        target: Ipv6Addr,
        sender_mac: Option<Mac>,
    ) -> Result<(), Counter> {
        if self.router.is_own(IpAddr::V6(source)) {
            return self.on_conflict(now, IpAddr::V6(source), sender_mac.unwrap_or(link.source));
        }
        if !self.router.is_own(IpAddr::V6(target)) {
            return Err(Counter::NotOurAddress);
        }
        self.allow_answer(now)?;
        if source.is_unspecified() {
            // Someone is about to take our address: unverified RFC 4861 7.2.4 answers all nodes, which also
            // defends it.
            self.report_conflict(now, IpAddr::V6(target), link.source);
            let Some(everybody) = Gid::from(ALL_NODES).multicast_mac() else { return Ok(()) };
            let reply = self.reply_link(link, everybody);
            return self.send(build::advertisement(reply, target, ALL_NODES, false), Counter::NdAnswered);
        }
        if !self.is_neighbour(IpAddr::V6(source)) {
            return Err(Counter::BadSource);
        }
        let mac = sender_mac.unwrap_or(link.source);
        if mac == self.mac {
            return Err(Counter::BadSource);
        }
        if sender_mac.is_some() && self.cache.learn(now, IpAddr::V6(source), mac, Evidence::AskedUs) {
            self.counters.count(Counter::NeighbourLearned);
        }
        let reply = self.reply_link(link, mac);
        self.send(build::advertisement(reply, target, source, true), Counter::NdAnswered)
    }

    fn on_advertisement(
        &mut self,
        now: u64,
        link: &Link,
        target: Ipv6Addr,
        target_mac: Option<Mac>,
        overrides: bool,
    ) -> Result<(), Counter> {
        let target = IpAddr::V6(target);
        if self.router.is_own(target) {
            return self.on_conflict(now, target, target_mac.unwrap_or(link.source));
        }
        // unverified RFC 4861 7.2.5: without a MAC it could only confirm one; we ask by group and wait for
        // one that names it.
        let mac = target_mac.ok_or(Counter::NeighbourIgnored)?;
        self.learn(now, target, mac, Evidence::Told { overrides })
    }

    fn on_echo(&mut self, now: u64, link: &Link, request: Echo<'_>) -> Result<(), Counter> {
        let source = if request.destination == IpAddr::V6(ALL_NODES) {
            IpAddr::V6(link_local(self.mac))
        } else {
            request.destination
        };
        if !self.router.is_own(source) {
            return Err(Counter::NotOurAddress);
        }
        // Nor to a broadcast: a forged source must not make us amplify.
        let broadcast = self.router.addresses.iter().any(|own| own.is_broadcast(request.source));
        if !is_host(request.source) || broadcast || self.router.is_own(request.source) {
            return Err(Counter::BadSource);
        }
        if build::echo_length(&request) > usize::from(self.mtu) {
            return Err(Counter::EchoTooBig);
        }
        if !self.echo_answers.take(now) {
            return Err(Counter::RateLimited);
        }
        let reply = Echo { source, destination: request.source, ..request };
        let frame =
            build::echo_reply(self.reply_link(link, link.source), &reply).ok_or(Counter::Malformed)?;
        self.send(frame, Counter::EchoAnswered)
    }

    /// Remembers what a router said, for people. It says it to the sender, whose packet it quotes, and is another host.
    fn on_too_big(&mut self, now: u64, message: &too_big::Message) -> Result<(), Counter> {
        let too_big::Message { reporter, to, quoted, .. } = message;
        if !is_host(*reporter) || self.router.is_own(*reporter) {
            return Err(Counter::BadSource);
        }
        let ours = *to == quoted.source && self.router.is_own(*to);
        let sent = ours && self.router.route(quoted.destination).is_ok();
        if !sent || !self.too_big.take(now, message) {
            return Err(Counter::TooBigNotOurs);
        }
        self.counters.count(Counter::PacketTooBig);
        Ok(())
    }

    /// Counts and reports the conflict, and defends the address, both at a bounded rate.
    fn on_conflict(&mut self, now: u64, address: IpAddr, mac: Mac) -> Result<(), Counter> {
        if self.report_conflict(now, address, mac) {
            self.announce_one(address);
        }
        Err(Counter::Conflict)
    }

    /// Reports that `mac` uses our `address`; whether it is time for that again.
    fn report_conflict(&mut self, now: u64, address: IpAddr, mac: Mac) -> bool {
        let before = self.conflicts.get(&address).copied();
        let recent = before.filter(|before| now < before.defended_ns + DEFEND_INTERVAL_NS);
        let conflict = Conflict {
            mac,
            count: before.map_or(0, |before| before.count) + 1,
            heard_ns: now,
            defended_ns: recent.map_or(now, |recent| recent.defended_ns),
        };
        self.conflicts.insert(address, conflict);
        if recent.is_none() {
            self.event(LinkEvent::Conflict { address, mac });
        }
        recent.is_none()
    }

    fn learn(&mut self, now: u64, address: IpAddr, mac: Mac, evidence: Evidence) -> Result<(), Counter> {
        // A packet that gives our own MAC to another would turn traffic for it back to us.
        if mac == self.mac {
            return Err(Counter::BadSource);
        }
        let used = self.cache.learn(now, address, mac, evidence);
        self.counters.count(if used { Counter::NeighbourLearned } else { Counter::NeighbourIgnored });
        Ok(())
    }

    fn allow_answer(&mut self, now: u64) -> Result<(), Counter> {
        if self.neighbour_answers.take(now) { Ok(()) } else { Err(Counter::RateLimited) }
    }

    /// Whether an address is one that a station on this link, other than us, can have.
    fn is_neighbour(&self, address: IpAddr) -> bool {
        let next_hop = self.router.route(address).map(|route| route.next_hop);
        next_hop == Ok(NextHop::Neighbour(address))
    }

    /// The header of an answer: it carries the tag, and so the priority, of the question.
    fn reply_link(&self, question: &Link, destination: Mac) -> Link {
        Link { destination, source: self.mac, vlan: question.vlan }
    }
}
