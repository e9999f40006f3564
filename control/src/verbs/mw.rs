//! Memory windows: keys of their own over parts of a region, which can be given and taken away quickly.

use super::{Pd, RemoteMemory};
use crate::error::{BindMwError, CreateError};
use engine::wr::Bind;
use engine::{Access, Binding, MemoryRegion, MemoryWindow, MwType};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use wire::RKey;
use worker::Command;

/// A memory window, after `ibv_alloc_mw`. Clones are the same window. When the last goes it is freed, bound or not: its key
/// stops working.
#[derive(Clone)]
pub struct Mw {
    inner: Arc<Inner>,
}

struct Inner {
    mw: Arc<MemoryWindow>,
    first_key: u32,
    /// Low byte of the key that was given to the last bind of a window of type 1.
    last_byte: AtomicU8,
    pd: Pd,
}

/// A piece of a region, with the rights that a window over it grants: made by [`Mr::window`](super::Mr::window).
#[derive(Clone, Debug)]
pub struct MwBind {
    binding: Binding,
}

impl MwBind {
    pub(super) fn new(mr: &Arc<MemoryRegion>, addr: u64, range: Range<usize>, access: Access) -> MwBind {
        let len = range.end.saturating_sub(range.start) as u64;
        let addr = addr.wrapping_add(range.start as u64);
        MwBind { binding: Binding { mr: Arc::clone(mr), mr_key: mr.key(), addr, len, access } }
    }
}

impl Mw {
    pub(super) fn new(pd: &Pd, mw_type: MwType) -> Result<Mw, CreateError> {
        let port = &pd.device().port;
        let most = port.facts.max_mrs;
        let first_key = {
            let mut names = port.names();
            if names.windows() >= most {
                let (asked, most) = (most as u64 + 1, most as u64);
                return Err(CreateError::Limit { what: "memory windows", asked, most });
            }
            names.window_key()
        };
        let mw = Arc::new(MemoryWindow::new(pd.id(), mw_type, first_key));
        let inner = Inner { mw, first_key, last_byte: AtomicU8::new(first_key as u8), pd: pd.clone() };
        // On an error the half that was done is undone by the drop.
        port.everywhere(|lane| Command::AddMw { lane, window: Arc::clone(&inner.mw) })?;
        Ok(Mw { inner: Arc::new(inner) })
    }

    /// Its type.
    pub fn mw_type(&self) -> MwType {
        self.inner.mw.mw_type()
    }

    /// Its protection domain.
    pub fn pd(&self) -> &Pd {
        &self.inner.pd
    }

    /// Its key as it is now, whether it is bound or not. A bind gives it another low byte, when it is executed.
    pub fn rkey(&self) -> RKey {
        RKey::new(self.inner.mw.key())
    }

    /// The key that a bind of type 2 with this byte gives it.
    pub fn key_with(&self, key_byte: u8) -> RKey {
        RKey::new(self.inner.first_key & !0xFF | u32::from(key_byte))
    }

    /// True while its key works.
    pub fn is_bound(&self) -> bool {
        self.inner.mw.is_bound()
    }

    /// What to tell a peer that is to reach memory through it; `None` while it is not bound.
    pub fn remote(&self) -> Option<RemoteMemory> {
        let (addr, len) = self.inner.mw.range()?;
        Some(RemoteMemory { addr, len, rkey: self.rkey().value() })
    }

    pub(super) fn bind(&self, key: RKey, to: Option<&MwBind>) -> Arc<Bind> {
        Arc::new(Bind { mw: Arc::clone(&self.inner.mw), key, to: to.map(|to| to.binding.clone()) })
    }

    /// A bind under the next key.
    pub(super) fn bind_next(&self, to: Option<&MwBind>) -> (RKey, Arc<Bind>) {
        let byte = self.inner.last_byte.fetch_add(1, Ordering::Relaxed).wrapping_add(1);
        let key = self.key_with(byte);
        (key, self.bind(key, to))
    }

    /// What a bind of type 1 can be refused for before it is posted.
    pub(super) fn check_type_1(&self, pd: &Pd, to: Option<&MwBind>) -> Result<(), BindMwError> {
        if self.mw_type() != MwType::Type1 {
            return Err(BindMwError::Type);
        }
        if self.pd().id() != pd.id() || to.is_some_and(|to| to.binding.mr.pd() != pd.id()) {
            return Err(BindMwError::Pd);
        }
        if to.is_some_and(|to| to.binding.access.contains(Access::ZERO_BASED)) {
            return Err(BindMwError::ZeroBased);
        }
        Ok(())
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        let port = &self.pd.device().port;
        // The first worker frees it for all.
        let _ = port.everywhere(|lane| Command::RemoveMw { lane, index: self.first_key >> 8 });
        port.names().free_key(self.first_key);
    }
}

impl std::fmt::Debug for Mw {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (mw_type, bound) = (self.mw_type(), self.is_bound());
        f.debug_struct("Mw").field("type", &mw_type).field("bound", &bound).finish_non_exhaustive()
    }
}
