//! From a destination to the headers that lead there: which GID of ours, whose MAC, which VLAN, which path MTU.
//!
//! [`PortCore::try_resolve`] never waits. On it stand the two ways to wait: in the caller's thread, and by a call from the
//! control thread when the link has answered.

use super::port::PortCore;
use crate::error::ResolveError;
use crate::net::{Choice, GidEntry, NextHop, Resolution, Scope, Stack, Want};
use std::fmt;
use std::net::{AddrParseError, IpAddr};
use std::str::FromStr;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use wire::{Addressing, Gid, Mac, Mtu, RoceVersion, Vlan};

/// An address of a peer, and for those that exist once per link (link-local ones) the link that is meant: the name of a
/// port, as in `fe80::1%port0`, or of a VLAN of it, as in `fe80::1%port0.5`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Destination {
    /// The address.
    pub address: IpAddr,
    /// The link.
    pub scope: Option<String>,
}

impl From<IpAddr> for Destination {
    fn from(address: IpAddr) -> Self {
        Destination { address, scope: None }
    }
}

impl FromStr for Destination {
    type Err = AddrParseError;

    fn from_str(text: &str) -> Result<Self, AddrParseError> {
        match text.split_once('%') {
            Some((address, scope)) if !scope.is_empty() => {
                Ok(Destination { address: address.parse()?, scope: Some(scope.to_owned()) })
            }
            _ => Ok(text.parse::<IpAddr>()?.into()),
        }
    }
}

impl fmt::Display for Destination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.scope {
            Some(scope) => write!(f, "{}%{scope}", self.address),
            None => write!(f, "{}", self.address),
        }
    }
}

/// What to find a path for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathRequest {
    /// Where to.
    pub destination: Destination,
    /// Index of the GID to send from; by default the one that the route to the destination names.
    pub sgid_index: Option<usize>,
    /// The type of the GID to send from: what the peer speaks. By default v2, where the port speaks it.
    pub gid_type: Option<RoceVersion>,
    /// How long the next hop may take to answer; by default, and at most, as long as the port asks it.
    pub timeout: Option<Duration>,
}

impl PathRequest {
    /// A path to `destination` from whichever GID leads there.
    pub fn to(destination: impl Into<Destination>) -> PathRequest {
        PathRequest { destination: destination.into(), sgid_index: None, gid_type: None, timeout: None }
    }
}

/// A path that was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResolvedPath {
    /// Index of our GID.
    pub gid_index: usize,
    /// The headers, VLAN tag included. The UDP source port is 0: whoever sends chooses it.
    pub addressing: Addressing,
    /// The largest path MTU that our port carries.
    pub path_mtu: Mtu,
}

/// What came of looking for a path: `None` while the next hop is being asked for.
pub(crate) type Found = Option<Result<ResolvedPath, ResolveError>>;

/// Whom to tell, once.
pub(crate) type Done = Box<dyn FnOnce(Result<ResolvedPath, ResolveError>) + Send>;

/// Requests that wait for an answer of the link; the control thread looks after them.
#[derive(Default)]
pub(crate) struct Waiting(Mutex<Vec<Waiter>>);

struct Waiter {
    request: PathRequest,
    until_ns: u64,
    done: Done,
}

/// Requests that may wait at a time.
const MOST_WAITING: usize = 4096;

/// The neighbour cache tells when a neighbour is dead; this much later a wait ends without it.
const SLACK: Duration = Duration::from_millis(600);

impl PortCore {
    /// Looks for a path without waiting, and asks the link if need be.
    pub fn try_resolve(&self, request: &PathRequest) -> Found {
        self.try_resolve_in(&mut self.network.lock(), request).transpose()
    }

    /// Answers at once if the answer is known. Otherwise `done` is told it by the control thread, within the request's time.
    pub fn resolve_then(&self, request: PathRequest, done: Done) -> Found {
        if let Some(known) = self.try_resolve(&request) {
            return Some(known);
        }
        let mut waiting = self.waiting.lock();
        if waiting.len() >= MOST_WAITING {
            return Some(Err(ResolveError::Busy(MOST_WAITING)));
        }
        let patience = self.patience(&request);
        let until_ns = self.clock.now_ns().saturating_add(patience.as_nanos() as u64);
        waiting.push(Waiter { request, until_ns, done });
        None
    }

    /// The same way once more, from the same address: as [`resolve_then`](Self::resolve_then).
    pub fn resolve_again(
        &self,
        known: ResolvedPath,
        timeout: Duration,
        done: Done,
    ) -> Result<Option<ResolvedPath>, ResolveError> {
        let Addressing { src, dst, version, .. } = known.addressing;
        let from = self.network.lock().gids().index_on(src, version, known.addressing.link_vlan());
        let sgid_index = Some(from.ok_or(ResolveError::NotOurs(src.ip()))?);
        let request = PathRequest {
            sgid_index,
            timeout: Some(timeout),
            gid_type: Some(version),
            ..PathRequest::to(dst.ip())
        };
        self.resolve_then(request, done).transpose()
    }

    /// The same way to the next hop's MAC of now; as it was where that is not known.
    pub fn as_it_is_now(&self, known: ResolvedPath) -> ResolvedPath {
        let Addressing { dst, dmac, .. } = known.addressing;
        let stack = self.network.lock();
        let hop = stack.link(known.addressing.link_vlan()).and_then(|link| link.known_mac(dst.ip()));
        ResolvedPath { addressing: Addressing { dmac: hop.unwrap_or(dmac), ..known.addressing }, ..known }
    }

    /// How long a request waits at most.
    pub(super) fn patience(&self, request: &PathRequest) -> Duration {
        let most = self.facts.neighbour_timeout + SLACK;
        request.timeout.map_or(most, |timeout| timeout.min(most))
    }

    /// Answers those whose wait is over: the control thread's. Nothing is locked while they are told, so that they may ask
    /// again.
    pub fn answer_waiting(&self) {
        let now = self.clock.now_ns();
        let mut over = Vec::new();
        let mut waiting = self.waiting.lock();
        if !waiting.is_empty() {
            let mut stack = self.network.lock();
            let mut still = Vec::with_capacity(waiting.len());
            for waiter in waiting.drain(..) {
                match self.try_resolve_in(&mut stack, &waiter.request) {
                    Ok(None) if now < waiter.until_ns => still.push(waiter),
                    Ok(None) => {
                        let address = waiter.request.destination.address;
                        over.push((waiter.done, Err(ResolveError::Unreachable(address))));
                    }
                    Ok(Some(path)) => over.push((waiter.done, Ok(path))),
                    Err(why) => over.push((waiter.done, Err(why))),
                }
            }
            *waiting = still;
        }
        drop(waiting);
        for (done, result) in over {
            done(result);
        }
    }

    pub(super) fn try_resolve_in(
        &self,
        stack: &mut Stack,
        request: &PathRequest,
    ) -> Result<Option<ResolvedPath>, ResolveError> {
        let destination = request.destination.address.to_canonical();
        let Choice { index, entry, next_hop } = self.choose(stack, request)?;
        let mac = match v1_station(entry.gid_type, destination, next_hop)? {
            Some(mac) => mac,
            None => match stack.resolve(self.clock.now_ns(), entry.vlan, destination) {
                Resolution::Ready(mac) => mac,
                Resolution::Failed => return Err(ResolveError::Unreachable(destination)),
                Resolution::Pending => {
                    self.send_waiting(stack);
                    return Ok(None);
                }
            },
        };
        let addressing = self.addressing(&entry, destination, mac);
        Ok(Some(ResolvedPath { gid_index: index, addressing, path_mtu: self.facts.path_mtu }))
    }

    /// The GID to send from.
    pub fn choose(&self, stack: &Stack, request: &PathRequest) -> Result<Choice, ResolveError> {
        Ok(stack.choose(&Want {
            destination: request.destination.address,
            scope: self.scope(stack, request.destination.scope.as_deref())?,
            index: request.sgid_index,
            gid_type: request.gid_type,
        })?)
    }

    /// Index of an address of ours: on the link that is named, where one is.
    pub fn own_index(&self, own: IpAddr, link: Option<&str>) -> Result<usize, ResolveError> {
        let stack = self.network.lock();
        let index = match self.scope(&stack, link)? {
            Scope::Link(vlan) => stack.gids().index_of_link(own.into(), vlan),
            Scope::Any => None,
        };
        // One that is elsewhere is refused with the right one when the way is looked for.
        index.or_else(|| stack.gids().index_of_address(own)).ok_or(ResolveError::NotOurs(own))
    }

    /// The link that a name stands for.
    fn scope(&self, stack: &Stack, name: Option<&str>) -> Result<Scope, ResolveError> {
        let Some(name) = name else { return Ok(Scope::Any) };
        let of_link = |vlan| self.link_name(stack, vlan);
        let named = stack.links().iter().find(|link| of_link(link.vlan()) == name);
        named.map(|link| Scope::Link(link.vlan())).ok_or_else(|| {
            let links: Vec<String> = stack.links().iter().map(|link| of_link(link.vlan())).collect();
            let (scope, port) = (name.to_owned(), self.facts.name.clone());
            ResolveError::Scope { scope, port, links: links.join(", ") }
        })
    }

    /// The name of a link: the port's for its own, `PORT.VLAN` for others.
    pub fn link_name(&self, stack: &Stack, vlan: Option<u16>) -> String {
        match vlan.filter(|_| vlan != stack.own().vlan()) {
            Some(vlan) => format!("{}.{vlan}", self.facts.name),
            None => self.facts.name.clone(),
        }
    }

    /// The names of all links.
    pub fn link_names(&self) -> Vec<String> {
        let stack = self.network.lock();
        stack.links().iter().map(|link| self.link_name(&stack, link.vlan())).collect()
    }

    /// Whether a link has this name.
    pub fn has_link(&self, name: &str) -> bool {
        self.link_names().iter().any(|known| known == name)
    }

    fn addressing(&self, from: &GidEntry, destination: IpAddr, dmac: Mac) -> Addressing {
        let version = from.gid_type;
        Addressing {
            version,
            smac: self.facts.mac,
            dmac,
            // rocev2 facts, wire 2: a VLAN belongs to the source GID.
            vlan: from.vlan.map(|vid| Vlan::new(0, vid)),
            src: from.gid,
            dst: Gid::from(destination),
            traffic_class: self.facts.qos.traffic_class(),
            flow_label: 0,
            hop_limit: if version == RoceVersion::V1 { V1_HOP_LIMIT } else { self.facts.qos.hop_limit },
            // Whoever sends by it chooses: a connection by its two QPs, a datagram by its own.
            udp_sport: 0,
        }
    }
}

impl Waiting {
    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<Waiter>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// rocev2 facts, wire 3: v1 is not routed.
const V1_HOP_LIMIT: u8 = 1;

/// rocev2 facts, wire 13: v1 takes the MAC out of a link-local GID without asking, and never goes beyond the link.
fn v1_station(
    gid_type: RoceVersion,
    destination: IpAddr,
    next_hop: NextHop,
) -> Result<Option<Mac>, ResolveError> {
    match next_hop {
        NextHop::Neighbour(_) if gid_type == RoceVersion::V2 => Ok(None),
        NextHop::Neighbour(hop) if hop != destination => Err(ResolveError::NotRouted(destination)),
        NextHop::Neighbour(_) => Ok(Gid::from(destination).link_local_mac()),
        NextHop::Local | NextHop::Group(_) => Ok(None),
    }
}
