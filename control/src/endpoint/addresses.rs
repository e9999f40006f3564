//! Addresses of a port that come and go while it runs, and what depends on them.
//!
//! After a change the workers get the new table, each by one command between two bursts, so that no packet sees half of it.
//! Then queue pairs whose GID is gone end: they go to ERROR, what was posted to them is flushed, and an event names each. Packets to the
//! old address are dropped and counted. Address handles whose GID is gone are refused from then on.

use super::port::PortCore;
use crate::error::AddressError;
use crate::net::{MAX_ADDRESSES, Prefix, Stack};
use engine::AddressHandle;
use std::collections::BTreeSet;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use wire::{Gid, Mac, RoceVersion};
use worker::{AddressSet, CallError, Command, LinkAddresses, Reply, Whom};

/// Queue pairs that a worker takes to ERROR between two bursts.
const BROKEN_PER_COMMAND: usize = 32;

/// Whatever a link takes in fits into a worker's table.
const _: () = assert!(MAX_ADDRESSES <= LinkAddresses::MAX_GIDS);

/// An address handle and the GID that it sends from.
#[derive(Debug)]
struct Handle {
    handle: Weak<AddressHandle>,
    from: (Gid, RoceVersion, Option<u16>),
    /// It was made for the next hop that its destination has, and follows that to another MAC. One to a MAC that its maker names
    /// does not.
    follows: bool,
}

/// Address handles in use. The lock is also held while workers are told of a change, so that two changes do not cross.
#[derive(Debug, Default)]
pub(crate) struct Addresses {
    change: Mutex<()>,
    handles: Mutex<Handles>,
}

#[derive(Debug, Default)]
struct Handles {
    all: Vec<Handle>,
    /// At so many the dead are thrown out.
    sweep_at: usize,
}

impl Addresses {
    fn handles(&self) -> MutexGuard<'_, Handles> {
        self.handles.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl PortCore {
    /// Adds an address to a link; its GID index.
    pub fn add_address(&self, vlan: Option<u16>, address: Prefix) -> Result<usize, AddressError> {
        let _change = self.addresses.change.lock().unwrap_or_else(PoisonError::into_inner);
        let index = self.network.lock().add_address(vlan, address)?;
        self.refresh_filter();
        self.publish_addresses()?;
        // Announced when the workers know it: who hears of it may send at once.
        let mut stack = self.network.lock();
        self.send_waiting(&mut stack);
        self.report(&mut stack);
        Ok(index)
    }

    /// Removes an address from a link and ends what used it; whether it was there.
    pub fn remove_address(&self, vlan: Option<u16>, address: IpAddr) -> Result<bool, AddressError> {
        let _change = self.addresses.change.lock().unwrap_or_else(PoisonError::into_inner);
        let found = self.network.lock().remove_address(vlan, address)?;
        self.refresh_filter();
        self.publish_addresses()?;
        self.break_handles();
        self.break_strays()?;
        self.report(&mut self.network.lock());
        Ok(found)
    }

    /// Tells the workers which addresses are ours.
    pub fn publish_addresses(&self) -> Result<(), CallError> {
        let addresses = self.address_set(&self.network.lock());
        self.everywhere(|lane| Command::SetAddresses { lane, addresses: Box::new(addresses.clone()) })
    }

    fn address_set(&self, stack: &Stack) -> AddressSet {
        let mut links: Vec<LinkAddresses> = Vec::new();
        for link in stack.links() {
            let mut addresses = LinkAddresses { vlan: link.vlan().unwrap_or(0), ..LinkAddresses::default() };
            for (_, entry) in stack.gids().iter().filter(|(_, entry)| entry.vlan == link.vlan()) {
                let of_type = match entry.gid_type {
                    RoceVersion::V1 => &mut addresses.v1_gids,
                    RoceVersion::V2 => &mut addresses.gids,
                };
                // There is room, see `MAX_ADDRESSES`.
                let _ = of_type.try_push(entry.gid);
            }
            links.push(addresses);
        }
        let mut links = links.into_iter();
        let mut set = AddressSet { own: links.next().unwrap_or_default(), ..AddressSet::default() };
        set.others = links.collect();
        set.macs.push(self.facts.mac);
        set
    }

    /// Takes every queue pair whose GID is not ours any more to ERROR, some between two bursts.
    fn break_strays(&self) -> Result<(), CallError> {
        for lane in &self.lanes {
            loop {
                let most = BROKEN_PER_COMMAND;
                match lane.worker.call(Command::BreakStrays { lane: lane.lane, most })? {
                    Reply::Count(count) if count == most => {}
                    _ => break,
                }
            }
        }
        Ok(())
    }

    /// Remembers an address handle for as long as it is used.
    pub fn note_handle(&self, handle: &Arc<AddressHandle>, from: (Gid, RoceVersion, Option<u16>)) {
        let next_hop = self.network.lock().link(from.2).and_then(|link| link.known_mac(handle.dgid.ip()));
        let follows = next_hop == Some(handle.dmac());
        let mut handles = self.addresses.handles();
        if handles.all.len() >= handles.sweep_at {
            handles.all.retain(|known| known.handle.strong_count() > 0);
            handles.sweep_at = (2 * handles.all.len()).max(64);
        }
        handles.all.push(Handle { handle: Arc::downgrade(handle), from, follows });
    }

    /// The peers of address handles that follow them, with the link's VLAN.
    pub(super) fn peers_of_handles(&self) -> BTreeSet<(Option<u16>, IpAddr)> {
        let handles = self.addresses.handles();
        let following = handles.all.iter().filter(|known| known.follows);
        following.filter_map(|known| Some((known.from.2, known.handle.upgrade()?.dgid.ip()))).collect()
    }

    /// Turns address handles to where their next hop is now.
    pub(super) fn redirect_handles(&self, whom: &Whom, from: Mac, to: Mac) {
        for known in self.addresses.handles().all.iter().filter(|known| known.follows) {
            let led = |handle: &Arc<AddressHandle>| whom.leads_to(known.from.2.unwrap_or(0), handle.dgid);
            if let Some(handle) = known.handle.upgrade().filter(led) {
                handle.redirect(from, to);
            }
        }
    }

    /// Ends address handles whose GID is gone.
    fn break_handles(&self) {
        let stack = self.network.lock();
        let gids = stack.gids();
        let is_ours = |(gid, gid_type, vlan)| gids.index_on(gid, gid_type, vlan).is_some();
        for Handle { handle, from, .. } in &self.addresses.handles().all {
            if let Some(handle) = handle.upgrade().filter(|_| !is_ours(*from)) {
                handle.withdraw();
            }
        }
    }
}
