//! Which frames are for us.

use arrayvec::ArrayVec;
use wire::{Frame, Gid, Mac};

/// The addresses of a port, as its workers check them. Groups joined are among the GIDs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AddressSet {
    /// Ethernet addresses.
    pub macs: ArrayVec<Mac, { AddressSet::MAX_MACS }>,
    /// GIDs.
    pub gids: ArrayVec<Gid, { AddressSet::MAX_GIDS }>,
}

impl AddressSet {
    /// Most Ethernet addresses.
    pub const MAX_MACS: usize = 8;
    /// Most GIDs.
    pub const MAX_GIDS: usize = 64;

    /// A set. `None` when there are more than fit.
    pub fn new(macs: &[Mac], gids: &[Gid]) -> Option<AddressSet> {
        Some(AddressSet { macs: macs.try_into().ok()?, gids: gids.try_into().ok()? })
    }

    /// Whether a frame is addressed to us: by one of our GIDs, and by one of our MACs or a group's.
    #[inline]
    pub fn holds(&self, frame: &Frame) -> bool {
        self.gids.contains(&frame.dst) && (frame.dmac.is_multicast() || self.macs.contains(&frame.dmac))
    }
}
