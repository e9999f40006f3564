//! The GID table of a port.
//!
//! Serves "GIDs and address resolution" of the wire facts: a port that speaks RoCE v1 and v2 holds every GID once for each,
//! v1 first; the default GID takes the first indices, addresses follow in the order they were added. Each entry is of one
//! link of the port, the port's own or a VLAN's, so that the same address may be there once for each link, as the default
//! GID is. An index stays with its address for as long as the address is there: removal leaves a hole, which the next
//! addition fills.

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
    /// The VLAN that it belongs to: its packets carry this tag, and only packets with this tag are for it.
    pub vlan: Option<u16>,
}

/// With its VLAN, as in `192.0.2.1 in VLAN 5`.
impl std::fmt::Display for GidEntry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.address)?;
        self.vlan.map_or(Ok(()), |vlan| write!(f, " in VLAN {vlan}"))
    }
}

/// GIDs by index.
#[derive(Clone, Debug)]
pub struct GidTable {
    entries: Vec<Option<GidEntry>>,
    /// In the order of the entries of one GID; at least one.
    types: Vec<RoceVersion>,
    default: Gid,
}

impl GidTable {
    /// A table with the default GID of `mac` on the port's own link at the first indices, one for each type. No type means
    /// v2.
    pub fn new(mac: Mac, vlan: Option<u16>, types: &[RoceVersion]) -> Self {
        let mut types: Vec<RoceVersion> =
            [RoceVersion::V1, RoceVersion::V2].into_iter().filter(|known| types.contains(known)).collect();
        if types.is_empty() {
            types.push(RoceVersion::V2);
        }
        let default = Gid::link_local(mac);
        let mut table = GidTable { entries: Vec::new(), types, default };
        table.add(default.ip(), vlan);
        table
    }

    /// Adds an address of a link, once for each type. Gives the indices that it has, added now or before: of v2, where it is
    /// spoken, the last.
    pub fn add(&mut self, address: IpAddr, vlan: Option<u16>) -> Vec<usize> {
        let types = self.types.clone();
        types
            .into_iter()
            .map(|gid_type| self.add_entry(GidEntry::of(address.into(), gid_type, vlan)))
            .collect()
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

    /// Removes an address of a link and returns the indices it had. Default GIDs stay.
    pub fn remove(&mut self, address: IpAddr, vlan: Option<u16>) -> Vec<usize> {
        let gid = Gid::from(address);
        let mut removed = Vec::new();
        for (index, place) in self.entries.iter_mut().enumerate() {
            if gid != self.default && place.is_some_and(|entry| (entry.gid, entry.vlan) == (gid, vlan)) {
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

    /// The index of a GID: that of type v2 where there is one, and of the port's own link where it is on several.
    pub fn index_of(&self, gid: Gid) -> Option<usize> {
        self.types.iter().rev().find_map(|&gid_type| self.index_of_type(gid, gid_type))
    }

    /// The index of a GID of a type, of the port's own link where it is on several.
    pub fn index_of_type(&self, gid: Gid, gid_type: RoceVersion) -> Option<usize> {
        let wanted = |entry: &GidEntry| (entry.gid, entry.gid_type) == (gid, gid_type);
        self.iter().find(|(_, entry)| wanted(entry)).map(|(index, _)| index)
    }

    /// The index of a GID of a type and a link.
    pub fn index_on(&self, gid: Gid, gid_type: RoceVersion, vlan: Option<u16>) -> Option<usize> {
        let wanted = |entry: &GidEntry| (entry.gid, entry.gid_type, entry.vlan) == (gid, gid_type, vlan);
        self.iter().find(|(_, entry)| wanted(entry)).map(|(index, _)| index)
    }

    /// The index of a GID on a link: that of type v2 where there is one.
    pub fn index_of_link(&self, gid: Gid, vlan: Option<u16>) -> Option<usize> {
        self.types.iter().rev().find_map(|&gid_type| self.index_on(gid, gid_type, vlan))
    }

    /// The index of an address of ours, IPv4 plain or mapped.
    pub fn index_of_address(&self, address: IpAddr) -> Option<usize> {
        self.index_of(address.into())
    }

    /// Whether a type is spoken.
    pub fn speaks(&self, gid_type: RoceVersion) -> bool {
        self.types.contains(&gid_type)
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
    fn of(gid: Gid, gid_type: RoceVersion, vlan: Option<u16>) -> Self {
        GidEntry { gid, address: gid.ip(), gid_type, vlan }
    }
}
