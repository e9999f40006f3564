//! All identifiers of an endpoint, for what concerns those of a port at once: an address that goes, a port that dies.

use super::event::CmEventKind;
use super::host::Host;
use super::id::{Inner, State};
use super::moves;
use super::port::Conn;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// Identifiers by their keys.
#[derive(Default)]
pub(super) struct Registry(Mutex<HashMap<u64, Weak<Inner>>>);

/// What has happened to a port, until identifiers have been told.
#[derive(Debug, Default)]
pub(crate) struct News {
    addresses: AtomicBool,
    removed: AtomicBool,
}

impl News {
    /// Addresses have come or gone.
    pub fn note_addresses(&self) {
        self.addresses.store(true, Ordering::Release);
    }
}

impl Registry {
    fn lock(&self) -> MutexGuard<'_, HashMap<u64, Weak<Inner>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn add(&self, id: &Arc<Inner>) {
        self.lock().insert(id.key, Arc::downgrade(id));
    }

    pub fn remove(&self, key: u64) {
        self.lock().remove(&key);
    }

    /// Those of a port. They are let go of without the lock: one of these may be the last handle.
    fn of_port(&self, index: usize) -> Vec<Arc<Inner>> {
        let all: Vec<Arc<Inner>> = self.lock().values().filter_map(Weak::upgrade).collect();
        all.into_iter().filter(|id| id.lock().port == Some(index)).collect()
    }
}

impl Host {
    /// Tells identifiers whose address was taken from a port.
    pub(super) fn tell_of_addresses(&self, index: usize) {
        let Some(port) = self.ports.get(index) else { return };
        if !port.cm.news.addresses.swap(false, Ordering::AcqRel) {
            return;
        }
        for id in self.registry.of_port(index) {
            let own = id.lock().local.map(|at| at.ip()).filter(|own| !own.is_unspecified());
            if own.is_some_and(|own| self.port_of(own) != Some(index)) {
                id.on_address_lost();
            }
        }
    }

    /// Tells identifiers whose port has died: its worker ended, and nothing comes or goes any more.
    pub fn tell_of_removal(&self) {
        for (index, port) in self.ports.iter().enumerate() {
            let dead = port.lanes.iter().any(|lane| lane.worker.is_stopped());
            if dead && !port.cm.news.removed.swap(true, Ordering::AcqRel) {
                for id in self.registry.of_port(index) {
                    id.lock().state = State::Closed;
                    id.report(CmEventKind::DeviceRemoval);
                }
            }
        }
    }
}

impl Inner {
    /// Nothing can be sent from its address any more, so a connection is over, too.
    fn on_address_lost(self: &Arc<Inner>) {
        let mut place = self.lock();
        if std::mem::replace(&mut place.lost, true) {
            return;
        }
        let connected = matches!(place.state, State::Connected | State::Accepted);
        let (conn, qp) = (place.conn.filter(|_| connected), place.qp.clone());
        let port = self.port(&place).ok().cloned();
        drop(place);
        self.report(CmEventKind::AddrChange);
        if let (Some(Conn::Connection(conn)), Some(port)) = (conn, port) {
            qp.iter().for_each(moves::fail);
            port.cm_disconnect(conn);
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::cm::{CmEventKind, EventChannel, PortSpace, State};
    use crate::{Endpoint, RingPair};
    use std::time::Duration;
    use worker::Command;

    #[test]
    fn identifiers_hear_when_their_port_has_died() {
        let (endpoint, _other) = Endpoint::ring_pair(&RingPair::default()).unwrap();
        let channel = EventChannel::new().unwrap();
        let [bound, free] = [(), ()].map(|()| endpoint.create_id(&channel, PortSpace::Tcp));
        bound.bind("10.82.72.1:0".parse().unwrap()).unwrap();
        let lane = &endpoint.core.host().ports[0].lanes[0];
        lane.worker.call(Command::Stop).unwrap();
        let event = channel.wait(Duration::from_secs(10)).unwrap();
        assert!(matches!(event.kind, CmEventKind::DeviceRemoval), "{event:?}");
        assert_eq!((event.id == bound, bound.state(), free.state()), (true, State::Closed, State::New));
        assert!(channel.wait(Duration::from_millis(500)).is_none(), "once");
    }
}
