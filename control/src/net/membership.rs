//! Multicast groups that we belong to, as routers and switches are told: IGMP for IPv4, MLD for IPv6.
//!
//! A change is told at once and once more a second later (IGMPv3's and MLDv2's robustness of two); a query is answered
//! after a delay that follows from our MAC and the group, so that hosts do not answer all at once. A querier of an older
//! version is answered in its own way, for as long as it is heard. unverified RFC 3376, 2236, 3810, 2710. Linux sends
//! the same frames (see the test against a capture). Left out: source filters (we take every source), and keeping silent when another
//! host has answered for a group, which older versions allow.

mod frames;
mod query;

pub(super) use frames::{Hosts, report};
pub(super) use query::{Query, igmp, mld};

use super::SECOND_NS;
use std::collections::BTreeMap;
use std::net::IpAddr;
use wire::Mac;

/// unverified RFC 3376 8.1, 8.11: a change is told so often, so far apart.
const ROBUSTNESS: u8 = 2;
const REPEAT_NS: u64 = SECOND_NS;
/// unverified RFC 3376 8.12: for so long after its query an older querier is there.
const OLDER_NS: u64 = 260 * SECOND_NS;

/// Versions of the protocols by what they can say. MLD has no first one: its version 1 is like IGMPv2.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Version {
    /// IGMPv1: no leaving.
    First,
    /// IGMPv2, MLDv1.
    Second,
    /// IGMPv3, MLDv2.
    Third,
}

/// What is said of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Said {
    /// We have joined.
    Joined,
    /// We have left.
    Left,
    /// A query is answered: we belong to it.
    Member,
}

/// What has to be sent now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Report {
    pub group: IpAddr,
    pub said: Said,
    pub version: Version,
}

/// A change that is told again.
#[derive(Clone, Copy, Debug)]
struct Change {
    said: Said,
    left: u8,
    due_ns: u64,
}

/// One group.
#[derive(Clone, Copy, Debug, Default)]
struct Group {
    member: bool,
    change: Option<Change>,
    /// When a query is to be answered.
    answer_ns: Option<u64>,
}

/// The groups of one interface.
#[derive(Clone, Debug)]
pub(super) struct Membership {
    mac: Mac,
    groups: BTreeMap<IpAddr, Group>,
    /// By family: the older querier and until when it is believed to be there.
    older: [Option<(Version, u64)>; 2],
}

impl Membership {
    pub fn new(mac: Mac) -> Membership {
        Membership { mac, groups: BTreeMap::new(), older: [None; 2] }
    }

    /// Joins a group; it is reported if routers want to know of it.
    pub fn join(&mut self, now: u64, group: IpAddr) {
        self.change(now, group, Said::Joined);
    }

    /// Leaves a group.
    pub fn leave(&mut self, now: u64, group: IpAddr) {
        if self.groups.get(&group).is_some_and(|known| known.member) {
            self.change(now, group, Said::Left);
        }
    }

    /// Tells all groups anew: the link came up, or has another end.
    pub fn repeat_all(&mut self, now: u64) {
        for group in self.members() {
            self.change(now, group, Said::Joined);
        }
    }

    /// The groups that we belong to.
    pub fn members(&self) -> Vec<IpAddr> {
        self.groups.iter().filter(|(_, group)| group.member).map(|(&address, _)| address).collect()
    }

    /// A router asks.
    pub fn on_query(&mut self, now: u64, query: &Query) {
        if query.version < Version::Third {
            self.older[usize::from(query.v6)] = Some((query.version, now + OLDER_NS));
        }
        let mac = self.mac;
        let asked = |address: IpAddr| match query.group {
            Some(group) => group == address,
            None => address.is_ipv6() == query.v6,
        };
        for (&address, group) in self.groups.iter_mut().filter(|(address, _)| asked(**address)) {
            if group.member && is_reported(address) {
                let due_ns = now + delay(mac, address, query.max_delay_ns);
                group.answer_ns = Some(group.answer_ns.map_or(due_ns, |earlier| earlier.min(due_ns)));
            }
        }
    }

    /// When [`poll`](Self::poll) is due.
    pub fn next_timeout(&self) -> Option<u64> {
        let due =
            |group: &Group| group.change.map(|change| change.due_ns).into_iter().chain(group.answer_ns).min();
        self.groups.values().filter_map(due).min()
    }

    /// The next report that is due.
    pub fn poll(&mut self, now: u64) -> Option<Report> {
        let version = [false, true].map(|v6| self.version(now, v6));
        let is_due = |group: &Group| {
            group.change.is_some_and(|change| change.due_ns <= now)
                || group.answer_ns.is_some_and(|due| due <= now)
        };
        let (&address, group) = self.groups.iter_mut().find(|(_, group)| is_due(group))?;
        let said = match &mut group.change {
            Some(change) if change.due_ns <= now => {
                let said = change.said;
                change.left -= 1;
                change.due_ns = now + REPEAT_NS;
                if change.left == 0 {
                    group.change = None;
                }
                said
            }
            _ => {
                group.answer_ns = None;
                Said::Member
            }
        };
        if !group.member && group.change.is_none() {
            self.groups.remove(&address);
        }
        Some(Report { group: address, said, version: version[usize::from(address.is_ipv6())] })
    }

    fn change(&mut self, now: u64, group: IpAddr, said: Said) {
        let member = said != Said::Left;
        if !is_reported(group) {
            if member {
                self.groups.insert(group, Group { member, ..Group::default() });
            } else {
                self.groups.remove(&group);
            }
            return;
        }
        let change = Some(Change { said, left: ROBUSTNESS, due_ns: now });
        self.groups.insert(group, Group { member, change, answer_ns: None });
    }

    /// The version that is spoken now.
    fn version(&self, now: u64, v6: bool) -> Version {
        match self.older[usize::from(v6)] {
            Some((version, until)) if now < until => version,
            _ => Version::Third,
        }
    }
}

/// unverified RFC 3376 5, RFC 3810 6: nobody has to be told of all hosts' own group, nor of groups that no link carries.
fn is_reported(group: IpAddr) -> bool {
    match group {
        IpAddr::V4(v4) => v4.octets() != [224, 0, 0, 1],
        IpAddr::V6(v6) => v6.octets()[1] & 0x0F > 1 && v6 != super::address::ALL_NODES,
    }
}

/// Below `most`, spread over hosts and groups.
fn delay(mac: Mac, group: IpAddr, most: u64) -> u64 {
    let bytes = mac.0.into_iter().chain(wire::Gid::from(group).octets());
    // FNV-1a: this is to differ, not to be secret.
    let hash = bytes
        .fold(0xCBF2_9CE4_8422_2325u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01B3));
    (hash >> 16) % most.max(1)
}
