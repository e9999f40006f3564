//! The iCRC of short frames, put in when the next frame of their burst is written. (Those of a run that have no pad are summed with the copy
//! of their payload: `run.rs`.)
//!
//! A sum that follows the writing of a frame at once waits: the processor passes on what was just stored only where a load asks for the
//! same bytes, and the loads of a CRC are wider than the headers' stores. One frame later they lie in the first cache. A whole burst later
//! some would not any more.

use crate::tx::TX_BURST;
use dpdk::{Mbuf, MbufBurst};
use wire::{ICRC_LEN, Icrc};

/// The longest frame that is sealed later. The sum of a longer one begins where no store is under way any more.
pub(crate) const SEALED_LATER: usize = 512;

/// The frame of a burst that lacks its iCRC, if one does.
#[derive(Debug, Default)]
pub(crate) struct Unsealed(Option<Due>);

/// What is to be summed, and where.
#[derive(Debug)]
struct Due {
    /// Which frame of the burst.
    index: usize,
    /// Where the bytes begin; they end before the room for the iCRC at the frame's end.
    begin: usize,
    /// The iCRC before them.
    icrc: Icrc,
}

impl Unsealed {
    /// Adds a frame to the burst, which has room, and seals the one before. The frame is to be summed from `begin` on, where the sum so
    /// far is `icrc`.
    #[inline]
    pub fn add(&mut self, burst: &mut MbufBurst<TX_BURST>, frame: Mbuf, begin: usize, icrc: Icrc) {
        let before = self.0.replace(Due { index: burst.len(), begin, icrc });
        let _ = burst.push(frame);
        seal_due(before, burst);
    }

    /// Seals the last one. The burst has changed in nothing but what was added.
    #[inline]
    pub fn seal(&mut self, burst: &mut MbufBurst<TX_BURST>) {
        seal_due(self.0.take(), burst);
    }
}

#[inline]
fn seal_due(due: Option<Due>, burst: &mut MbufBurst<TX_BURST>) {
    if let Some(Due { index, begin, icrc }) = due
        && let Some(frame) = burst.as_mut_slice().get_mut(index)
    {
        seal(frame, begin, icrc);
    }
}

/// Puts the iCRC in. It is of the copy: the application may change its memory meanwhile, and the packet is still right.
#[inline]
pub(crate) fn seal(mbuf: &mut Mbuf, begin: usize, mut icrc: Icrc) {
    let bytes = mbuf.data_mut();
    let end = bytes.len() - ICRC_LEN;
    let (summed, seal) = bytes.split_at_mut(end);
    icrc.update(&summed[begin..]);
    seal.copy_from_slice(&icrc.to_wire());
}
