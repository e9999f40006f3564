//! Which frames are for us.

use crate::counters::Drop;
use arrayvec::ArrayVec;
use wire::{Frame, Gid, Mac, Network};

/// The addresses of a port, as its workers check them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AddressSet {
    /// Ethernet addresses.
    pub macs: ArrayVec<Mac, { AddressSet::MAX_MACS }>,
    /// GIDs of type RoCE v2.
    pub gids: ArrayVec<Gid, { AddressSet::MAX_GIDS }>,
    /// GIDs of type RoCE v1. Without any, no v1 packet is taken.
    pub v1_gids: ArrayVec<Gid, { AddressSet::MAX_GIDS }>,
    /// VLAN of all packets; 0 for none, where a tag that carries only a priority is no VLAN.
    pub vlan: u16,
}

impl AddressSet {
    /// Most Ethernet addresses.
    pub const MAX_MACS: usize = 8;
    /// Most GIDs of a type.
    pub const MAX_GIDS: usize = 64;

    /// A set of untagged v2 addresses. `None` when there are more than fit.
    pub fn new(macs: &[Mac], gids: &[Gid]) -> Option<AddressSet> {
        let (macs, gids) = (macs.try_into().ok()?, gids.try_into().ok()?);
        Some(AddressSet { macs, gids, ..AddressSet::default() })
    }

    /// Whether a frame to one GID is for us: by that GID, whose type is the frame's, and by one of our MACs or a group's.
    #[inline]
    pub fn admits(&self, frame: &Frame) -> Result<(), Drop> {
        let ours = self.gids_for(frame.network).contains(&frame.dst)
            && (frame.dmac.is_multicast() || self.macs.contains(&frame.dmac));
        if ours { Ok(()) } else { Err(Drop::NotOurAddress) }
    }

    /// What a frame from the wire has to be besides: of our VLAN, and from somebody else. Nobody on the wire has our
    /// addresses, so that what a QP hears from a QP of this port really comes from there. `stripped` is the tag that the NIC
    /// took off.
    #[inline]
    pub fn admits_from_wire(&self, frame: &Frame, stripped: Option<u16>) -> Result<(), Drop> {
        let tagged = frame.vlan.map(|tag| tag.vid).or(stripped.map(|tag| tag & VID));
        if tagged.unwrap_or(0) != self.vlan {
            return Err(Drop::OtherVlan);
        }
        if self.gids_for(frame.network).contains(&frame.src) { Err(Drop::OwnSource) } else { Ok(()) }
    }

    #[inline]
    fn gids_for(&self, network: Network) -> &[Gid] {
        if network == Network::V1 { &self.v1_gids } else { &self.gids }
    }
}

/// The VLAN's number in a tag.
const VID: u16 = 0x0FFF;
