//! Memory windows: keys of their own over a part of a region, given and taken away by work requests (rocev2 facts, transport
//! section 18).
//!
//! A window of type 1 is bound again and again, by any queue pair of its protection domain; each bind changes its key. One of
//! type 2 (2B: it belongs to the queue pair that bound it) is bound when it is free, under a key byte that its owner chooses,
//! and becomes free by a local invalidate or by the peer's SEND with Invalidate. All workers share a window as they share a
//! region, so a bind on one core is what the others see.
//!
//! A region counts the windows over it, and is neither invalidated nor deregistered while there are any.

use crate::access::Access;
use crate::memory::{Extent, RegionId, Span};
use crate::mr::{Grant, KeyFault, KeyUser, MemoryRegion, MrTable, PdId, VALID};
use crate::versioned::Version;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use wire::{Qpn, RKey};

/// How a window is bound and taken away. Values are those of verbs (`IBV_MW_TYPE_*`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum MwType {
    /// Bound to anything of its protection domain, anew without being freed; used by any of its queue pairs.
    Type1 = 1,
    /// Bound when free, used by the queue pair that bound it, freed by invalidation (type 2B of the specification).
    Type2 = 2,
}

/// Why a bind was refused. The request ends with `MW_BIND_ERR`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum BindError {
    /// The window was freed for good, or its key has another index.
    #[error("the key is not one of this window")]
    Key,
    /// Window, region and queue pair are not of one protection domain.
    #[error("window, region and queue pair belong to different protection domains")]
    WrongPd,
    /// A window of type 2 is bound already: it has to be invalidated first.
    #[error("the window is bound; invalidate it before it is bound again")]
    NotFree,
    /// The region's key is not valid, or it is being deregistered.
    #[error("the region is not registered under this key")]
    Region,
    /// The region was registered without `MW_BIND`.
    #[error("the region does not allow windows; register it with Access::MW_BIND")]
    NoBindRight,
    /// The region itself counts its addresses from zero.
    #[error("windows cannot be bound to a zero-based region")]
    ZeroBasedRegion,
    /// The range is not inside the region.
    #[error("the range is not inside the region")]
    Range,
    /// A window grants remote rights only, and those to write or to FLUSH need the region's.
    #[error("the region does not allow the rights of the window")]
    Rights,
    /// Only windows of type 2 count their addresses from zero.
    #[error("a window of type 1 cannot be zero-based")]
    ZeroBasedType1,
    /// Binding a window of type 2 to nothing: it is freed by an invalidate.
    #[error("a window of type 2 is not unbound by a bind to nothing; invalidate it")]
    Empty,
    /// Other cores were binding the same window all the time.
    #[error("the window is being bound by others")]
    Busy,
}

/// Where a window is to be bound.
#[derive(Clone, Debug)]
pub struct Binding {
    /// The region.
    pub mr: Arc<MemoryRegion>,
    /// The key that the region has to have: a fast registration may have changed it.
    pub mr_key: u32,
    /// First byte, as the region's key counts.
    pub addr: u64,
    /// Bytes.
    pub len: u64,
    /// Rights of the window: remote ones, and `ZERO_BASED` to count from zero at `addr`.
    pub access: Access,
}

/// What a window may grant.
const GRANTABLE: Access = Access::REMOTE_WRITE
    .union(Access::REMOTE_READ)
    .union(Access::REMOTE_ATOMIC)
    .union(Access::FLUSH_GLOBAL)
    .union(Access::FLUSH_PERSISTENT)
    .union(Access::ZERO_BASED);

/// The window was given back: nothing binds it any more.
const FREED: u32 = 1 << 30;

/// The region under a window, for its count. Its number in memory tells it from a later region of the same index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Bound {
    pub index: u32,
    pub region: RegionId,
}

/// A memory window.
#[derive(Debug)]
pub struct MemoryWindow {
    pd: PdId,
    mw_type: MwType,
    version: Version,
    key: AtomicU32,
    /// Access bits, `VALID` while it is bound, `FREED`.
    access: AtomicU32,
    /// What its key counts from, its bytes, and where they begin in the region.
    addr: AtomicU64,
    len: AtomicU64,
    offset: AtomicU64,
    /// The region: its place in memory, and the index of its key.
    slot: AtomicU32,
    generation: AtomicU32,
    index: AtomicU32,
    /// Type 2: the queue pair that bound it.
    qpn: AtomicU32,
}

/// What is read of a window at one time.
struct State {
    grant: Grant,
    offset: u64,
    bound: Bound,
    qpn: Qpn,
    freed: bool,
}

impl MemoryWindow {
    /// A window that is not bound. `key` gives the index, and the byte that it has before the first bind.
    pub fn new(pd: PdId, mw_type: MwType, key: u32) -> Self {
        MemoryWindow {
            pd,
            mw_type,
            version: Version::default(),
            key: AtomicU32::new(key),
            access: AtomicU32::new(0),
            addr: AtomicU64::new(0),
            len: AtomicU64::new(0),
            offset: AtomicU64::new(0),
            slot: AtomicU32::new(0),
            generation: AtomicU32::new(0),
            index: AtomicU32::new(0),
            qpn: AtomicU32::new(0),
        }
    }

    /// The protection domain.
    pub fn pd(&self) -> PdId {
        self.pd
    }

    /// Its type.
    pub fn mw_type(&self) -> MwType {
        self.mw_type
    }

    /// The key, as of the last bind.
    pub fn key(&self) -> u32 {
        self.key.load(Ordering::Acquire)
    }

    /// The key's fixed upper 24 bits.
    pub fn index(&self) -> u32 {
        self.key() >> 8
    }

    /// True while its key works.
    pub fn is_bound(&self) -> bool {
        self.access.load(Ordering::Acquire) & VALID != 0
    }

    /// Address of its first byte and its length in bytes, as its key counts; `None` while it is not bound.
    pub fn range(&self) -> Option<(u64, u64)> {
        self.state().filter(|state| state.grant.valid).map(|state| (state.grant.addr, state.grant.len))
    }

    fn look(&self) -> State {
        let access = self.access.load(Ordering::Relaxed);
        let region = RegionId {
            slot: self.slot.load(Ordering::Relaxed),
            generation: self.generation.load(Ordering::Relaxed),
        };
        State {
            grant: Grant {
                key: self.key.load(Ordering::Relaxed),
                valid: access & VALID != 0,
                access: Access::from_bits_truncate(access & !(VALID | FREED)),
                addr: self.addr.load(Ordering::Relaxed),
                len: self.len.load(Ordering::Relaxed),
            },
            offset: self.offset.load(Ordering::Relaxed),
            bound: Bound { index: self.index.load(Ordering::Relaxed), region },
            qpn: Qpn::new(self.qpn.load(Ordering::Relaxed) & 0xFF_FFFF),
            freed: access & FREED != 0,
        }
    }

    fn state(&self) -> Option<State> {
        self.version.read(|| self.look())
    }

    /// Binds the window under `key`, or with no binding unbinds one of type 1. The region that it was bound to before, if
    /// any, is one window poorer.
    pub(crate) fn bind(
        &self,
        keys: &MrTable,
        user: KeyUser,
        key: RKey,
        binding: Option<&Binding>,
    ) -> Result<(), BindError> {
        if key.value() >> 8 != self.index() {
            return Err(BindError::Key);
        }
        if user.pd != self.pd {
            return Err(BindError::WrongPd);
        }
        // rocev2 facts, transport 18: a bind of no bytes unbinds a window of type 1 and is an error for one of type 2.
        let binding = binding.filter(|binding| binding.len > 0);
        if binding.is_none() && self.mw_type == MwType::Type2 {
            return Err(BindError::Empty);
        }
        let target = binding.map(|binding| self.target(binding)).transpose()?;
        let before = self.version.exclusively(|| self.put(user, key, binding, target));
        let before = before.unwrap_or(Err(BindError::Busy));
        if before.is_err()
            && let Some(binding) = binding
        {
            binding.mr.release_window();
        }
        before?.into_iter().for_each(|bound| keys.release_window(bound));
        Ok(())
    }

    /// Checks a binding against its region, which counts one window more if all is well. Gives where the bytes begin in it.
    fn target(&self, binding: &Binding) -> Result<u64, BindError> {
        if !GRANTABLE.contains(binding.access) {
            return Err(BindError::Rights);
        }
        if binding.mr.pd() != self.pd {
            return Err(BindError::WrongPd);
        }
        if binding.access.contains(Access::ZERO_BASED) && self.mw_type == MwType::Type1 {
            return Err(BindError::ZeroBasedType1);
        }
        // First the count: from then on the region stays as it is.
        if !binding.mr.take_window() {
            return Err(BindError::Region);
        }
        let checked = binding.mr.window_offset(binding);
        if checked.is_err() {
            binding.mr.release_window();
        }
        checked
    }

    /// The bind itself, by the only writer. Gives what the window was bound to.
    fn put(
        &self,
        user: KeyUser,
        key: RKey,
        binding: Option<&Binding>,
        offset: Option<u64>,
    ) -> Result<Option<Bound>, BindError> {
        let now = self.look();
        if now.freed {
            return Err(BindError::Key);
        }
        if self.mw_type == MwType::Type2 && now.grant.valid {
            return Err(BindError::NotFree);
        }
        self.key.store(key.value(), Ordering::Relaxed);
        match (binding, offset) {
            (Some(binding), Some(offset)) => {
                let zero_based = binding.access.contains(Access::ZERO_BASED);
                self.addr.store(if zero_based { 0 } else { binding.addr }, Ordering::Relaxed);
                self.len.store(binding.len, Ordering::Relaxed);
                self.offset.store(offset, Ordering::Relaxed);
                let RegionId { slot, generation } = binding.mr.region();
                self.slot.store(slot, Ordering::Relaxed);
                self.generation.store(generation, Ordering::Relaxed);
                self.index.store(binding.mr.index(), Ordering::Relaxed);
                self.qpn.store(user.qpn.value(), Ordering::Relaxed);
                self.access.store(binding.access.bits() | VALID, Ordering::Relaxed);
            }
            _ => self.access.store(0, Ordering::Relaxed),
        }
        Ok(now.grant.valid.then_some(now.bound))
    }

    /// Invalidation, local or by the peer's SEND: bound → free, of type 2 and by its own queue pair only. Gives the region
    /// that it was bound to.
    pub(crate) fn invalidate(&self, user: KeyUser, key: RKey) -> Result<Bound, KeyFault> {
        if user.pd != self.pd {
            return Err(KeyFault::WrongPd);
        }
        if self.mw_type == MwType::Type1 {
            return Err(KeyFault::Access);
        }
        self.take_away(|now| {
            if !now.grant.valid || now.grant.key != key.value() {
                return Err(KeyFault::Unknown);
            }
            if now.qpn == user.qpn { Ok(()) } else { Err(KeyFault::WrongQp) }
        })
    }

    /// The window is given back, bound or not: its key never works again. Gives the region that it was bound to.
    pub(crate) fn free(&self) -> Option<Bound> {
        // Waits for a writer: a bind in progress must not survive this.
        loop {
            let bound = self.version.exclusively(|| {
                let now = self.look();
                self.access.store(FREED, Ordering::Relaxed);
                now.grant.valid.then_some(now.bound)
            });
            match bound {
                Some(bound) => return bound,
                None => std::hint::spin_loop(),
            }
        }
    }

    /// A queue pair is destroyed: what it had bound is free. Gives the region.
    pub(crate) fn leave(&self, qpn: Qpn) -> Option<Bound> {
        if self.mw_type == MwType::Type1 {
            return None;
        }
        let own =
            |now: &State| if now.grant.valid && now.qpn == qpn { Ok(()) } else { Err(KeyFault::WrongQp) };
        self.take_away(own).ok()
    }

    fn take_away(&self, may: impl FnOnce(&State) -> Result<(), KeyFault>) -> Result<Bound, KeyFault> {
        let taken = self.version.exclusively(|| {
            let now = self.look();
            may(&now)?;
            self.access.store(0, Ordering::Relaxed);
            Ok(now.bound)
        });
        taken.unwrap_or(Err(KeyFault::Unknown))
    }

    /// A peer's access: key, PD, queue pair, rights, range, in this order.
    #[inline(never)]
    pub(crate) fn check(
        &self,
        key: u32,
        user: KeyUser,
        addr: u64,
        len: u32,
        need: Access,
    ) -> Result<Span, KeyFault> {
        let state = self.granted(key, user, need)?;
        let at = state.grant.offset_of(addr, len)?;
        // Inside of the region, by the check of the bind: no sum wraps.
        Ok(Span::new(state.bound.region, state.offset + at, len))
    }

    /// All of it, if the key gives this right.
    pub(crate) fn whole(&self, key: u32, user: KeyUser, need: Access) -> Result<Extent, KeyFault> {
        let state = self.granted(key, user, need)?;
        Ok(Extent::new(state.bound.region, state.offset, state.grant.len))
    }

    fn granted(&self, key: u32, user: KeyUser, need: Access) -> Result<State, KeyFault> {
        let state = self.state().ok_or(KeyFault::Unknown)?;
        if !state.grant.valid || state.grant.key != key {
            return Err(KeyFault::Unknown);
        }
        if self.pd != user.pd {
            return Err(KeyFault::WrongPd);
        }
        // rocev2 facts, transport 18: type 2B belongs to the queue pair that bound it.
        if self.mw_type == MwType::Type2 && state.qpn != user.qpn {
            return Err(KeyFault::WrongQp);
        }
        if !state.grant.access.contains(need) {
            return Err(KeyFault::Access);
        }
        Ok(state)
    }
}
