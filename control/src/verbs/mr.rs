//! Memory regions: memory that queue pairs may touch.

use super::{MwBind, Pd};
use crate::error::{CreateError, DeregisterError};
use engine::wr::Remote;
use engine::{Access, MemoryRegion, RegionId, Sge};
use memory::{Buffer, OutOfRange};
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use wire::{LKey, RKey};
use worker::Command;

/// A registered region with its memory. Clones are the same region. When the last goes it is deregistered: keys stop
/// working, requests that still name it end in error, and the memory is freed once no worker can be inside.
///
/// Peers may write it at any moment, so it is copied in and out, never borrowed.
#[derive(Clone)]
pub struct Mr {
    region: Arc<Registered>,
    buffer: Arc<Buffer>,
    /// What requests and peers count from: 0 for a zero-based region.
    addr: u64,
}

/// A region for fast registration: its key is made valid by a [`SendWr::reg_mr`](super::SendWr::reg_mr) and invalid by a
/// local invalidate or a peer's SEND with Invalidate.
#[derive(Clone)]
pub struct FastMr {
    region: Arc<Registered>,
    buffer: Arc<Buffer>,
}

/// The registration itself.
struct Registered {
    mr: Arc<MemoryRegion>,
    id: RegionId,
    first_key: u32,
    pd: Pd,
    ended: AtomicBool,
}

impl Registered {
    fn new(
        pd: &Pd,
        buffer: &Arc<Buffer>,
        make: impl FnOnce(RegionId, u32) -> MemoryRegion,
    ) -> Result<Self, CreateError> {
        let port = &pd.device().port;
        port.reclaim();
        let most = port.facts.max_mrs;
        if port.names().keys() >= most {
            return Err(CreateError::Limit {
                what: "memory regions",
                asked: most as u64 + 1,
                most: most as u64,
            });
        }
        let id = port.regions.register(Arc::clone(buffer))?;
        let first_key = port.names().key();
        let mr = Arc::new(make(id, first_key));
        let registered = Registered { mr, id, first_key, pd: pd.clone(), ended: AtomicBool::new(false) };
        // On an error the half that was done is undone by the drop.
        port.everywhere(|lane| Command::AddMr { lane, region: Arc::clone(&registered.mr) })?;
        Ok(registered)
    }
}

impl Registered {
    /// Deregisters, unless that has been done or memory windows are bound.
    fn deregister(&self) -> Result<(), DeregisterError> {
        self.mr.close().map_err(DeregisterError::Windows)?;
        self.end();
        Ok(())
    }

    fn end(&self) {
        if self.ended.swap(true, Ordering::AcqRel) {
            return;
        }
        let port = &self.pd.device().port;
        // The memory first: from now on no new copy begins. Then the key; a worker that is gone knows none.
        port.regions.invalidate(self.id);
        let _ = port.everywhere(|lane| Command::RemoveMr { lane, index: self.first_key >> 8 });
        port.reclaim();
        port.names().free_key(self.first_key);
    }
}

impl Drop for Registered {
    fn drop(&mut self) {
        // Nobody can be told that windows are bound: they lead to memory that is gone.
        self.mr.close_anyway();
        self.end();
    }
}

/// Memory of a peer, as it told us: where its region begins, how long it is, and its key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RemoteMemory {
    /// Address of the first byte in the peer's terms.
    pub addr: u64,
    /// Bytes.
    pub len: u64,
    /// The peer's key.
    pub rkey: u32,
}

impl RemoteMemory {
    /// The place `offset` bytes behind the beginning. The peer checks what is inside.
    pub fn at(&self, offset: u64) -> Remote {
        Remote { addr: self.addr.wrapping_add(offset), rkey: RKey::new(self.rkey) }
    }
}

impl Mr {
    pub(super) fn new(pd: &Pd, len: usize, access: Access) -> Result<Mr, CreateError> {
        Mr::over(pd, Buffer::new(len)?, access)
    }

    pub(super) fn of_file(pd: &Pd, file: &File, len: usize, access: Access) -> Result<Mr, CreateError> {
        Mr::over(pd, Buffer::of_file(file, len)?, access)
    }

    fn over(pd: &Pd, buffer: Buffer, access: Access) -> Result<Mr, CreateError> {
        if !access.is_consistent() {
            return Err(CreateError::Access);
        }
        if access.contains(Access::FLUSH_PERSISTENT) && !buffer.is_durable() {
            return Err(CreateError::Persistence);
        }
        let len = buffer.len();
        let buffer = Arc::new(buffer);
        let pd_id = pd.id();
        let addr = if access.contains(Access::ZERO_BASED) { 0 } else { buffer.addr() };
        let region = Registered::new(pd, &buffer, |id, key| {
            MemoryRegion::user(pd_id, id, key, addr, len as u64, access)
        })?;
        Ok(Mr { region: Arc::new(region), buffer, addr })
    }

    /// Address of the first byte, as requests and peers name it.
    pub fn addr(&self) -> u64 {
        self.addr
    }

    /// Bytes.
    #[expect(clippy::len_without_is_empty, reason = "a region is never empty")]
    pub fn len(&self) -> usize {
        self.buffer.len()
    }

    /// The key for our own requests.
    pub fn lkey(&self) -> LKey {
        LKey::new(self.region.mr.key())
    }

    /// The key for peers.
    pub fn rkey(&self) -> RKey {
        RKey::new(self.region.mr.key())
    }

    /// What to tell a peer that is to reach this region.
    pub fn remote(&self) -> RemoteMemory {
        RemoteMemory { addr: self.addr(), len: self.len() as u64, rkey: self.rkey().value() }
    }

    /// A piece of the region for a memory window that grants `access`: remote rights, and `ZERO_BASED` for one that counts from
    /// zero. Not checked here: a bind that the region does not allow fails.
    pub fn window(&self, range: Range<usize>, access: Access) -> MwBind {
        MwBind::new(&self.region.mr, self.addr, range, access)
    }

    /// Memory windows that are bound to it now.
    pub fn windows(&self) -> u32 {
        self.region.mr.windows()
    }

    /// Ends the registration now, for every clone of this handle: keys stop working, the memory itself stays as long as a handle
    /// does. Refused while memory windows are bound. (Where the last handle is dropped instead, windows that are still bound lead
    /// nowhere from then on.)
    pub fn deregister(&self) -> Result<(), DeregisterError> {
        self.region.deregister()
    }

    /// A piece of the region for a request. Not checked here: a request that reaches past the end fails.
    pub fn sge(&self, range: Range<usize>) -> Sge {
        sge(self.addr(), self.lkey(), range)
    }

    /// Copies `to.len()` bytes from `offset` out.
    pub fn read(&self, offset: usize, to: &mut [u8]) -> Result<(), OutOfRange> {
        self.buffer.read(offset, to)
    }

    /// Copies `from` to `offset`.
    pub fn write(&self, offset: usize, from: &[u8]) -> Result<(), OutOfRange> {
        self.buffer.write(offset, from)
    }

    /// The memory itself: single bytes to poll, atomics, fills.
    pub fn buffer(&self) -> &Arc<Buffer> {
        &self.buffer
    }
}

impl FastMr {
    pub(super) fn new(pd: &Pd, len: usize) -> Result<FastMr, CreateError> {
        let buffer = Arc::new(Buffer::new(len)?);
        let pd_id = pd.id();
        let region = Registered::new(pd, &buffer, |id, key| MemoryRegion::fast(pd_id, id, key, len as u64))?;
        Ok(FastMr { region: Arc::new(region), buffer })
    }

    /// The key as it is now. A registration may change its low 8 bits.
    pub fn key(&self) -> RKey {
        RKey::new(self.region.mr.key())
    }

    /// True while the key works.
    pub fn is_valid(&self) -> bool {
        self.region.mr.is_valid()
    }

    /// Address of the first byte.
    pub fn addr(&self) -> u64 {
        self.buffer.addr()
    }

    /// A piece of the region for a memory window, while it is registered at its own address under the key that it has now.
    pub fn window(&self, range: Range<usize>, access: Access) -> MwBind {
        MwBind::new(&self.region.mr, self.addr(), range, access)
    }

    /// Memory windows that are bound to it now: as long as there are any, it is not invalidated.
    pub fn windows(&self) -> u32 {
        self.region.mr.windows()
    }

    /// A piece of the region for a request while it is registered at its own address.
    pub fn sge(&self, range: Range<usize>) -> Sge {
        sge(self.addr(), LKey::new(self.region.mr.key()), range)
    }

    /// What to tell a peer while it is registered at its own address.
    pub fn remote(&self) -> RemoteMemory {
        RemoteMemory { addr: self.addr(), len: self.buffer.len() as u64, rkey: self.key().value() }
    }

    /// The memory.
    pub fn buffer(&self) -> &Arc<Buffer> {
        &self.buffer
    }

    pub(super) fn region(&self) -> &Arc<MemoryRegion> {
        &self.region.mr
    }
}

fn sge(addr: u64, lkey: LKey, range: Range<usize>) -> Sge {
    let len = range.end.saturating_sub(range.start);
    Sge { addr: addr.wrapping_add(range.start as u64), len: u32::try_from(len).unwrap_or(u32::MAX), lkey }
}

impl std::fmt::Debug for Mr {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Mr").field("len", &self.len()).finish_non_exhaustive()
    }
}

impl std::fmt::Debug for FastMr {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FastMr").field("len", &self.buffer.len()).finish_non_exhaustive()
    }
}
