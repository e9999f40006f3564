//! Who of a port's QPs is attached to which multicast group.
//!
//! The first member of a group makes the port join it: routers hear of it (`net`), and the device lets its frames through.
//! The last one makes it leave.

use super::port::PortCore;
use crate::error::QpError;
use crate::net::AddressRefused;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};
use wire::{Gid, Qpn};
use worker::Command;

/// Groups of a port.
pub(crate) const MAX_GROUPS: usize = 1024;
/// QPs attached to one group.
pub(crate) const MAX_MEMBERS: usize = 256;

/// A group on a link: its VLAN, 0 for untagged, and its address.
type Place = (u16, Gid);

/// Members by group and link.
#[derive(Debug, Default)]
pub(crate) struct Groups(Mutex<BTreeMap<Place, BTreeSet<u32>>>);

impl Groups {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<Place, BTreeSet<u32>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl PortCore {
    /// Attaches a QP to a group on a link; one that is attached already stays so.
    pub fn attach_mcast(&self, qpn: Qpn, vlan: Option<u16>, group: Gid) -> Result<(), QpError> {
        if !group.is_multicast() {
            return Err(QpError::NoGroup(group.ip()));
        }
        if self.network.lock().link(vlan).is_none() {
            return Err(QpError::NoLink(AddressRefused::NoLink(vlan)));
        }
        // Held all the way, so that two changes of one group do not cross.
        let mut groups = self.groups.lock();
        let place = (vlan.unwrap_or(0), group);
        let members = groups.get(&place).map_or(0, BTreeSet::len);
        if members == 0 && groups.len() >= MAX_GROUPS {
            return Err(QpError::TooMany { what: "groups of this port", most: MAX_GROUPS });
        }
        if members >= MAX_MEMBERS {
            return Err(QpError::TooMany { what: "queue pairs attached to this group", most: MAX_MEMBERS });
        }
        self.everywhere(|lane| Command::AttachMcast { lane, vid: place.0, group, qpn })?;
        groups.entry(place).or_default().insert(qpn.value());
        if members == 0 {
            self.filter(&groups);
            let mut stack = self.network.lock();
            stack.join_group(self.clock.now_ns(), vlan, group.ip());
            self.send_waiting(&mut stack);
        }
        Ok(())
    }

    /// Detaches a QP from a group on a link.
    pub fn detach_mcast(&self, qpn: Qpn, vlan: Option<u16>, group: Gid) -> Result<(), QpError> {
        let mut groups = self.groups.lock();
        let place = (vlan.unwrap_or(0), group);
        let attached = groups.get_mut(&place).is_some_and(|members| members.remove(&qpn.value()));
        if !attached {
            return Err(QpError::NotAttached(group.ip()));
        }
        if groups.get(&place).is_some_and(BTreeSet::is_empty) {
            groups.remove(&place);
            self.filter(&groups);
            let mut stack = self.network.lock();
            stack.leave_group(self.clock.now_ns(), vlan, group.ip());
            self.send_waiting(&mut stack);
        }
        self.everywhere(|lane| Command::DetachMcast { lane, vid: place.0, group, qpn })?;
        Ok(())
    }

    /// Detaches a QP that goes away from all of its groups.
    pub fn detach_from_all(&self, qpn: Qpn) {
        let attached: Vec<Place> = {
            let groups = self.groups.lock();
            let has = |(_, members): &(&Place, &BTreeSet<u32>)| members.contains(&qpn.value());
            groups.iter().filter(has).map(|(&place, _)| place).collect()
        };
        for (vid, group) in attached {
            // A worker that is gone delivers nothing any more.
            let _ = self.detach_mcast(qpn, (vid != 0).then_some(vid), group);
        }
    }

    /// Has the device's filter follow our addresses: neighbours are asked for at a group of theirs.
    pub fn refresh_filter(&self) {
        self.filter(&self.groups.lock());
    }

    /// Has the device take frames for these groups. One that takes all multicast frames needs no telling; one that cannot
    /// choose takes everything, and one that cannot do that either has no filter (as the software devices).
    fn filter(&self, groups: &BTreeMap<Place, BTreeSet<u32>>) {
        let device = self.device();
        if device.negotiated().allmulticast || device.negotiated().promiscuous {
            return;
        }
        let always = ALWAYS.iter().map(|group| Gid(*group));
        let own: Vec<Gid> = self.network.lock().solicited_groups().collect();
        let joined = groups.keys().map(|&(_, group)| group);
        let macs: BTreeSet<[u8; 6]> =
            joined.chain(always).chain(own).filter_map(Gid::multicast_mac).map(|mac| mac.0).collect();
        let macs: Vec<[u8; 6]> = macs.into_iter().collect();
        if device.set_multicast(&macs).is_err() {
            let _ = device.set_promiscuous(true);
        }
    }
}

/// All hosts of the link, in IPv4 and IPv6: routers ask there.
const ALWAYS: [[u8; 16]; 2] = [
    [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF, 224, 0, 0, 1],
    [0xFF, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1],
];
