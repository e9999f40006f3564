//! Connection management of an endpoint as a whole: its ports, and who is bound to what.

use super::id::rank;
use super::registry::Registry;
use super::table::Bindings;
use crate::endpoint::{Destination, Drivers, PortCore};
use crate::error::ResolveError;
use crate::net::WrongGid;
use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What identifiers share with the control thread. It keeps no endpoint running.
pub(crate) struct Host {
    pub ports: Vec<Arc<PortCore>>,
    drivers: Arc<Drivers>,
    /// Counts what waiters on channels do, so that the control thread leaves it to them.
    drives: AtomicU64,
    bindings: Mutex<Bindings>,
    pub(super) registry: Registry,
}

impl Host {
    pub fn new(ports: Vec<Arc<PortCore>>, drivers: Arc<Drivers>) -> Host {
        Host {
            ports,
            drivers,
            drives: AtomicU64::new(0),
            bindings: Mutex::default(),
            registry: Registry::default(),
        }
    }

    pub(super) fn bindings(&self) -> MutexGuard<'_, Bindings> {
        self.bindings.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The work of connection management, once. True when there was some.
    pub fn visit(&self) -> bool {
        self.ports.iter().enumerate().fold(false, |busy, (index, port)| {
            self.tell_of_addresses(index);
            busy | port.visit_cm(index)
        })
    }

    /// Callers drive the workers.
    pub fn is_driven(&self) -> bool {
        self.drivers.is_driven()
    }

    /// Drives the workers, and does what has come. True when there was something.
    pub fn drive(&self) -> bool {
        self.drives.fetch_add(1, Ordering::Relaxed);
        self.drivers.poll_counted() | self.visit()
    }

    /// How often [`drive`](Self::drive) was called.
    pub fn drives(&self) -> u64 {
        self.drives.load(Ordering::Relaxed)
    }

    /// The port that has this address.
    pub fn port_of(&self, own: IpAddr) -> Option<usize> {
        self.ports.iter().position(|port| port.network.lock().gids().index_of_address(own).is_some())
    }

    /// The port that leads to a destination: the one that it names or that is bound, or the one with the shortest way.
    pub fn port_towards(
        &self,
        destination: &Destination,
        bound: Option<usize>,
    ) -> Result<(usize, &Arc<PortCore>), ResolveError> {
        let address = destination.address.to_canonical();
        let named = |(index, port): &(usize, &Arc<PortCore>)| match &destination.scope {
            Some(scope) => port.has_link(scope) || (index + 1).to_string() == *scope,
            None => true,
        };
        let mut candidates =
            self.ports.iter().enumerate().filter(|(index, _)| bound.is_none_or(|own| own == *index));
        let mut ways = Vec::new();
        let mut why = None;
        for candidate in candidates.by_ref().filter(named) {
            match candidate.1.network.lock().route(address) {
                Ok((_, route)) => ways.push((rank(&route.next_hop, address), candidate)),
                Err(error) => why = Some(error),
            }
        }
        ways.sort_by_key(|(rank, (index, _))| (*rank, *index));
        match (ways.first(), why) {
            (Some(&(_, best)), _) => Ok(best),
            (None, Some(why)) => Err(WrongGid::Route { destination: address, why }.into()),
            (None, None) => Err(ResolveError::Scope {
                scope: destination.scope.clone().unwrap_or_default(),
                port: self.ports.first().map_or_else(String::new, |port| port.facts.name.clone()),
                links: self.ports.iter().flat_map(|port| port.link_names()).collect::<Vec<_>>().join(", "),
            }),
        }
    }
}
