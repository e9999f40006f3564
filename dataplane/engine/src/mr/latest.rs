//! A key that is used again and again.

use super::{Grant, MemoryRegion, MrTable, PdId};
use crate::access::Access;
use crate::memory::Span;

/// The key of a region as packets of a run use it: most often the one that the packet before had. What it grants is found out once, and
/// again when that may have changed since: a change raises the version of its region.
#[derive(Debug)]
pub(crate) struct LatestKey<'a> {
    keys: &'a MrTable,
    pd: PdId,
    need: Access,
    latest: Option<Granted<'a>>,
}

#[derive(Debug)]
struct Granted<'a> {
    key: u32,
    region: &'a MemoryRegion,
    version: u32,
    grant: Grant,
}

impl<'a> LatestKey<'a> {
    /// For a right of which `pd` makes use: a local one, or a peer's.
    #[inline(always)]
    pub fn new(keys: &'a MrTable, pd: PdId, need: Access) -> Self {
        LatestKey { keys, pd, need, latest: None }
    }

    /// The check of [`MrTable::local`], or that of [`MrTable::remote`] where the key is not that of a window. It is made each time: a key
    /// may be taken away between two packets.
    #[inline(always)]
    pub fn span(&mut self, key: u32, addr: u64, len: u32) -> Option<Span> {
        let stands = |latest: &&Granted<'_>| latest.key == key && latest.region.version.is(latest.version);
        if self.latest.as_ref().filter(stands).is_none() {
            self.latest = self.find(key);
        }
        let Granted { region, grant, .. } = self.latest.as_ref()?;
        Some(Span::new(region.region, grant.offset_of(addr, len).ok()?, len))
    }

    #[inline(never)]
    fn find(&self, key: u32) -> Option<Granted<'a>> {
        let region = self.keys.find(key)?;
        let version = region.version.now()?;
        let grant = region.look();
        region.allows(&grant, key, self.pd, self.need).ok()?;
        region.version.is(version).then_some(Granted { key, region, version, grant })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::RegionId;
    use std::sync::Arc;
    use wire::RKey;

    const PD: PdId = PdId(1);
    const KEY: u32 = 0x1200;
    const NEED: Access = Access::LOCAL_WRITE;

    fn region(slot: u32) -> RegionId {
        RegionId { slot, generation: 1 }
    }

    fn table() -> (MrTable, Arc<MemoryRegion>) {
        let fast = Arc::new(MemoryRegion::fast(PD, region(1), KEY, 64));
        fast.register(PD, RKey::new(KEY), 0x4000, 64, NEED).expect("it was free");
        let mut keys = MrTable::new(2);
        keys.insert(Arc::clone(&fast));
        keys.insert(Arc::new(MemoryRegion::user(PD, region(2), 0x3400, 0x8000, 32, NEED)));
        (keys, fast)
    }

    #[test]
    fn keys_by_turns_have_their_own_ranges() {
        let (keys, _) = table();
        let mut latest = LatestKey::new(&keys, PD, NEED);
        for _ in 0..3 {
            assert_eq!(latest.span(KEY, 0x4000, 64), Some(Span::new(region(1), 0, 64)));
            assert_eq!(latest.span(KEY, 0x4001, 64), None);
            assert_eq!(latest.span(0x3400, 0x8008, 24), Some(Span::new(region(2), 8, 24)));
            assert_eq!(latest.span(0x3400, 0x4000, 8), None);
            assert_eq!(latest.span(0x3401, 0x8008, 24), None, "another byte is another key");
        }
    }

    #[test]
    fn what_is_not_granted_is_not_given_the_second_time() {
        let (keys, _) = table();
        let (mut stranger, mut reader) =
            (LatestKey::new(&keys, PdId(2), NEED), LatestKey::new(&keys, PD, Access::REMOTE_READ));
        for _ in 0..2 {
            assert_eq!(stranger.span(KEY, 0x4000, 1), None);
            assert_eq!(reader.span(KEY, 0x4000, 1), None);
        }
    }

    /// Another core takes the key away, and gives it for other memory, between two packets of a run.
    #[test]
    fn a_key_that_is_taken_away_meanwhile_gives_nothing_more() {
        let (keys, fast) = table();
        let mut latest = LatestKey::new(&keys, PD, NEED);
        assert!(latest.span(KEY, 0x4000, 8).is_some());
        fast.invalidate(PD, RKey::new(KEY)).expect("it is valid");
        assert_eq!(latest.span(KEY, 0x4000, 8), None);
        fast.register(PD, RKey::new(KEY), 0x5000, 16, NEED).expect("it is free");
        assert_eq!(latest.span(KEY, 0x4000, 8), None);
        assert_eq!(latest.span(KEY, 0x5008, 8), Some(Span::new(region(1), 8, 8)));
    }
}
