//! The GID table of a port.
//!
//! Serves "GIDs and address resolution" of the wire facts: a port that speaks RoCE v1 and v2 holds every GID once for each,
//! v1 first; the default GID takes the first indices, addresses follow in the order they were added. An index stays with its address for as long as the address is there:
//! removal leaves a hole, which the next addition fills.

use std::net::IpAddr;

use wire::{Gid, Mac, RoceVersion};

/// One GID.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GidEntry {
    /// The 128 bits as on the wire.
    pub gid: Gid,
    /// The same as an IP address: what goes into the packet's IP header.
    pub address: IpAddr,
    /// What is spoken from it.
    pub gid_type: RoceVersion,
}

/// GIDs by index.
#[derive(Clone, Debug)]
pub struct GidTable {
    entries: Vec<Option<GidEntry>>,
    /// In the order of the entries of one GID; at least one.
    types: Vec<RoceVersion>,
}

impl GidTable {
    /// A table with the default GID of `mac` at the first indices, one for each type. No type means v2.
    pub fn new(mac: Mac, types: &[RoceVersion]) -> Self {
        let mut types: Vec<RoceVersion> =
            [RoceVersion::V1, RoceVersion::V2].into_iter().filter(|known| types.contains(known)).collect();
        if types.is_empty() {
            types.push(RoceVersion::V2);
        }
        let default = Gid::link_local(mac);
        GidTable { entries: types.iter().map(|&of| Some(GidEntry::of(default, of))).collect(), types }
    }

    /// Adds an address, once for each type, and returns its index, or the index it has already: that of the v2 entry where
    /// there is one.
    pub fn add(&mut self, address: IpAddr) -> usize {
        let mut index = 0;
        for gid_type in self.types.clone() {
            index = self.add_entry(GidEntry::of(address.into(), gid_type));
        }
        index
    }

    fn add_entry(&mut self, entry: GidEntry) -> usize {
        let known = self.entries.iter().position(|there| *there == Some(entry));
        let hole = known.or_else(|| self.entries.iter().position(Option::is_none));
        let index = hole.unwrap_or(self.entries.len());
        if index == self.entries.len() {
            self.entries.push(None);
        }
        self.entries[index] = Some(entry);
        index
    }

    /// Removes an address and returns the indices it had. The default GID stays.
    pub fn remove(&mut self, address: IpAddr) -> Vec<usize> {
        let gid = Gid::from(address);
        let defaults = self.types.len();
        let mut removed = Vec::new();
        for (index, place) in self.entries.iter_mut().enumerate().skip(defaults) {
            if place.is_some_and(|entry| entry.gid == gid) {
                *place = None;
                removed.push(index);
            }
        }
        removed
    }

    /// The entry at `index`, if there is one.
    pub fn get(&self, index: usize) -> Option<GidEntry> {
        self.entries.get(index).copied().flatten()
    }

    /// The index of a GID: that of type v2 where there is one.
    pub fn index_of(&self, gid: Gid) -> Option<usize> {
        self.types.iter().rev().find_map(|&gid_type| self.index_of_type(gid, gid_type))
    }

    /// The index of a GID of a type.
    pub fn index_of_type(&self, gid: Gid, gid_type: RoceVersion) -> Option<usize> {
        let wanted = |entry: &GidEntry| (entry.gid, entry.gid_type) == (gid, gid_type);
        self.iter().find(|(_, entry)| wanted(entry)).map(|(index, _)| index)
    }

    /// The index of an address of ours, IPv4 plain or mapped.
    pub fn index_of_address(&self, address: IpAddr) -> Option<usize> {
        self.index_of(address.into())
    }

    /// What is spoken when nothing else is said: v2 where the port does.
    pub fn default_type(&self) -> RoceVersion {
        self.types.last().copied().unwrap_or_default()
    }

    /// All entries with their index.
    pub fn iter(&self) -> impl Iterator<Item = (usize, GidEntry)> + '_ {
        self.entries.iter().enumerate().filter_map(|(index, entry)| Some((index, (*entry)?)))
    }
}

impl GidEntry {
    fn of(gid: Gid, gid_type: RoceVersion) -> Self {
        GidEntry { gid, address: gid.ip(), gid_type }
    }
}
