//! Empty buffers at hand, on their way to the cache before their turn comes.
//!
//! A buffer was mostly somebody else's before: whoever received it has its lines in the cache of another core. So buffers are taken from
//! the pool in bulk without a look at them, their lines are asked for some buffers ahead, as this core's alone, and only when its turn
//! comes one is made ready. The description's second line is not touched at all: what matters of it is as the pool keeps it.

use std::ptr::{self, NonNull};
use std::sync::Arc;

use dpdk_sys::rte_mbuf;

use crate::mbuf::Mbuf;
use crate::mempool::{HEADROOM, Mempool};

/// Buffers taken at once.
const BULK: usize = 16;

/// When so few are left, others are taken; and so many ahead lines are asked for.
const AHEAD: u32 = 8;

const PLACES: usize = 2 * BULK;

/// Empty buffers that wait for their turn, no more than [`MOST`](Self::MOST).
#[derive(Debug)]
pub struct Reserve {
    pool: Arc<Mempool>,
    /// Those from `taken` up to `filled`, both modulo 2^32, are ours.
    places: [*mut rte_mbuf; PLACES],
    taken: u32,
    filled: u32,
    /// Where the data of a buffer is to begin.
    offset: u16,
    /// How long it can be.
    room: u16,
}

// SAFETY: the buffers belong to the reserve alone and to no thread; pools accept them from any.
unsafe impl Send for Reserve {}

impl Reserve {
    /// Most buffers that wait.
    pub const MOST: usize = AHEAD as usize + BULK;

    /// An empty reserve, to be filled from a pool.
    pub fn new(pool: Arc<Mempool>) -> Reserve {
        Reserve::beginning_at(pool, HEADROOM)
    }

    /// The same, but the data of its buffers begins `offset` bytes behind their beginning instead of the usual headroom, which is
    /// more than any pool's buffers lack.
    pub fn beginning_at(pool: Arc<Mempool>, offset: u16) -> Reserve {
        const { assert!(AHEAD as usize <= BULK, "a bulk fits beside what is left") };
        let offset = offset.min(HEADROOM);
        let room = pool.data_room() + (HEADROOM - offset);
        Reserve { pool, places: [ptr::null_mut(); PLACES], taken: 0, filled: 0, offset, room }
    }

    /// The longest packet that a buffer holds.
    #[inline]
    pub fn room(&self) -> usize {
        self.room.into()
    }

    /// The pool.
    pub fn pool(&self) -> &Arc<Mempool> {
        &self.pool
    }

    /// An empty buffer with its headroom in front, or `None` when all are out. `len` is how long its packet is going to be: those of the
    /// buffers after it are taken to be as long, so that as many lines are asked for.
    #[inline]
    pub fn take(&mut self, len: usize) -> Option<Mbuf> {
        self.ready(len, 0)
    }

    /// A packet of `len` bytes, which hold whatever was in the buffer; `None` also where that is more than its [`room`](Self::room).
    #[inline(always)]
    pub fn take_whole(&mut self, len: usize) -> Option<Mbuf> {
        if len > self.room() { None } else { self.ready(len, len as u16) }
    }

    /// A packet of `filled` bytes, which a buffer has room for.
    #[inline(always)]
    fn ready(&mut self, len: usize, filled: u16) -> Option<Mbuf> {
        if self.left() <= AHEAD {
            self.fill();
            if self.left() == 0 {
                // Bulk is all or nothing; the pool's last buffers come one by one.
                let mut last = self.pool.alloc()?;
                let is_ready = last.begin_at(self.offset) && last.append(filled.into()).is_some();
                return is_ready.then_some(last);
            }
        }
        let raw = self.place(self.taken);
        self.taken = self.taken.wrapping_add(1);
        if self.left() > AHEAD {
            Mbuf::prefetch_empty(self.place(self.taken.wrapping_add(AHEAD)), self.offset, len);
        }
        // SAFETY: the buffer came from a packet pool, has no other owner, and nobody has touched it since; so much is in it.
        NonNull::new(raw).map(|raw| unsafe { Mbuf::from_pool(raw, self.offset, filled) })
    }

    #[inline]
    fn left(&self) -> u32 {
        self.filled.wrapping_sub(self.taken)
    }

    #[inline]
    fn place(&self, number: u32) -> *mut rte_mbuf {
        self.places[number as usize % PLACES]
    }

    /// One bulk more, if the pool has it.
    fn fill(&mut self) {
        // A multiple of BULK, as it grows by that.
        let at = self.filled as usize % PLACES;
        let places = self.places[at..at + BULK].as_mut_ptr().cast();
        // SAFETY: there are BULK places, none of them in use: at most AHEAD of the others are. The pool is a living packet pool.
        if unsafe { dpdk_sys::rte_mempool_get_bulk(self.pool.raw(), places, BULK as u32) } == 0 {
            self.filled = self.filled.wrapping_add(BULK as u32);
        }
    }
}

impl Drop for Reserve {
    fn drop(&mut self) {
        while self.left() > 0 {
            let raw = self.place(self.taken).cast();
            self.taken = self.taken.wrapping_add(1);
            // SAFETY: the buffer is the pool's, ours, and as the pool gave it.
            unsafe { dpdk_sys::rte_mempool_put(self.pool.raw(), raw) };
        }
    }
}
