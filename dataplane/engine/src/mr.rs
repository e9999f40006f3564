//! Memory regions and their keys: who may touch which bytes.
//!
//! A key is a 24-bit index and an 8-bit part that fast registration may change. The check answers with a [`Span`],
//! the only way to memory. Regions are shared by all workers (an `Arc` in each worker's table); what fast
//! registration and invalidation change is read under a version counter, without a lock. Keys of memory windows
//! (`mw.rs`) lie in the same table.

mod latest;

pub(crate) use latest::LatestKey;

use crate::access::Access;
use crate::memory::{Extent, RegionId, Span};
use crate::mw::{BindError, Binding, Bound, MemoryWindow, MwType};
use crate::numbers::NumberMap;
use crate::versioned::Version;
use crate::wr::Bind;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use wire::{LKey, Qpn, RKey};

/// A protection domain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PdId(pub u32);

/// Who uses a key of ours: a queue pair, on behalf of its peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct KeyUser {
    /// Its protection domain.
    pub pd: PdId,
    /// Its number: windows of type 2 belong to one queue pair.
    pub qpn: Qpn,
}

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
    /// The window was bound by another queue pair.
    #[error("the window was bound by another queue pair")]
    WrongQp,
    /// Memory windows are bound to the region.
    #[error("memory windows are bound to the region")]
    Bound,
}

/// What fast registration may change, as one consistent set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Grant {
    pub key: u32,
    pub valid: bool,
    pub access: Access,
    pub addr: u64,
    pub len: u64,
}

impl Grant {
    /// Where a range begins, counted from what the key counts from; it has to be inside.
    #[inline]
    pub fn offset_of(&self, addr: u64, len: u32) -> Result<u64, KeyFault> {
        let offset = addr.checked_sub(self.addr).ok_or(KeyFault::Range)?;
        let end = offset.checked_add(u64::from(len)).ok_or(KeyFault::Range)?;
        // A range that runs past 2^64 is wrong even where the subtraction above hides it.
        if end > self.len || addr.checked_add(u64::from(len)).is_none() {
            return Err(KeyFault::Range);
        }
        Ok(offset)
    }
}

/// A registered region.
#[derive(Debug)]
pub struct MemoryRegion {
    pd: PdId,
    region: RegionId,
    capacity: u64,
    fast: bool,
    version: Version,
    key: AtomicU32,
    /// Access bits; the top bit says that the region is valid.
    access: AtomicU32,
    addr: AtomicU64,
    len: AtomicU64,
    /// Windows bound to it; `CLOSED` while none may be, `DEAD` when it never is registered again.
    windows: AtomicU32,
}

/// In access bits: the key works.
pub(crate) const VALID: u32 = 1 << 31;
const CLOSED: u32 = 1 << 31;
const DEAD: u32 = 1 << 30;

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
            version: Version::default(),
            key: AtomicU32::new(key),
            access: AtomicU32::new(access.bits() | VALID),
            addr: AtomicU64::new(addr),
            len: AtomicU64::new(len),
            windows: AtomicU32::new(0),
        }
    }

    /// A region for fast registration: free until a work request registers it.
    pub fn fast(pd: PdId, region: RegionId, key: u32, capacity: u64) -> Self {
        MemoryRegion {
            fast: true,
            access: AtomicU32::new(0),
            len: AtomicU64::new(0),
            windows: AtomicU32::new(CLOSED),
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

    #[inline(always)]
    fn grant(&self) -> Option<Grant> {
        self.version.read(|| self.look())
    }

    /// What it grants, if its version stands from before to after this.
    #[inline(always)]
    fn look(&self) -> Grant {
        let access = self.access.load(Ordering::Relaxed);
        Grant {
            key: self.key.load(Ordering::Relaxed),
            valid: access & VALID != 0,
            access: Access::from_bits_truncate(access & !VALID),
            addr: self.addr.load(Ordering::Relaxed),
            len: self.len.load(Ordering::Relaxed),
        }
    }

    /// Memory windows that are bound to it.
    pub fn windows(&self) -> u32 {
        self.windows.load(Ordering::Acquire) & !(CLOSED | DEAD)
    }

    /// Ends the registration for good, unless windows are bound to it: the error is how many.
    pub fn close(&self) -> Result<(), u32> {
        let close = |now| (now & !(CLOSED | DEAD) == 0).then_some(CLOSED | DEAD);
        let closed = self.windows.fetch_update(Ordering::AcqRel, Ordering::Acquire, close);
        closed.map(|_| ()).map_err(|now| now & !(CLOSED | DEAD))
    }

    /// Ends the registration for good, whatever is bound to it: its memory is gone, and windows over it lead nowhere.
    pub fn close_anyway(&self) {
        self.windows.fetch_or(CLOSED | DEAD, Ordering::AcqRel);
    }

    /// One window more, if any may be bound. As long as there is one, the region stays valid as it is.
    pub(crate) fn take_window(&self) -> bool {
        let take = |now| (now & CLOSED == 0).then(|| now + 1);
        self.windows.fetch_update(Ordering::AcqRel, Ordering::Acquire, take).is_ok()
    }

    /// One window less.
    pub(crate) fn release_window(&self) {
        self.windows.fetch_sub(1, Ordering::AcqRel);
    }

    /// What a window asks of its region (rocev2 facts, transport section 18); gives where in it the window begins.
    pub(crate) fn window_offset(&self, binding: &Binding) -> Result<u64, BindError> {
        let grant = self.grant().filter(|grant| grant.valid && grant.key == binding.mr_key);
        let grant = grant.ok_or(BindError::Region)?;
        if grant.access.contains(Access::ZERO_BASED) {
            return Err(BindError::ZeroBasedRegion);
        }
        if !grant.access.contains(Access::MW_BIND) {
            return Err(BindError::NoBindRight);
        }
        let mut needed = Access::empty();
        let writes = Access::REMOTE_WRITE | Access::REMOTE_ATOMIC;
        needed.set(Access::LOCAL_WRITE, binding.access.intersects(writes));
        // That memory persists was found out when the region was registered [?: the facts do not speak of windows here].
        needed |= binding.access & Access::FLUSH_PERSISTENT;
        if !grant.access.contains(needed) {
            return Err(BindError::Rights);
        }
        let offset = binding.addr.checked_sub(grant.addr).ok_or(BindError::Range)?;
        let end = offset.checked_add(binding.len).filter(|_| binding.addr.checked_add(binding.len).is_some());
        if end.is_some_and(|end| end <= grant.len) { Ok(offset) } else { Err(BindError::Range) }
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
        self.version
            .exclusively(|| {
                let dead = self.windows.load(Ordering::Acquire) & DEAD != 0;
                if dead || self.access.load(Ordering::Relaxed) & VALID != 0 {
                    return Err(KeyFault::Unknown);
                }
                self.key.store(key.value(), Ordering::Relaxed);
                self.addr.store(addr, Ordering::Relaxed);
                self.len.store(len, Ordering::Relaxed);
                self.access.store(access.bits() | VALID, Ordering::Relaxed);
                self.windows.fetch_and(!CLOSED, Ordering::AcqRel);
                Ok(())
            })
            .unwrap_or(Err(KeyFault::Unknown))
    }

    /// Invalidation, local or by the peer's SEND: valid → free. Ordinary regions cannot be invalidated, nor can one with
    /// windows.
    pub fn invalidate(&self, pd: PdId, key: RKey) -> Result<(), KeyFault> {
        if pd != self.pd {
            return Err(KeyFault::WrongPd);
        }
        if !self.fast {
            return Err(KeyFault::Access);
        }
        self.version
            .exclusively(|| {
                let access = self.access.load(Ordering::Relaxed);
                if access & VALID == 0 || self.key.load(Ordering::Relaxed) != key.value() {
                    return Err(KeyFault::Unknown);
                }
                let close = |now| (now & !(CLOSED | DEAD) == 0).then_some(now | CLOSED);
                self.windows
                    .fetch_update(Ordering::AcqRel, Ordering::Acquire, close)
                    .map_err(|_| KeyFault::Bound)?;
                self.access.store(access & !VALID, Ordering::Relaxed);
                Ok(())
            })
            .unwrap_or(Err(KeyFault::Unknown))
    }

    /// The check behind every access: key, PD, rights, range, in this order.
    #[inline(always)]
    fn check(&self, key: u32, pd: PdId, addr: u64, len: u32, need: Access) -> Result<Span, KeyFault> {
        let grant = self.granted(key, pd, need)?;
        let offset = grant.offset_of(addr, len)?;
        Ok(Span::new(self.region, offset, len))
    }

    /// All of it, if the key gives this right.
    fn whole(&self, key: u32, pd: PdId, need: Access) -> Result<Extent, KeyFault> {
        Ok(Extent::new(self.region, 0, self.granted(key, pd, need)?.len))
    }

    #[inline(always)]
    fn granted(&self, key: u32, pd: PdId, need: Access) -> Result<Grant, KeyFault> {
        let grant = self.grant().ok_or(KeyFault::Unknown)?;
        self.allows(&grant, key, pd, need)?;
        Ok(grant)
    }

    /// Whether what it grants is this.
    // Apart from where the grant comes from: given on in a result it would be copied in pieces across those that were just written.
    #[inline(always)]
    fn allows(&self, grant: &Grant, key: u32, pd: PdId, need: Access) -> Result<(), KeyFault> {
        if !grant.valid || grant.key != key {
            return Err(KeyFault::Unknown);
        }
        if self.pd != pd {
            return Err(KeyFault::WrongPd);
        }
        if !grant.access.contains(need) {
            return Err(KeyFault::Access);
        }
        Ok(())
    }
}

/// A key that was looked at.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OpenKey {
    /// The key.
    pub lkey: LKey,
    region: RegionId,
    grant: Grant,
}

impl OpenKey {
    /// The check of a range.
    #[inline(always)]
    pub fn span(&self, addr: u64, len: u32) -> Result<Span, KeyFault> {
        Ok(Span::new(self.region, self.grant.offset_of(addr, len)?, len))
    }
}

/// What a key leads to.
#[derive(Debug)]
enum Entry {
    Region(Arc<MemoryRegion>),
    Window(Arc<MemoryWindow>),
}

/// A key's region or window, found in a table: what it grants is asked at each use.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Known<'a> {
    entry: &'a Entry,
}

impl Known<'_> {
    /// See [`MrTable::local`].
    #[inline(always)]
    pub fn local(self, key: u32, pd: PdId, addr: u64, len: u32, need: Access) -> Result<Span, KeyFault> {
        match self.entry {
            Entry::Region(region) => region.check(key, pd, addr, len, need),
            Entry::Window(_) => Err(KeyFault::Unknown),
        }
    }

    /// See [`MrTable::remote`].
    #[inline(always)]
    pub fn remote(
        self,
        key: u32,
        user: KeyUser,
        addr: u64,
        len: u32,
        need: Access,
    ) -> Result<Span, KeyFault> {
        match self.entry {
            Entry::Region(region) => region.check(key, user.pd, addr, len, need),
            Entry::Window(window) => window.check(key, user, addr, len, need),
        }
    }
}

/// One worker's table of keys: regions, and windows over them.
#[derive(Debug)]
pub struct MrTable {
    by_index: NumberMap<Entry>,
    /// The windows of type 2 among them: those that a queue pair may have bound.
    of_qps: NumberMap<Arc<MemoryWindow>>,
}

impl MrTable {
    /// A table with room for `capacity` keys before it grows (growing happens on registration, never on lookup).
    pub fn new(capacity: usize) -> Self {
        MrTable { by_index: NumberMap::with_capacity(capacity), of_qps: NumberMap::default() }
    }

    /// Adds a region under its index; gives back one that was there under the same index.
    pub fn insert(&mut self, region: Arc<MemoryRegion>) -> Option<Arc<MemoryRegion>> {
        match self.by_index.insert(region.index(), Entry::Region(region)) {
            Some(Entry::Region(before)) => Some(before),
            _ => None,
        }
    }

    /// Removes the region with this index (key >> 8).
    pub fn remove(&mut self, index: u32) -> Option<Arc<MemoryRegion>> {
        match self.by_index.get(index) {
            Some(Entry::Region(_)) => match self.by_index.remove(index) {
                Some(Entry::Region(region)) => Some(region),
                _ => None,
            },
            _ => None,
        }
    }

    /// Adds a window under its index.
    pub fn insert_window(&mut self, window: Arc<MemoryWindow>) {
        if window.mw_type() == MwType::Type2 {
            self.of_qps.insert(window.index(), Arc::clone(&window));
        }
        self.by_index.insert(window.index(), Entry::Window(window));
    }

    /// Takes the window with this index out. It is freed with that, for every other table, too.
    pub fn remove_window(&mut self, index: u32) -> Option<Arc<MemoryWindow>> {
        let window = Arc::clone(self.find_window(index << 8)?);
        self.by_index.remove(index);
        self.of_qps.remove(index);
        window.free().into_iter().for_each(|bound| self.release_window(bound));
        Some(window)
    }

    /// Regions and windows in the table.
    pub fn len(&self) -> usize {
        self.by_index.len()
    }

    /// True when the table has no key.
    pub fn is_empty(&self) -> bool {
        self.by_index.len() == 0
    }

    /// The region of a key, whether the key is valid or not.
    #[inline]
    pub fn find(&self, key: u32) -> Option<&Arc<MemoryRegion>> {
        match self.by_index.get(key >> 8) {
            Some(Entry::Region(region)) => Some(region),
            _ => None,
        }
    }

    /// The window of a key, bound or not.
    pub fn find_window(&self, key: u32) -> Option<&Arc<MemoryWindow>> {
        match self.by_index.get(key >> 8) {
            Some(Entry::Window(window)) => Some(window),
            _ => None,
        }
    }

    /// A local access: send data (no right needed), receive and result buffers (`LOCAL_WRITE`). A window has no local key.
    // What it gives stays in registers where it is inlined; through memory it would be written in words and copied in pieces that are
    // larger, and such a copy waits until the words have reached the cache.
    #[inline(always)]
    pub fn local(&self, lkey: LKey, pd: PdId, addr: u64, len: u32, need: Access) -> Result<Span, KeyFault> {
        let key = lkey.value();
        self.known(key).ok_or(KeyFault::Unknown)?.local(key, pd, addr, len, need)
    }

    /// A local key whose data may be sent, to be asked for many ranges: what it grants is found out once. Whoever posts to have data sent
    /// may expect that a key is looked at which was invalidated before; so it is for what was posted by now. `None` while it changes, too.
    #[inline(always)]
    pub(crate) fn open(&self, lkey: LKey, pd: PdId) -> Option<OpenKey> {
        let region = self.find(lkey.value())?;
        let version = region.version.now()?;
        let grant = region.look();
        let allowed = region.allows(&grant, lkey.value(), pd, Access::empty()).is_ok();
        (allowed && region.version.is(version)).then_some(OpenKey { lkey, region: region.region, grant })
    }

    /// A peer's access. `need` is the remote right that its operation takes.
    #[inline(always)]
    pub fn remote(
        &self,
        rkey: RKey,
        user: KeyUser,
        addr: u64,
        len: u32,
        need: Access,
    ) -> Result<Span, KeyFault> {
        let key = rkey.value();
        self.known(key).ok_or(KeyFault::Unknown)?.remote(key, user, addr, len, need)
    }

    /// What has the index of a key, whether the key is valid or not.
    #[inline(always)]
    pub(crate) fn known(&self, key: u32) -> Option<Known<'_>> {
        self.by_index.get(key >> 8).map(|entry| Known { entry })
    }

    /// All that a key grants, for a FLUSH of a whole region.
    pub fn whole(&self, rkey: RKey, user: KeyUser, need: Access) -> Result<Extent, KeyFault> {
        let key = rkey.value();
        match self.by_index.get(key >> 8) {
            Some(Entry::Region(region)) => region.whole(key, user.pd, need),
            Some(Entry::Window(window)) => window.whole(key, user, need),
            None => Err(KeyFault::Unknown),
        }
    }

    /// Binds a memory window for a queue pair. Window and region have to be of this table: a request may name those of another
    /// device.
    pub fn bind(&self, bind: &Bind, user: KeyUser) -> Result<(), BindError> {
        if !self.find_window(bind.key.value()).is_some_and(|mw| Arc::ptr_eq(mw, &bind.mw)) {
            return Err(BindError::Key);
        }
        let region = |to: &Binding| self.find(to.mr_key).is_some_and(|mr| Arc::ptr_eq(mr, &to.mr));
        if !bind.to.as_ref().is_none_or(region) {
            return Err(BindError::Region);
        }
        bind.mw.bind(self, user, bind.key, bind.to.as_ref())
    }

    /// Invalidates a key (local invalidate, SEND with Invalidate): a fast-registered region, or a window of type 2.
    pub fn invalidate(&self, rkey: RKey, user: KeyUser) -> Result<(), KeyFault> {
        match self.by_index.get(rkey.value() >> 8) {
            Some(Entry::Region(region)) => region.invalidate(user.pd, rkey),
            Some(Entry::Window(window)) => {
                window.invalidate(user, rkey).map(|bound| self.release_window(bound))
            }
            None => Err(KeyFault::Unknown),
        }
    }

    /// A queue pair is destroyed: windows of type 2 that it had bound are free.
    pub(crate) fn leave(&self, qpn: Qpn) {
        for window in self.of_qps.values() {
            window.leave(qpn).into_iter().for_each(|bound| self.release_window(bound));
        }
    }

    /// The region has one window less. One that is gone meanwhile has nothing to count any more.
    pub(crate) fn release_window(&self, bound: Bound) {
        let region = self.find(bound.index << 8).filter(|region| region.region() == bound.region);
        region.into_iter().for_each(|region| region.release_window());
    }
}
