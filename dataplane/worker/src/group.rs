//! Multicast groups: which QPs of the port are attached to which, and a copy for each of them.
//!
//! Every worker has the whole table, changed by command, so a look-up takes no lock. A packet to a group arrives on one
//! worker; that one serves its own members and sends one copy to each other worker that has some (rocev2 facts, wire 12:
//! every attached QP gets it, after P_Key and Q_Key checks). What the port itself sends to a group is looped to its
//! members too.

use crate::address::{LinkAddresses, vid};
use crate::counters::Drop;
use crate::directory::MAX_WORKERS;
use crate::handoff::Parcel;
use crate::lane::Lane;
use dpdk::{Mbuf, Mempool};
use engine::Nanos;
use std::collections::HashMap;
use std::sync::Arc;
use wire::{Frame, Gid, Network, Qpn};

/// The members of each group on each link, named by its VLAN (0: untagged), of all workers of the port.
#[derive(Debug, Default)]
pub(crate) struct Groups(HashMap<(u16, Gid), Arc<[Qpn]>>);

impl Groups {
    #[inline]
    pub fn has(&self, vid: u16, group: Gid) -> bool {
        !self.0.is_empty() && self.0.contains_key(&(vid, group))
    }

    /// Adds a member; one that is there already stays one.
    pub fn attach(&mut self, vid: u16, group: Gid, qpn: Qpn) {
        let members = self.0.get(&(vid, group)).map_or(&[][..], |members| members);
        if !members.contains(&qpn) {
            let more = members.iter().copied().chain([qpn]).collect();
            self.0.insert((vid, group), more);
        }
    }

    /// Removes a member, and the group with its last one.
    pub fn detach(&mut self, vid: u16, group: Gid, qpn: Qpn) {
        let Some(members) = self.0.get(&(vid, group)) else { return };
        let fewer: Arc<[Qpn]> = members.iter().copied().filter(|&member| member != qpn).collect();
        if fewer.is_empty() {
            self.0.remove(&(vid, group));
        } else {
            self.0.insert((vid, group), fewer);
        }
    }

    fn members(&self, frame: &Frame) -> Option<Arc<[Qpn]>> {
        self.0.get(&(vid(frame), frame.dst)).cloned()
    }
}

impl Lane {
    /// Whether a good frame to a group is for somebody here. Gives the link.
    #[inline]
    pub(crate) fn admit_group(&self, frame: &Frame) -> Result<&LinkAddresses, Drop> {
        let link = self.addresses.link(vid(frame)).ok_or(Drop::OtherVlan)?;
        let v1 = frame.network == Network::V1 && link.v1_gids.is_empty();
        if v1 || !(frame.dmac.is_multicast() || self.addresses.macs.contains(&frame.dmac)) {
            return Err(Drop::NotOurAddress);
        }
        if frame.bth().dest_qpn != Qpn::MULTICAST {
            return Err(Drop::GroupQpn);
        }
        if self.groups.has(link.vlan, frame.dst) { Ok(link) } else { Err(Drop::GroupNotAttached) }
    }

    /// A packet to a group that came to this worker: a copy for every member.
    pub(crate) fn deliver_group(&mut self, now: Nanos, mbuf: &Mbuf, frame: &Frame) {
        let Some(members) = self.groups.members(frame) else { return };
        let mut elsewhere = [false; MAX_WORKERS];
        for &qpn in members.iter() {
            match self.link.home(qpn).filter(|&home| home != self.index) {
                Some(home) => elsewhere[home] = true,
                None => self.deliver_member(now, mbuf, frame, qpn),
            }
        }
        let workers = self.link.config().workers;
        for (home, _) in elsewhere[..workers].iter().enumerate().filter(|(_, wanted)| **wanted) {
            self.send_group(mbuf, home);
        }
    }

    /// A packet to a group that another worker sent here: for the members that live here.
    pub(crate) fn deliver_handed_group(&mut self, now: Nanos, mbuf: &Mbuf, frame: &Frame) {
        let Some(members) = self.groups.members(frame) else { return };
        for &qpn in members.iter() {
            if self.link.home(qpn) == Some(self.index) {
                self.deliver_member(now, mbuf, frame, qpn);
            }
        }
    }

    fn deliver_member(&mut self, now: Nanos, mbuf: &Mbuf, frame: &Frame, qpn: Qpn) {
        // A QP that is gone is the engine's to count.
        let _ = self.at_home(now, qpn);
        self.execute_for(now, mbuf, frame, qpn);
    }

    fn send_group(&mut self, mbuf: &Mbuf, home: usize) {
        let Some(copy) = copy(mbuf, &self.outgoing.pool) else {
            return self.counters.count_drop(Drop::GroupNoBuffer);
        };
        if self.link.parcels(self.index, home).push(Parcel::Group(copy)).is_err() {
            return self.counters.count_drop(Drop::HandoffFull);
        }
        self.counters.traffic.handed_over += 1;
        self.rouse(home);
    }
}

/// The same bytes in another buffer; `None` when there is none, or none so large.
pub(crate) fn copy(mbuf: &Mbuf, pool: &Mempool) -> Option<Mbuf> {
    let mut copy = pool.alloc()?;
    mbuf.segments().all(|segment| copy.extend_from_slice(segment)).then_some(copy)
}
