//! Which frames are for us.

use crate::counters::Drop;
use arrayvec::ArrayVec;
use wire::{Frame, Gid, Mac, Network};

/// The GIDs of one link of a port: of its own, or of a VLAN on it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LinkAddresses {
    /// VLAN of all packets; 0 for none, where a tag that carries only a priority is no VLAN.
    pub vlan: u16,
    /// GIDs of type RoCE v2.
    pub gids: ArrayVec<Gid, { LinkAddresses::MAX_GIDS }>,
    /// GIDs of type RoCE v1. Without any, no v1 packet is taken.
    pub v1_gids: ArrayVec<Gid, { LinkAddresses::MAX_GIDS }>,
}

impl LinkAddresses {
    /// Most GIDs of a type.
    pub const MAX_GIDS: usize = 64;

    /// Whether a GID is one of these.
    #[inline]
    pub fn has(&self, gid: Gid, network: Network) -> bool {
        self.gids_for(network).contains(&gid)
    }

    #[inline]
    pub(crate) fn gids_for(&self, network: Network) -> &[Gid] {
        if network == Network::V1 { &self.v1_gids } else { &self.gids }
    }
}

/// The addresses of a port, as its workers check them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AddressSet {
    /// Ethernet addresses.
    pub macs: ArrayVec<Mac, { AddressSet::MAX_MACS }>,
    /// The port's own link.
    pub own: LinkAddresses,
    /// Its VLANs.
    pub others: Vec<LinkAddresses>,
}

impl AddressSet {
    /// Most Ethernet addresses.
    pub const MAX_MACS: usize = 8;

    /// A set of untagged v2 addresses. `None` when there are more than fit.
    pub fn new(macs: &[Mac], gids: &[Gid]) -> Option<AddressSet> {
        let (macs, gids) = (macs.try_into().ok()?, gids.try_into().ok()?);
        let own = LinkAddresses { gids, ..LinkAddresses::default() };
        Some(AddressSet { macs, own, ..AddressSet::default() })
    }

    /// The link of a VLAN. A port without VLANs pays one comparison for it.
    #[inline]
    pub(crate) fn link(&self, vid: u16) -> Option<&LinkAddresses> {
        if vid == self.own.vlan { Some(&self.own) } else { self.others.iter().find(|link| link.vlan == vid) }
    }

    /// Whether a frame to one GID is for us: by a GID of the link that its tag names, whose type is the frame's, and by one of
    /// our MACs or a group's. Gives the link.
    #[inline]
    pub fn admits(&self, frame: &Frame) -> Result<&LinkAddresses, Drop> {
        if !(frame.dmac.is_multicast() || self.macs.contains(&frame.dmac)) {
            return Err(Drop::NotOurAddress);
        }
        match self.link(vid(frame)).filter(|link| link.has(frame.dst, frame.network)) {
            Some(link) => Ok(link),
            None if self.has_anywhere(frame.dst, frame.network) => Err(Drop::OtherVlan),
            None => Err(Drop::NotOurAddress),
        }
    }

    /// Whether one of our links, whichever, has the GID.
    #[cold]
    fn has_anywhere(&self, gid: Gid, network: Network) -> bool {
        std::iter::once(&self.own).chain(&self.others).any(|link| link.has(gid, network))
    }

    /// Whether we have a GID on the link of a VLAN: what queue pairs there send from.
    pub fn has(&self, vid: u16, gid: Gid, network: Network) -> bool {
        self.link(vid).is_some_and(|link| link.has(gid, network))
    }
}

/// The VLAN of a frame; 0 for none.
#[inline]
pub(crate) fn vid(frame: &Frame) -> u16 {
    frame.vlan.map_or(0, |tag| tag.vid)
}
