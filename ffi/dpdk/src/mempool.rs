//! Pools of packet buffers.
//!
//! A pool's memory is never unmapped while DPDK runs, because an [`Mbuf`] does not hold its pool. A dropped
//! pool is retired instead, and the next pool of the same shape takes it over once all its buffers are home. So
//! a program that opens and closes ports all day does not grow.

use std::ffi::CString;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use dpdk_sys::{RTE_MEMPOOL_CACHE_MAX_SIZE, RTE_PKTMBUF_HEADROOM, SOCKET_ID_ANY, rte_mempool};

use crate::burst::MbufBurst;
use crate::eal::Eal;
use crate::errno::Errno;
use crate::mbuf::Mbuf;

/// Bytes kept free before a packet's data, for prepending.
pub const HEADROOM: u16 = RTE_PKTMBUF_HEADROOM as u16;

/// What a pool is made of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PoolConfig {
    /// For people and dumps; need not be unique.
    pub name: String,
    /// Buffers. DPDK uses memory best at 2^n − 1.
    pub count: u32,
    /// Buffers each registered thread may keep to itself, at most 512 and two thirds of `count`; 0 for none.
    pub cache: u32,
    /// Bytes of packet one buffer holds, without the [`HEADROOM`].
    pub data_room: u16,
    /// NUMA socket to take the memory from; `None` for any.
    pub socket: Option<u32>,
}

impl Default for PoolConfig {
    /// 8191 buffers for standard frames.
    fn default() -> Self {
        PoolConfig { name: "pool".into(), count: 8191, cache: 256, data_room: 2048, socket: None }
    }
}

/// Why there is no pool.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PoolError {
    /// The numbers cannot make a pool.
    #[error("the pool {name} cannot be: {why}")]
    Config {
        /// The pool's name.
        name: String,
        /// What is wrong, and the limit.
        why: String,
    },
    /// There is not enough memory.
    #[error(
        "no memory for the pool {name} of {count} buffers, about {mb} MB ({errno}); give DPDK more memory or ask for fewer buffers"
    )]
    Memory {
        /// The pool's name.
        name: String,
        /// Buffers asked for.
        count: u32,
        /// Megabytes that takes.
        mb: u64,
        /// DPDK's reason.
        errno: Errno,
    },
}

/// A pool of packet buffers. Any thread may take from it and return to it.
#[derive(Debug)]
pub struct Mempool {
    raw: RawPool,
    config: PoolConfig,
    eal: Eal,
}

/// A DPDK mempool, valid until DPDK is shut down.
#[derive(Debug, Clone, Copy)]
struct RawPool(NonNull<rte_mempool>);

// SAFETY: a DPDK mempool is made for use by many threads: its ring is multi-producer and multi-consumer, and
// its caches belong to one registered thread each.
unsafe impl Send for RawPool {}
// SAFETY: as above.
unsafe impl Sync for RawPool {}

/// Pools that were dropped, with what they were made of.
#[derive(Debug, Default)]
pub(crate) struct RetiredPools(Mutex<Vec<(RawPool, PoolConfig)>>);

impl Mempool {
    /// Makes a pool, or takes over a retired one of the same shape.
    pub fn new(eal: &Eal, config: PoolConfig) -> Result<Arc<Mempool>, PoolError> {
        check(&config).map_err(|why| PoolError::Config { name: config.name.clone(), why })?;
        let raw = match eal.retired_pools().take(&config) {
            Some(raw) => raw,
            None => RawPool::create(&config)?,
        };
        Ok(Arc::new(Mempool { raw, config, eal: eal.clone() }))
    }

    /// One empty buffer with its headroom in front, or `None` when all are out.
    #[inline]
    pub fn alloc(&self) -> Option<Mbuf> {
        // SAFETY: the pool is a packet pool and lives as long as DPDK, which `self.eal` keeps.
        let raw = unsafe { dpdk_sys::rte_pktmbuf_alloc(self.raw()) };
        // SAFETY: a buffer just taken from a pool has no other owner.
        NonNull::new(raw).map(|raw| unsafe { Mbuf::from_raw(raw) })
    }

    /// Appends `n` empty buffers to `burst`: all or none. False if the pool or the burst's room is exhausted.
    #[inline]
    pub fn alloc_bulk<const N: usize>(&self, burst: &mut MbufBurst<N>, n: usize) -> bool {
        burst.fill(n, |slots, count| {
            // SAFETY: `slots` has room for `count` pointers, and the pool is a living packet pool.
            unsafe { dpdk_sys::rte_pktmbuf_alloc_bulk(self.raw(), slots, count) == 0 }
        })
    }

    /// Buffers in the pool and in its threads' caches. Walks all caches: not for the packet path.
    pub fn available(&self) -> u32 {
        self.raw.available()
    }

    /// Buffers that are out. Not for the packet path.
    pub fn in_use(&self) -> u32 {
        self.config.count - self.available().min(self.config.count)
    }

    /// Buffers in total.
    pub fn count(&self) -> u32 {
        self.config.count
    }

    /// Bytes of packet one buffer holds, without the headroom.
    pub fn data_room(&self) -> u16 {
        self.config.data_room
    }

    /// The name given.
    pub fn name(&self) -> &str {
        &self.config.name
    }

    pub(crate) fn raw(&self) -> *mut rte_mempool {
        self.raw.0.as_ptr()
    }
}

impl Drop for Mempool {
    fn drop(&mut self) {
        self.eal.retired_pools().add(self.raw, self.config.clone());
    }
}

fn check(config: &PoolConfig) -> Result<(), String> {
    if config.count == 0 {
        return Err("it needs at least one buffer".into());
    }
    if config.cache > RTE_MEMPOOL_CACHE_MAX_SIZE {
        return Err(format!("a cache of {} is over the limit of {RTE_MEMPOOL_CACHE_MAX_SIZE}", config.cache));
    }
    // DPDK's rule: a cache is flushed at 1.5 times its size, and that must fit into the pool.
    if u64::from(config.cache) * 3 > u64::from(config.count) * 2 {
        return Err(format!("a cache of {} needs at least {} buffers", config.cache, config.cache * 3 / 2));
    }
    if config.data_room > u16::MAX - HEADROOM {
        return Err(format!(
            "a data room of {} is over the limit of {}",
            config.data_room,
            u16::MAX - HEADROOM
        ));
    }
    Ok(())
}

impl RawPool {
    fn create(config: &PoolConfig) -> Result<RawPool, PoolError> {
        // DPDK wants unique names of at most 25 bytes; ours is for people, so DPDK gets a number.
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let name = format!("rh_pool_{}", NUMBER.fetch_add(1, Ordering::Relaxed));
        let name = CString::new(name).unwrap_or_default();
        let socket = config.socket.map_or(SOCKET_ID_ANY, |socket| socket as i32);
        // SAFETY: EAL is started (the caller has an `Eal`), the name outlives the call, and `check` has refused
        // numbers out of range.
        let raw = unsafe {
            dpdk_sys::rte_pktmbuf_pool_create(
                name.as_ptr(),
                config.count,
                config.cache,
                0,
                config.data_room + HEADROOM,
                socket,
            )
        };
        NonNull::new(raw).map(RawPool).ok_or_else(|| PoolError::Memory {
            name: config.name.clone(),
            count: config.count,
            mb: (u64::from(config.count) * (u64::from(config.data_room) + 384)).div_ceil(1 << 20),
            errno: Errno::last(),
        })
    }

    fn available(self) -> u32 {
        // SAFETY: the pool lives as long as DPDK; the count reads its ring and caches without changing them.
        unsafe { dpdk_sys::rte_mempool_avail_count(self.0.as_ptr()) }
    }
}

impl RetiredPools {
    fn add(&self, raw: RawPool, config: PoolConfig) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push((raw, config));
    }

    /// A retired pool shaped like `wanted` with all its buffers home.
    fn take(&self, wanted: &PoolConfig) -> Option<RawPool> {
        let mut pools = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let fits = |(raw, config): &(RawPool, PoolConfig)| {
            let same_shape = PoolConfig { name: wanted.name.clone(), ..config.clone() } == *wanted;
            same_shape && raw.available() == config.count
        };
        let at = pools.iter().position(fits)?;
        Some(pools.swap_remove(at).0)
    }

    /// Whether no buffer of any retired pool is out.
    pub(crate) fn all_home(&self) -> bool {
        let pools = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        pools.iter().all(|(raw, config)| raw.available() == config.count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn impossible_numbers_are_refused_with_the_limit() {
        let base = PoolConfig::default();
        assert!(check(&PoolConfig { count: 0, ..base.clone() }).is_err());
        assert!(check(&PoolConfig { cache: 513, ..base.clone() }).unwrap_err().contains("512"));
        assert!(check(&PoolConfig { count: 383, ..base.clone() }).unwrap_err().contains("384"));
        assert!(check(&PoolConfig { count: 384, ..base.clone() }).is_ok());
        assert!(check(&PoolConfig { data_room: u16::MAX, ..base }).unwrap_err().contains("65407"));
    }
}
