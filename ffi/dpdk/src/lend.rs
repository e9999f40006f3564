//! Packets that point to bytes which lie elsewhere, instead of holding a copy: lent, until the packet is freed.
//!
//! A driver that copies frames (to the kernel, into shared memory) reads lent bytes while it takes a packet. `net_ring`
//! passes the packet on as it is, so that one buffer can be all of it, with what goes before and behind the lent bytes in its own
//! room. Such a packet is marked by a flag, and otherwise a buffer as any other, which whoever frees it does not write: three cache lines
//! go to the other core and none comes back. There [`RxQueue::burst`](crate::RxQueue::burst) copies it into a buffer of the receiver, as
//! a NIC would; who can read lent bytes asks for packets [as sent](crate::RxQueue::burst_as_sent).

use std::ffi::c_void;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::burst::MbufBurst;
use crate::mbuf::{Mbuf, Segment};
use crate::mempool::Mempool;
use dpdk_sys::shim_loan as Loan;

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

/// The flag of packets that are lent in one buffer; 0 where DPDK had none left, and before it was started.
static IN_ONE: AtomicU64 = AtomicU64::new(0);

/// Asks DPDK for [`IN_ONE`], once it is started.
pub(crate) fn ask_for_flag() {
    // SAFETY: EAL is started, and the name is a C string.
    let flag = unsafe { dpdk_sys::shim_own_flag(c"rockhopper_lent".as_ptr()) };
    IN_ONE.store(flag, Ordering::Relaxed);
}

/// The flag, which is never another once it is not 0.
#[inline(always)]
pub(crate) fn in_one_flag() -> u64 {
    IN_ONE.load(Ordering::Relaxed)
}

/// The room that an empty buffer needs to stand for lent bytes, at its beginning: for a chain DPDK's description of what lies
/// elsewhere, with [`callback`], for a packet in one buffer our own.
pub const LEND_ROOM: u16 = {
    let (chained, in_one) = (dpdk_sys::SHIM_LEND_ROOM as usize, size_of::<Loan>());
    (if chained > in_one { chained } else { in_one }).next_multiple_of(8) as u16
};

/// A packet that points to lent bytes, by its parts.
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
    /// Makes an empty buffer stand for `len` bytes at `start`, to be the middle of a chain of three. `None` when it is not empty, a
    /// chain, or has less than [`LEND_ROOM`].
    ///
    /// # Safety
    /// - The `len` bytes stay readable, and `returns` stays where it is, until [`Returns::count`] has grown by one for this
    ///   packet. Others may write them meanwhile.
    /// - Nobody reads or writes them through the packet: it is chained, given to a [`TxQueue`](crate::TxQueue) or dropped.
    #[inline]
    pub unsafe fn lend(self, start: NonNull<u8>, len: u16, returns: &Returns) -> Option<Mbuf> {
        if self.pkt_len() != 0
            || self.nb_segs() != 1
            || self.headroom() + self.tailroom() < usize::from(LEND_ROOM)
        {
            return None;
        }
        let opaque = std::ptr::from_ref(returns).cast_mut().cast();
        // SAFETY: the buffer is ours, direct (pools hand out no others), and has the room, just checked. The bytes and
        // `returns` outlive it by the caller's promise.
        unsafe { dpdk_sys::shim_lend(self.as_raw(), start.as_ptr().cast(), len, callback(), opaque) };
        Some(self)
    }

    /// Makes a buffer with some bytes a packet of its own, for a [`TxQueue`](crate::TxQueue) that
    /// [passes packets on](crate::TxQueue::passes_on): its first `head` bytes, `len` bytes at `start`, and the rest of its own.
    /// `None` when it has fewer, is a chain, or has less than [`LEND_ROOM`] before its data ([`Mbuf::begin_at`]).
    ///
    /// Nothing of the buffer changes but that, so that it goes back to its pool as it is.
    ///
    /// # Safety
    /// As for [`lend`](Self::lend).
    #[inline]
    pub unsafe fn lend_around(
        self,
        head: u16,
        start: NonNull<u8>,
        len: u16,
        returns: &Returns,
    ) -> Option<Mbuf> {
        let (own, flag, segment) = (self.pkt_len(), in_one_flag(), self.head());
        let usable = self.nb_segs() == 1 && !segment.is_external() && !is_in_one(segment) && flag != 0;
        if !usable || own < usize::from(head) || self.headroom() < usize::from(LEND_ROOM) {
            return None;
        }
        let loan = Loan { start: start.as_ptr().cast(), returns: returns.0.as_ptr(), len, head };
        // SAFETY: the buffer is ours, has the room before its data, just checked, and begins where the description ends, aligned.
        unsafe { segment.buffer().cast::<Loan>().write(loan) };
        segment.set(dpdk_sys::SHIM_MBUF_OL_FLAGS, segment.get::<u64>(dpdk_sys::SHIM_MBUF_OL_FLAGS) | flag);
        segment.set(dpdk_sys::SHIM_MBUF_PKT_LEN, own as u32 + u32::from(len));
        Some(self)
    }

    /// Whether it is a packet with lent bytes, of one or of three segments: what nobody but a ring's other end sees.
    #[inline]
    pub fn is_lent(&self) -> bool {
        match self.nb_segs() {
            1 => is_in_one(self.head()),
            3 => self.head().next().is_some_and(is_lent),
            _ => false,
        }
    }

    /// The parts of a packet that [`is_lent`](Self::is_lent).
    #[inline(always)]
    pub fn lent_parts(&self) -> Option<LentParts<'_>> {
        match self.nb_segs() {
            1 => in_one(self),
            3 => in_three(self),
            _ => None,
        }
    }
}

/// The parts of a packet of three segments, if the middle one is lent.
#[inline(never)]
fn in_three(mbuf: &Mbuf) -> Option<LentParts<'_>> {
    let head = mbuf.head();
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

/// The parts of a packet of one segment, if it is lent.
#[inline(always)]
fn in_one(mbuf: &Mbuf) -> Option<LentParts<'_>> {
    let segment = mbuf.head();
    if !is_in_one(segment) {
        return None;
    }
    // SAFETY: `lend_around` has put it there, and nobody writes it while the packet is.
    let Loan { start, len, head, .. } = unsafe { segment.buffer().cast::<Loan>().read() };
    // SAFETY: the slice borrows the packet, so its segment is neither freed nor written meanwhile.
    let own = unsafe { segment.own_bytes() };
    let (head, tail) = own.split_at_checked(usize::from(head))?;
    Some(LentParts { head, start: NonNull::new(start.cast())?, len: usize::from(len), tail })
}

/// Whether a segment is a packet that is lent in one buffer: its flag is nobody else's.
#[inline(always)]
pub(crate) fn is_in_one(segment: Segment) -> bool {
    segment.get::<u64>(dpdk_sys::SHIM_MBUF_OL_FLAGS) & in_one_flag() != 0
}

/// Whether a segment points to lent bytes: then there is no slice over them.
#[inline]
pub(crate) fn is_lent(segment: Segment) -> bool {
    is_in_one(segment) || (segment.is_external() && is_ours(segment))
}

#[inline]
fn is_ours(segment: Segment) -> bool {
    let shared = segment.get::<*const u8>(dpdk_sys::SHIM_MBUF_SHINFO);
    // SAFETY: an external buffer has a description, which holds the callback there.
    let field = unsafe { shared.add(dpdk_sys::SHIM_LEND_CALLBACK as usize) };
    // SAFETY: as above; it is a pointer, aligned, and written by nobody while the packet is.
    let found = unsafe { field.cast::<dpdk_sys::rte_mbuf_extbuf_free_callback_t>().read() };
    found.map(|found| found as usize) == callback().map(|ours| ours as usize)
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

/// A deep copy. The bytes are moved by C, outside of Rust's view, so that it does not matter who else writes them. `None` also when
/// a packet of one segment does not fit a buffer.
fn copy(mbuf: &Mbuf, pool: &Mempool) -> Option<Mbuf> {
    if mbuf.nb_segs() == 1 {
        let LentParts { head, start, len, tail } = mbuf.lent_parts()?;
        let mut copy = pool.alloc()?;
        let room = copy.append(head.len() + len + tail.len())?;
        let (to_head, rest) = room.split_at_mut(head.len());
        let (body, to_tail) = rest.split_at_mut(len);
        to_head.copy_from_slice(head);
        to_tail.copy_from_slice(tail);
        // SAFETY: `body` is ours and has `len` bytes; so many are lent, readable until the packet is freed.
        unsafe { dpdk_sys::shim_copy(body.as_mut_ptr().cast(), start.as_ptr().cast(), len) };
        return Some(copy);
    }
    // SAFETY: the packet is well formed and ours to read, its lent bytes are readable until it is freed, and the pool is a
    // living packet pool.
    let raw = unsafe { dpdk_sys::rte_pktmbuf_copy(mbuf.as_raw(), pool.raw(), 0, u32::MAX) };
    // SAFETY: a new chain that nobody else has.
    NonNull::new(raw).map(|raw| unsafe { Mbuf::from_raw(raw) })
}
