//! Who of a port's QPs is attached to which multicast group.
//!
//! The first member of a group makes the port join it: routers hear of it (`net`), and the device lets its frames through.
//! The last one makes it leave.

use super::port::PortCore;
use crate::error::QpError;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};
use wire::{Gid, Qpn};
use worker::Command;

/// Groups of a port.
pub(crate) const MAX_GROUPS: usize = 1024;
/// QPs attached to one group.
pub(crate) const MAX_MEMBERS: usize = 256;

/// Members by group.
#[derive(Debug, Default)]
pub(crate) struct Groups(Mutex<BTreeMap<Gid, BTreeSet<u32>>>);

impl Groups {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<Gid, BTreeSet<u32>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl PortCore {
    /// Attaches a QP to a group; one that is attached already stays so.
    pub fn attach_mcast(&self, qpn: Qpn, group: Gid) -> Result<(), QpError> {
        if !group.is_multicast() {
            return Err(QpError::NoGroup(group.ip()));
        }
        // Held all the way, so that two changes of one group do not cross.
        let mut groups = self.groups.lock();
        let members = groups.get(&group).map_or(0, BTreeSet::len);
        if members == 0 && groups.len() >= MAX_GROUPS {
            return Err(QpError::TooMany { what: "groups of this port", most: MAX_GROUPS });
        }
        if members >= MAX_MEMBERS {
            return Err(QpError::TooMany { what: "queue pairs attached to this group", most: MAX_MEMBERS });
        }
        self.everywhere(|lane| Command::AttachMcast { lane, group, qpn })?;
        groups.entry(group).or_default().insert(qpn.value());
        if members == 0 {
            self.filter(groups.keys().copied());
            let mut interface = self.network.lock();
            interface.join_group(self.clock.now_ns(), group.ip());
            self.send_waiting(&mut interface);
        }
        Ok(())
    }

    /// Detaches a QP from a group.
    pub fn detach_mcast(&self, qpn: Qpn, group: Gid) -> Result<(), QpError> {
        let mut groups = self.groups.lock();
        let attached = groups.get_mut(&group).is_some_and(|members| members.remove(&qpn.value()));
        if !attached {
            return Err(QpError::NotAttached(group.ip()));
        }
        if groups.get(&group).is_some_and(BTreeSet::is_empty) {
            groups.remove(&group);
            self.filter(groups.keys().copied());
            let mut interface = self.network.lock();
            interface.leave_group(self.clock.now_ns(), group.ip());
            self.send_waiting(&mut interface);
        }
        self.everywhere(|lane| Command::DetachMcast { lane, group, qpn })?;
        Ok(())
    }

    /// Detaches a QP that goes away from all of its groups.
    pub fn detach_from_all(&self, qpn: Qpn) {
        let attached: Vec<Gid> = {
            let groups = self.groups.lock();
            groups.iter().filter(|(_, members)| members.contains(&qpn.value())).map(|(&gid, _)| gid).collect()
        };
        for group in attached {
            // A worker that is gone delivers nothing any more.
            let _ = self.detach_mcast(qpn, group);
        }
    }

    /// Has the device take frames for these groups. One that takes all multicast frames needs no telling; one that cannot
    /// choose takes everything, and one that cannot do that either has no filter (as the software devices).
    fn filter(&self, groups: impl Iterator<Item = Gid>) {
        let device = self.device();
        if device.negotiated().allmulticast || device.negotiated().promiscuous {
            return;
        }
        let solicited = |own: &crate::net::Prefix| match own.address() {
            std::net::IpAddr::V6(v6) => Some(Gid::from(crate::net::solicited_node(v6))),
            std::net::IpAddr::V4(_) => None,
        };
        let always = ALWAYS.iter().map(|group| Gid(*group));
        let own: Vec<Gid> = self.network.lock().addresses().iter().filter_map(solicited).collect();
        let macs: BTreeSet<[u8; 6]> =
            groups.chain(always).chain(own).filter_map(Gid::multicast_mac).map(|mac| mac.0).collect();
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
