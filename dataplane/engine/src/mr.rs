//! Memory regions and their keys: who may touch which bytes.
//!
//! A key is a 24-bit index and an 8-bit part that fast registration may change. The check answers with a [`Span`],
//! the only way to memory. Regions are shared by all workers (an `Arc` in each worker's table); what fast
//! registration and invalidation change is read under a version counter, without a lock.

use crate::access::Access;
use crate::memory::{Extent, RegionId, Span};
use hashbrown::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};
use wire::{LKey, RKey};

/// A protection domain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PdId(pub u32);

/// Why a key check refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum KeyFault {
    /// No valid region has this key.
    #[error("no valid region has this key")]
    Unknown,
    /// The region belongs to another protection domain.
    #[error("the region belongs to another protection domain")]
    WrongPd,
    /// The region does not grant the right.
    #[error("the region does not grant this access")]
    Access,
    /// The bytes are not all inside the region.
    #[error("the range is not inside the region")]
    Range,
}

/// What fast registration may change, as one consistent set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Grant {
    key: u32,
    valid: bool,
    access: Access,
    addr: u64,
    len: u64,
}

/// A registered region.
#[derive(Debug)]
pub struct MemoryRegion {
    pd: PdId,
    region: RegionId,
    capacity: u64,
    fast: bool,
    /// Odd while a writer is at work.
    version: AtomicU32,
    key: AtomicU32,
    /// Access bits; the top bit says that the region is valid.
    access: AtomicU32,
    addr: AtomicU64,
    len: AtomicU64,
}

const VALID: u32 = 1 << 31;

impl MemoryRegion {
    /// An ordinary region, valid from the start and never invalidated by a work request. `addr` is the address that
    /// keys refer to (ignored for a zero-based region), `key` L_Key and R_Key both.
    pub fn user(pd: PdId, region: RegionId, key: u32, addr: u64, len: u64, access: Access) -> Self {
        let addr = if access.contains(Access::ZERO_BASED) { 0 } else { addr };
        MemoryRegion {
            pd,
            region,
            capacity: len,
            fast: false,
            version: AtomicU32::new(0),
            key: AtomicU32::new(key),
            access: AtomicU32::new(access.bits() | VALID),
            addr: AtomicU64::new(addr),
            len: AtomicU64::new(len),
        }
    }

    /// A region for fast registration: free until a work request registers it.
    pub fn fast(pd: PdId, region: RegionId, key: u32, capacity: u64) -> Self {
        MemoryRegion {
            fast: true,
            access: AtomicU32::new(0),
            len: AtomicU64::new(0),
            ..Self::user(pd, region, key, 0, capacity, Access::empty())
        }
    }

    /// The current key value (L_Key and R_Key are the same number).
    pub fn key(&self) -> u32 {
        self.key.load(Ordering::Acquire)
    }

    /// The key's fixed upper 24 bits.
    pub fn index(&self) -> u32 {
        self.key() >> 8
    }

    /// The protection domain.
    pub fn pd(&self) -> PdId {
        self.pd
    }

    /// The region's memory.
    pub fn region(&self) -> RegionId {
        self.region
    }

    /// True while keys work.
    pub fn is_valid(&self) -> bool {
        self.access.load(Ordering::Acquire) & VALID != 0
    }

    fn grant(&self) -> Option<Grant> {
        // A writer holds the version odd for a few stores; a handful of tries outlasts it, and a refused packet is
        // what the peer would have got a moment earlier or later anyway.
        for _ in 0..64 {
            let before = self.version.load(Ordering::Acquire);
            if before & 1 == 0 {
                let access = self.access.load(Ordering::Relaxed);
                let grant = Grant {
                    key: self.key.load(Ordering::Relaxed),
                    valid: access & VALID != 0,
                    access: Access::from_bits_truncate(access & !VALID),
                    addr: self.addr.load(Ordering::Relaxed),
                    len: self.len.load(Ordering::Relaxed),
                };
                fence(Ordering::Acquire);
                if self.version.load(Ordering::Relaxed) == before {
                    return Some(grant);
                }
            }
            std::hint::spin_loop();
        }
        None
    }

    /// Runs `change` as the only writer; `None` when another writer is at work.
    fn exclusively<R>(&self, change: impl FnOnce() -> R) -> Option<R> {
        let before = self.version.load(Ordering::Relaxed);
        if before & 1 == 1
            || self
                .version
                .compare_exchange(before, before + 1, Ordering::Acquire, Ordering::Relaxed)
                .is_err()
        {
            return None;
        }
        fence(Ordering::Release);
        let result = change();
        self.version.store(before.wrapping_add(2), Ordering::Release);
        Some(result)
    }

    /// Fast registration: free → valid. Refused when the region is not for it, not free, of another PD, when the key
    /// changes more than its low 8 bits, when the rights contradict each other or the length exceeds the region.
    pub fn register(&self, pd: PdId, key: RKey, addr: u64, len: u64, access: Access) -> Result<(), KeyFault> {
        if !self.fast || key.value() >> 8 != self.index() {
            return Err(KeyFault::Unknown);
        }
        if pd != self.pd {
            return Err(KeyFault::WrongPd);
        }
        if !access.is_consistent() {
            return Err(KeyFault::Access);
        }
        if len > self.capacity || addr.checked_add(len).is_none() {
            return Err(KeyFault::Range);
        }
        let addr = if access.contains(Access::ZERO_BASED) { 0 } else { addr };
        self.exclusively(|| {
            if self.access.load(Ordering::Relaxed) & VALID != 0 {
                return Err(KeyFault::Unknown);
            }
            self.key.store(key.value(), Ordering::Relaxed);
            self.addr.store(addr, Ordering::Relaxed);
            self.len.store(len, Ordering::Relaxed);
            self.access.store(access.bits() | VALID, Ordering::Relaxed);
            Ok(())
        })
        .unwrap_or(Err(KeyFault::Unknown))
    }

    /// Invalidation, local or by the peer's SEND: valid → free. Ordinary regions cannot be invalidated.
    pub fn invalidate(&self, pd: PdId, key: RKey) -> Result<(), KeyFault> {
        if pd != self.pd {
            return Err(KeyFault::WrongPd);
        }
        if !self.fast {
            return Err(KeyFault::Access);
        }
        self.exclusively(|| {
            let access = self.access.load(Ordering::Relaxed);
            if access & VALID == 0 || self.key.load(Ordering::Relaxed) != key.value() {
                return Err(KeyFault::Unknown);
            }
            self.access.store(access & !VALID, Ordering::Relaxed);
            Ok(())
        })
        .unwrap_or(Err(KeyFault::Unknown))
    }

    /// The check behind every access: key, PD, rights, range, in this order.
    fn check(&self, key: u32, pd: PdId, addr: u64, len: u32, need: Access) -> Result<Span, KeyFault> {
        let grant = self.granted(key, pd, need)?;
        let offset = addr.checked_sub(grant.addr).ok_or(KeyFault::Range)?;
        let end = offset.checked_add(u64::from(len)).ok_or(KeyFault::Range)?;
        // A range that runs past 2^64 is wrong even where the subtraction above hides it.
        if end > grant.len || addr.checked_add(u64::from(len)).is_none() {
            return Err(KeyFault::Range);
        }
        Ok(Span::new(self.region, offset, len))
    }

    /// All of it, if the key gives this right.
    fn whole(&self, key: u32, pd: PdId, need: Access) -> Result<Extent, KeyFault> {
        Ok(Extent::new(self.region, 0, self.granted(key, pd, need)?.len))
    }

    fn granted(&self, key: u32, pd: PdId, need: Access) -> Result<Grant, KeyFault> {
        let grant = self.grant().ok_or(KeyFault::Unknown)?;
        if !grant.valid || grant.key != key {
            return Err(KeyFault::Unknown);
        }
        if self.pd != pd {
            return Err(KeyFault::WrongPd);
        }
        if !grant.access.contains(need) {
            return Err(KeyFault::Access);
        }
        Ok(grant)
    }
}

/// Keys and QPNs are random already: their low bits are hash enough.
#[derive(Default, Debug, Clone, Copy)]
pub struct NumberHasher(u64);

impl Hasher for NumberHasher {
    fn finish(&self) -> u64 {
        // hashbrown takes its control byte from the top bits and the bucket from the low ones.
        self.0.wrapping_mul(0x9E37_79B9_7F4A_7C15)
    }

    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.0 = (self.0 << 8) | u64::from(byte);
        }
    }

    fn write_u32(&mut self, number: u32) {
        self.0 = u64::from(number);
    }
}

/// A map from a 24-bit number, sized once.
pub(crate) type NumberMap<V> = HashMap<u32, V, BuildHasherDefault<NumberHasher>>;

/// One worker's table of regions.
#[derive(Debug)]
pub struct MrTable {
    by_index: NumberMap<Arc<MemoryRegion>>,
}

impl MrTable {
    /// A table with room for `capacity` regions before it grows (growing happens on registration, never on lookup).
    pub fn new(capacity: usize) -> Self {
        MrTable { by_index: NumberMap::with_capacity_and_hasher(capacity, Default::default()) }
    }

    /// Adds a region under its index; gives back one that was there under the same index.
    pub fn insert(&mut self, region: Arc<MemoryRegion>) -> Option<Arc<MemoryRegion>> {
        self.by_index.insert(region.index(), region)
    }

    /// Removes the region with this index (key >> 8).
    pub fn remove(&mut self, index: u32) -> Option<Arc<MemoryRegion>> {
        self.by_index.remove(&index)
    }

    /// Regions in the table.
    pub fn len(&self) -> usize {
        self.by_index.len()
    }

    /// True when the table has no region.
    pub fn is_empty(&self) -> bool {
        self.by_index.is_empty()
    }

    /// The region of a key, whether the key is valid or not.
    pub fn find(&self, key: u32) -> Option<&Arc<MemoryRegion>> {
        self.by_index.get(&(key >> 8))
    }

    /// A local access: send data (no right needed), receive and result buffers (`LOCAL_WRITE`).
    pub fn local(&self, lkey: LKey, pd: PdId, addr: u64, len: u32, need: Access) -> Result<Span, KeyFault> {
        self.check(lkey.value(), pd, addr, len, need)
    }

    /// A peer's access. `need` is the remote right that its operation takes.
    pub fn remote(&self, rkey: RKey, pd: PdId, addr: u64, len: u32, need: Access) -> Result<Span, KeyFault> {
        self.check(rkey.value(), pd, addr, len, need)
    }

    fn check(&self, key: u32, pd: PdId, addr: u64, len: u32, need: Access) -> Result<Span, KeyFault> {
        self.find(key).ok_or(KeyFault::Unknown)?.check(key, pd, addr, len, need)
    }

    /// All that a key grants, for a FLUSH of a whole region.
    pub fn whole(&self, rkey: RKey, pd: PdId, need: Access) -> Result<Extent, KeyFault> {
        self.find(rkey.value()).ok_or(KeyFault::Unknown)?.whole(rkey.value(), pd, need)
    }

    /// Invalidates a key (local invalidate, SEND with Invalidate).
    pub fn invalidate(&self, rkey: RKey, pd: PdId) -> Result<(), KeyFault> {
        self.find(rkey.value()).ok_or(KeyFault::Unknown)?.invalidate(pd, rkey)
    }
}
