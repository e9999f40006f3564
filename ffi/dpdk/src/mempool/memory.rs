//! The memory of pools: made once, kept while DPDK runs, reused.
//!
//! An [`crate::Mbuf`] does not hold its pool, so a pool's memory must outlive every buffer of it. It is never
//! unmapped while DPDK runs: a dropped pool is retired, and the next pool of the same shape takes it over once all
//! its buffers are home. So a program that opens and closes ports all day does not grow.
//!
//! Without hugepages and without PCI devices, a pool gets anonymous memory of its own that the kernel backs by
//! transparent huge pages where it can: about twice as fast per packet as EAL's 4 KiB pages.

use std::ffi::{CString, c_char, c_int, c_uint};
use std::ptr::NonNull;
use std::sync::{Mutex, MutexGuard, PoisonError};

use dpdk_sys::{SOCKET_ID_ANY, rte_mempool};

use super::{HEADROOM, PoolConfig};
use crate::errno::Errno;

/// A DPDK packet pool, valid until DPDK is shut down.
#[derive(Debug, Clone, Copy)]
pub(super) struct RawPool(NonNull<rte_mempool>);

// SAFETY: a DPDK mempool is made for use by many threads: its ring is multi-producer and multi-consumer, and
// its caches belong to one registered thread each.
unsafe impl Send for RawPool {}
// SAFETY: as above.
unsafe impl Sync for RawPool {}

/// Where pools come from and go to.
#[derive(Debug)]
pub(crate) struct PoolMemory(Mutex<State>);

#[derive(Debug)]
struct State {
    retired: Vec<(RawPool, PoolConfig)>,
    /// Bytes left for pools on memory of their own; `None` if pools use EAL's memory.
    own_bytes_left: Option<u64>,
    /// Pools made so far.
    made: u64,
}

impl RawPool {
    pub(super) fn as_ptr(self) -> *mut rte_mempool {
        self.0.as_ptr()
    }

    pub(super) fn available(self) -> u32 {
        // SAFETY: the pool lives as long as DPDK; the count reads its ring and caches without changing them.
        unsafe { dpdk_sys::rte_mempool_avail_count(self.as_ptr()) }
    }
}

impl PoolMemory {
    /// `own_bytes`: how many bytes of ordinary memory pools may take; `None` to use EAL's memory, which devices
    /// can read.
    pub(crate) fn new(own_bytes: Option<u64>) -> PoolMemory {
        PoolMemory(Mutex::new(State { retired: Vec::new(), own_bytes_left: own_bytes, made: 0 }))
    }

    /// A retired pool of that shape with all its buffers home, or a new one.
    pub(super) fn take(&self, wanted: &PoolConfig) -> Result<RawPool, Errno> {
        let mut state = self.lock();
        let fits = |(raw, config): &(RawPool, PoolConfig)| {
            config.same_shape(wanted) && raw.available() == config.count
        };
        match state.retired.iter().position(fits) {
            Some(at) => Ok(state.retired.swap_remove(at).0),
            None => state.create(wanted),
        }
    }

    /// Keeps a pool that nobody takes from any more. Its buffers may still be out.
    pub(super) fn retire(&self, raw: RawPool, config: PoolConfig) {
        self.lock().retired.push((raw, config));
    }

    /// Whether no buffer of any retired pool is out.
    pub(crate) fn all_home(&self) -> bool {
        self.lock().retired.iter().all(|(raw, config)| raw.available() == config.count)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// `config` has been checked: its numbers are in DPDK's ranges.
    fn create(&mut self, config: &PoolConfig) -> Result<RawPool, Errno> {
        let left = match self.own_bytes_left {
            Some(left) => Some(left.checked_sub(config.bytes()).ok_or(Errno::ENOMEM)?),
            None => None,
        };
        let create = if left.is_some() { dpdk_sys::shim_own_pktmbuf_pool } else { on_eal_memory };
        // DPDK wants unique names of at most 25 bytes; the user's is for people.
        let name = CString::new(format!("rh_pool_{}", self.made)).map_err(|_| Errno::EINVAL)?;
        let socket = config.socket.map_or(SOCKET_ID_ANY, |socket| socket as c_int);
        // SAFETY: EAL is started (it owns `self`), the name outlives the call, and the numbers are in range.
        let raw =
            unsafe { create(name.as_ptr(), config.count, config.cache, config.data_room + HEADROOM, socket) };
        self.made += 1;
        let raw = NonNull::new(raw).ok_or_else(Errno::last)?;
        self.own_bytes_left = left;
        Ok(RawPool(raw))
    }
}

/// A pool on EAL's memory, with the signature of `shim_own_pktmbuf_pool`.
///
/// # Safety
/// As `rte_pktmbuf_pool_create`: EAL is started and `name` is a C string.
unsafe extern "C" fn on_eal_memory(
    name: *const c_char,
    count: c_uint,
    cache: c_uint,
    data_room: u16,
    socket: c_int,
) -> *mut rte_mempool {
    // SAFETY: the caller's promise.
    unsafe { dpdk_sys::rte_pktmbuf_pool_create(name, count, cache, 0, data_room, socket) }
}
