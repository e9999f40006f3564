//! The GID table of a port. All entries are of type RoCE v2.
//!
//! Serves "GIDs and address resolution" of the wire facts: the default GID takes the first index, addresses
//! follow in the order they were added. An index stays with its address for as long as the address is there:
//! removal leaves a hole, which the next addition fills.

use std::net::IpAddr;

use wire::{Gid, Mac};

/// One GID.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GidEntry {
    /// The 128 bits as on the wire.
    pub gid: Gid,
    /// The same as an IP address: what goes into the packet's IP header.
    pub address: IpAddr,
}

/// GIDs by index.
#[derive(Clone, Debug)]
pub struct GidTable(Vec<Option<GidEntry>>);

impl GidTable {
    /// A table with the default GID of `mac` at index 0.
    pub fn new(mac: Mac) -> Self {
        GidTable(vec![Some(GidEntry::of(Gid::link_local(mac)))])
    }

    /// Adds an address and returns its index, or the index it has already.
    pub fn add(&mut self, address: IpAddr) -> usize {
        if let Some(index) = self.index_of(address.into()) {
            return index;
        }
        let entry = Some(GidEntry::of(address.into()));
        match self.0.iter().position(Option::is_none) {
            Some(hole) => {
                self.0[hole] = entry;
                hole
            }
            None => {
                self.0.push(entry);
                self.0.len() - 1
            }
        }
    }

    /// Removes an address and returns the index it had. The default GID stays.
    pub fn remove(&mut self, address: IpAddr) -> Option<usize> {
        let index = self.index_of(address.into()).filter(|index| *index != 0)?;
        self.0[index] = None;
        Some(index)
    }

    /// The entry at `index`, if there is one.
    pub fn get(&self, index: usize) -> Option<GidEntry> {
        self.0.get(index).copied().flatten()
    }

    /// The index of a GID.
    pub fn index_of(&self, gid: Gid) -> Option<usize> {
        self.iter().find(|(_, entry)| entry.gid == gid).map(|(index, _)| index)
    }

    /// The index of an address of ours, IPv4 plain or mapped.
    pub fn index_of_address(&self, address: IpAddr) -> Option<usize> {
        self.index_of(address.into())
    }

    /// All entries with their index.
    pub fn iter(&self) -> impl Iterator<Item = (usize, GidEntry)> + '_ {
        self.0.iter().enumerate().filter_map(|(index, entry)| Some((index, (*entry)?)))
    }
}

impl GidEntry {
    fn of(gid: Gid) -> Self {
        GidEntry { gid, address: gid.ip() }
    }
}
