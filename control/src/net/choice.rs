//! Which GID to send from: the one that leads to the destination (route, family, link, type), or one that was asked for, if
//! it can; and if it cannot, which could, in words.
//!
//! rocev2 facts, wire 13: a GID is an address, a type and a link (Linux' netdev, which gives the VLAN).

use std::net::IpAddr;

use wire::RoceVersion;

use super::stack::link_name;
use super::{GidEntry, NextHop, Route, RouteError, Stack};

/// Which links may be used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Scope {
    /// Any.
    #[default]
    Any,
    /// The link of this VLAN.
    Link(Option<u16>),
}

/// What to choose a GID for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Want {
    /// Where to.
    pub destination: IpAddr,
    /// On which links.
    pub scope: Scope,
    /// The index that was asked for.
    pub index: Option<usize>,
    /// The type that the peer speaks; by default the port's preferred one.
    pub gid_type: Option<RoceVersion>,
}

/// A GID, and the way from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Choice {
    /// Its index.
    pub index: usize,
    /// The GID.
    pub entry: GidEntry,
    /// Where packets from it go first. The source is the GID's address, which need not be the route's.
    pub next_hop: NextHop,
}

/// Why there is no GID to send from.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WrongGid {
    /// No link leads there.
    #[error("no route to {destination}: {why}; check the port's addresses and gateway")]
    Route {
        /// Where to.
        destination: IpAddr,
        /// Why not.
        why: RouteError,
    },
    /// There is no GID with that index.
    #[error("the port has no GID with index {index}; {advice}")]
    NoIndex {
        /// The index asked for.
        index: usize,
        /// Which would be right.
        advice: String,
    },
    /// It is of another family.
    #[error(
        "GID index {index} is {entry}, which cannot send to {destination}: one is IPv4, the other IPv6; {advice}"
    )]
    Family {
        /// The index asked for.
        index: usize,
        /// What is there.
        entry: GidEntry,
        /// Where to.
        destination: IpAddr,
        /// Which would be right.
        advice: String,
    },
    /// Its link does not lead there.
    #[error("GID index {index} is {entry}, from where {destination} is not reached ({why}); {advice}")]
    OtherLink {
        /// The index asked for.
        index: usize,
        /// What is there.
        entry: GidEntry,
        /// Where to.
        destination: IpAddr,
        /// Why it is not reached.
        why: String,
        /// Which would be right.
        advice: String,
    },
    /// The peer speaks another version of RoCE.
    #[error("the port does not speak RoCE {}; name it in gid_types of the port, or use another GID at the peer", type_name(*.0))]
    Type(RoceVersion),
}

fn type_name(gid_type: RoceVersion) -> &'static str {
    match gid_type {
        RoceVersion::V1 => "v1",
        RoceVersion::V2 => "v2",
    }
}

impl Stack {
    /// The GID to send from, and where packets go first.
    pub fn choose(&self, want: &Want) -> Result<Choice, WrongGid> {
        let want = Want { destination: want.destination.to_canonical(), ..*want };
        match want.index {
            None => self.choose_by_route(&want),
            Some(index) => self.check_choice(&want, index),
        }
    }

    fn choose_by_route(&self, want: &Want) -> Result<Choice, WrongGid> {
        let destination = want.destination;
        let gid_type = want.gid_type.unwrap_or(self.gids().default_type());
        if !self.gids().speaks(gid_type) {
            return Err(WrongGid::Type(gid_type));
        }
        let (vlan, route) = self.route_in(want).map_err(|why| WrongGid::Route { destination, why })?;
        let index = self.gids().index_on(route.source.into(), gid_type, vlan);
        // Every address of a link has a GID of each type.
        let entry = index.and_then(|index| self.gids().get(index));
        let (Some(index), Some(entry)) = (index, entry) else {
            return Err(WrongGid::Route { destination, why: RouteError::NoSource });
        };
        Ok(Choice { index, entry, next_hop: route.next_hop })
    }

    fn route_in(&self, want: &Want) -> Result<(Option<u16>, Route), RouteError> {
        match want.scope {
            Scope::Any => self.route(want.destination),
            Scope::Link(vlan) => {
                let link = self.link(vlan).ok_or(RouteError::NoSource)?;
                link.route(want.destination).map(|route| (vlan, route))
            }
        }
    }

    fn check_choice(&self, want: &Want, index: usize) -> Result<Choice, WrongGid> {
        let destination = want.destination;
        let Some(entry) = self.gids().get(index) else {
            return Err(WrongGid::NoIndex { index, advice: self.advice(want) });
        };
        if entry.address.is_ipv4() != destination.is_ipv4() {
            return Err(WrongGid::Family { index, entry, destination, advice: self.advice(want) });
        }
        let other =
            |why: String| WrongGid::OtherLink { index, entry, destination, why, advice: self.advice(want) };
        if let Scope::Link(vlan) = want.scope
            && vlan != entry.vlan
        {
            return Err(other(format!("the address names the {}", link_name(vlan))));
        }
        // The GID's own link is there for as long as the GID is.
        let route = self.link(entry.vlan).map_or(Err(RouteError::NoSource), |link| link.route(destination));
        let next_hop = match route {
            Ok(route) => route.next_hop,
            Err(why) => return Err(other(why.to_string())),
        };
        let is_beyond = matches!(next_hop, NextHop::Neighbour(hop) if hop != destination);
        if is_beyond && entry.gid.is_link_local() {
            // unverified RFC 4291 2.5.6.
            return Err(other("no router passes on what comes from a link-local address".into()));
        }
        Ok(Choice { index, entry, next_hop })
    }

    /// Which index would be right, and why.
    fn advice(&self, want: &Want) -> String {
        match self.choose_by_route(&Want { index: None, ..*want }) {
            Ok(Choice { index, entry, next_hop }) => {
                let why = match next_hop {
                    NextHop::Local => "is that address itself".to_owned(),
                    NextHop::Group(_) => "sends to groups".into(),
                    NextHop::Neighbour(hop) if hop == want.destination => "is on the same link".into(),
                    NextHop::Neighbour(hop) => format!("reaches it by the gateway {hop}"),
                };
                format!("use index {index} ({entry}), which {why}")
            }
            Err(_) => format!("no GID of the port leads to {}", want.destination),
        }
    }
}
