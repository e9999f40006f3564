//! Packets that point to bytes which lie elsewhere, instead of holding a copy: lent, until the packet is freed.
//!
//! A driver that copies frames (to the kernel, into shared memory) reads lent bytes while it takes a packet. `net_ring`
//! passes the packet on as it is: there [`RxQueue::burst`](crate::RxQueue::burst) copies it into a buffer of the receiver,
//! as a NIC would, so that a [`Mbuf`] that was received never points to lent bytes.

use std::ffi::c_void;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::burst::MbufBurst;
use crate::mbuf::{Mbuf, Segment};
use crate::mempool::Mempool;

/// How many lent pieces came back. On a cache line of its own: the threads that free packets write it.
#[derive(Debug, Default)]
#[repr(align(64))]
pub struct Returns(AtomicU64);

impl Returns {
    /// Pieces that came back so far. Whoever reads this sees all reads of them as done.
    pub fn count(&self) -> u64 {
        // Acquire: pairs with the Release below.
        self.0.load(Ordering::Acquire)
    }
}

/// Runs on the thread that frees the segment.
unsafe extern "C" fn returned(_: *mut c_void, opaque: *mut c_void) {
    // SAFETY: `opaque` is the `Returns` that `lend` was given, which its caller keeps until this has run.
    let returns = unsafe { &*opaque.cast::<Returns>() };
    // Release: the last read of the bytes comes before.
    returns.0.fetch_add(1, Ordering::Release);
}

/// The address of [`returned`], which tells our lent bytes from those of drivers. Taken in one place, never inlined: a function
/// may have another address in each crate that it is inlined into.
#[inline(never)]
fn callback() -> dpdk_sys::rte_mbuf_extbuf_free_callback_t {
    Some(returned)
}

/// The room that an empty buffer needs to stand for lent bytes.
pub const LEND_ROOM: u16 = dpdk_sys::SHIM_LEND_ROOM as u16;

/// A packet that points to lent bytes, by its segments.
#[derive(Clone, Copy, Debug)]
pub struct LentParts<'a> {
    /// What is before the lent bytes.
    pub head: &'a [u8],
    /// The first lent byte. Others may write them; they stay readable as long as the packet is not dropped.
    pub start: NonNull<u8>,
    /// How many are lent.
    pub len: usize,
    /// What is behind them.
    pub tail: &'a [u8],
}

impl Mbuf {
    /// Makes an empty buffer stand for `len` bytes at `start`. `None` when it is not empty, a chain, or has less than
    /// [`LEND_ROOM`].
    ///
    /// # Safety
    /// - The `len` bytes stay readable, and `returns` stays where it is, until [`Returns::count`] has grown by one for this
    ///   packet. Others may write them meanwhile.
    /// - Nobody reads or writes them through the packet: it is chained, given to a [`TxQueue`](crate::TxQueue) or dropped.
    #[inline]
    pub unsafe fn lend(self, start: NonNull<u8>, len: u16, returns: &Returns) -> Option<Mbuf> {
        let room = self.headroom() + self.tailroom();
        if self.nb_segs() != 1 || self.pkt_len() != 0 || room < usize::from(LEND_ROOM) {
            return None;
        }
        let opaque = std::ptr::from_ref(returns).cast_mut().cast();
        // SAFETY: the buffer is ours, direct (pools hand out no others), and has the room, just checked. The bytes and
        // `returns` outlive it by the caller's promise.
        unsafe { dpdk_sys::shim_lend(self.as_raw(), start.as_ptr().cast(), len, callback(), opaque) };
        Some(self)
    }

    /// Whether it is a packet of three segments, the middle one lent: what nobody but a ring's other end sees.
    #[inline]
    pub fn is_lent(&self) -> bool {
        self.lent_parts().is_some()
    }

    /// The segments of a packet that [`is_lent`](Self::is_lent).
    #[inline]
    pub fn lent_parts(&self) -> Option<LentParts<'_>> {
        if self.nb_segs() != 3 {
            return None;
        }
        let head = self.head();
        let body = head.next()?;
        let tail = body.next()?;
        if !is_lent(body) {
            return None;
        }
        let start = NonNull::new(body.data_start())?;
        // SAFETY: the slices borrow the packet, so its segments are neither freed nor written meanwhile.
        let (head, tail) = unsafe { (head.bytes(), tail.bytes()) };
        Some(LentParts { head, start, len: usize::from(body.data_len()), tail })
    }
}

/// Whether a segment points to lent bytes: then there is no slice over them.
#[inline]
pub(crate) fn is_lent(segment: Segment) -> bool {
    segment.is_external() && is_ours(segment)
}

#[cold]
fn is_ours(segment: Segment) -> bool {
    // SAFETY: the description of a segment that its owner shows.
    unsafe { dpdk_sys::shim_is_lent(segment.as_raw(), callback()) != 0 }
}

/// Asks for the descriptions of the segments behind the first, and for the data of the last, to come into the cache: each is
/// found by the one before, so it is done for a whole burst, step by step.
pub(crate) fn prefetch_chains(burst: &[Mbuf]) {
    let chains = || burst.iter().filter(|mbuf| mbuf.nb_segs() == 3).map(Mbuf::head);
    chains().filter_map(Segment::next).for_each(Segment::prefetch);
    let tails = || chains().filter_map(Segment::next).filter_map(Segment::next);
    tails().for_each(Segment::prefetch);
    tails().for_each(Segment::prefetch_data);
}

/// Packets after the first `kept` that point to lent bytes become copies of themselves in buffers of `pool`. Those for which
/// there is none are dropped; returns how many.
pub(crate) fn take_in<const N: usize>(burst: &mut MbufBurst<N>, kept: usize, pool: &Mempool) -> u64 {
    let received = burst.as_slice().get(kept..).unwrap_or_default();
    if !received.iter().any(Mbuf::is_lent) {
        return 0;
    }
    let mut lost = 0;
    burst.retain_from(kept, |mbuf| {
        if mbuf.is_lent() {
            match copy(mbuf, pool) {
                // The packet that it was goes home here, and what was lent with it.
                Some(copy) => *mbuf = copy,
                None => {
                    lost += 1;
                    return false;
                }
            }
        }
        true
    });
    lost
}

/// A deep copy. The bytes are moved by DPDK, outside of Rust's view, so that it does not matter who else writes them.
fn copy(mbuf: &Mbuf, pool: &Mempool) -> Option<Mbuf> {
    // SAFETY: the packet is well formed and ours to read, its lent bytes are readable until it is freed, and the pool is a
    // living packet pool.
    let raw = unsafe { dpdk_sys::rte_pktmbuf_copy(mbuf.as_raw(), pool.raw(), 0, u32::MAX) };
    // SAFETY: a new chain that nobody else has.
    NonNull::new(raw).map(|raw| unsafe { Mbuf::from_raw(raw) })
}
