//! Who listens for what.

use crate::slab::{Handle, Slab};
use crate::{Cm, CmError, Path};
use std::collections::BTreeMap;
use wire::Gid;
use wire::mad::ServiceId;

/// A listener. IDs of listeners that are gone name nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ListenerId(pub(crate) Handle);

#[derive(Debug)]
struct Listener {
    key: Key,
    backlog: usize,
    /// Requests that the application has not answered.
    waiting: usize,
}

/// A service, at one of our addresses or at all.
type Key = (ServiceId, Option<(Gid, u32)>);

#[derive(Debug, Default)]
pub(crate) struct Listeners {
    table: Slab<Listener>,
    by_key: BTreeMap<Key, ListenerId>,
}

impl Listeners {
    pub fn len(&self) -> usize {
        self.table.len()
    }

    /// Who listens for a service at the address that was asked; the one for this address before the one for all.
    pub fn find(&self, service_id: ServiceId, path: &Path) -> Option<ListenerId> {
        let here = Some((path.local, path.scope));
        [here, None].into_iter().find_map(|at| self.by_key.get(&(service_id, at)).copied())
    }

    /// Takes a place in the backlog; `false` when it is full.
    pub fn ask(&mut self, listener: ListenerId) -> bool {
        let Some(listener) = self.table.get_mut(listener.0) else { return false };
        let room = listener.waiting < listener.backlog;
        listener.waiting += usize::from(room);
        room
    }

    /// Gives a place in the backlog back.
    pub fn answered(&mut self, listener: ListenerId) {
        if let Some(listener) = self.table.get_mut(listener.0) {
            listener.waiting -= 1;
        }
    }
}

impl Cm {
    /// Listens for a service ID, at one of our GIDs (with its scope) or at all of them. Up to `backlog` requests can wait for
    /// the application's answer. A listener for one GID goes before the one for all.
    pub fn listen(
        &mut self,
        service_id: ServiceId,
        local: Option<(Gid, u32)>,
        backlog: usize,
    ) -> Result<ListenerId, CmError> {
        let key = (service_id, local);
        if self.listeners.by_key.contains_key(&key) {
            return Err(CmError::InUse);
        }
        if self.listeners.len() >= self.config.limits.listeners {
            return Err(CmError::Full);
        }
        let backlog = backlog.max(1);
        let id = ListenerId(self.listeners.table.insert_with(|_| Listener { key, backlog, waiting: 0 }));
        self.listeners.by_key.insert(key, id);
        Ok(id)
    }

    /// Stops listening. Requests that were told already stay the application's to answer.
    pub fn unlisten(&mut self, listener: ListenerId) -> Result<(), CmError> {
        let gone = self.listeners.table.remove(listener.0).ok_or(CmError::UnknownId)?;
        self.listeners.by_key.remove(&gone.key);
        Ok(())
    }
}
