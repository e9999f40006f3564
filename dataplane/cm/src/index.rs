//! Ways to find a connection, and what each peer has under way.

use crate::Path;
use crate::slab::Handle;
use std::collections::BTreeMap;
use wire::mad::CommId;
use wire::{Gid, Qpn};

/// A node at an address. Linux takes the GUID alone (rocev2 facts, CM 11); with the address, nobody can speak of the
/// connections of others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Peer {
    remote: Gid,
    scope: u32,
    ca_guid: u64,
}

impl Peer {
    pub fn new(path: &Path, ca_guid: u64) -> Peer {
        Peer { remote: path.remote, scope: path.scope, ca_guid }
    }
}

#[derive(Debug, Default)]
pub(crate) struct Index {
    /// Every connection, by its own ID.
    pub by_local: BTreeMap<CommId, Handle>,
    /// Connections whose peer has told its ID.
    pub by_remote: BTreeMap<(Peer, CommId), Handle>,
    /// The same while they live: a QP has one connection at a time.
    pub by_qpn: BTreeMap<(Peer, Qpn), Handle>,
    /// Requests under way, by the peer's address.
    half_open: BTreeMap<Gid, usize>,
    half_open_in_all: usize,
}

impl Index {
    pub fn half_open_of(&self, remote: Gid) -> usize {
        self.half_open.get(&remote).copied().unwrap_or(0)
    }

    pub fn half_open_in_all(&self) -> usize {
        self.half_open_in_all
    }

    pub fn keys(&self) -> usize {
        self.by_local.len() + self.by_remote.len() + self.by_qpn.len() + self.half_open.len()
    }

    pub fn open_half(&mut self, remote: Gid) {
        *self.half_open.entry(remote).or_default() += 1;
        self.half_open_in_all += 1;
    }

    pub fn close_half(&mut self, remote: Gid) {
        let Some(count) = self.half_open.get_mut(&remote) else { return };
        *count -= 1;
        self.half_open_in_all -= 1;
        if *count == 0 {
            self.half_open.remove(&remote);
        }
    }

    /// Removes `key` when it still leads to `handle`.
    pub fn forget<K: Ord>(map: &mut BTreeMap<K, Handle>, key: &K, handle: Handle) {
        if map.get(key) == Some(&handle) {
            map.remove(key);
        }
    }
}
