//! Pools of packet buffers.

mod memory;

pub(crate) use memory::PoolMemory;

use std::ptr::NonNull;
use std::sync::Arc;

use dpdk_sys::{RTE_MEMPOOL_CACHE_MAX_SIZE, RTE_PKTMBUF_HEADROOM, rte_mempool};

use crate::burst::MbufBurst;
use crate::eal::Eal;
use crate::errno::Errno;
use crate::mbuf::Mbuf;
use memory::RawPool;

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

impl Mempool {
    /// Makes a pool, or takes over a retired one of the same shape.
    pub fn new(eal: &Eal, config: PoolConfig) -> Result<Arc<Mempool>, PoolError> {
        check(&config).map_err(|why| PoolError::Config { name: config.name.clone(), why })?;
        let raw = eal.pool_memory().take(&config).map_err(|errno| PoolError::Memory {
            name: config.name.clone(),
            count: config.count,
            mb: config.bytes().div_ceil(1 << 20),
            errno,
        })?;
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
        self.raw.as_ptr()
    }
}

impl Drop for Mempool {
    fn drop(&mut self) {
        self.eal.pool_memory().retire(self.raw, self.config.clone());
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

impl PoolConfig {
    /// Bytes of memory the pool takes, rounded up: each buffer has an mbuf, a header and padding.
    fn bytes(&self) -> u64 {
        u64::from(self.count) * (u64::from(self.data_room) + u64::from(HEADROOM) + 256)
    }

    /// Whether a pool of the one can serve as the other.
    fn same_shape(&self, other: &PoolConfig) -> bool {
        PoolConfig { name: other.name.clone(), ..self.clone() } == *other
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
