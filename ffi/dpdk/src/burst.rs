//! Up to `N` owned mbufs side by side, in the form DPDK's burst functions read and write.

use arrayvec::ArrayVec;
use dpdk_sys::rte_mbuf;

use crate::lend;
use crate::mbuf::Mbuf;

/// Up to `N` packets in order. The default suits one receive burst; dropping it frees what it holds in bulk.
#[derive(Debug, Default)]
pub struct MbufBurst<const N: usize = 32>(ArrayVec<Mbuf, N>);

impl<const N: usize> MbufBurst<N> {
    /// An empty burst.
    #[inline]
    pub fn new() -> Self {
        MbufBurst(ArrayVec::new())
    }

    /// Packets held.
    #[inline]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether it holds no packet.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether it holds `N` packets.
    #[inline]
    pub fn is_full(&self) -> bool {
        self.0.is_full()
    }

    /// Packets that still fit.
    #[inline]
    pub fn room(&self) -> usize {
        self.0.remaining_capacity()
    }

    /// Appends a packet, or gives it back if the burst is full.
    #[inline]
    pub fn push(&mut self, mbuf: Mbuf) -> Result<(), Mbuf> {
        self.0.try_push(mbuf).map_err(|full| full.element())
    }

    /// Takes the last packet.
    #[inline]
    pub fn pop(&mut self) -> Option<Mbuf> {
        self.0.pop()
    }

    /// The packets in order.
    #[inline]
    pub fn as_slice(&self) -> &[Mbuf] {
        &self.0
    }

    /// The packets in order, to be changed.
    #[inline]
    pub fn as_mut_slice(&mut self) -> &mut [Mbuf] {
        &mut self.0
    }

    /// Takes all packets, first to last. Those not taken when the iterator is dropped are freed.
    #[inline]
    pub fn drain(&mut self) -> impl Iterator<Item = Mbuf> + '_ {
        self.0.drain(..)
    }

    /// Shows `keep` each packet from `from` on, to be changed; those that it refuses are freed, the others stay in order.
    pub(crate) fn retain_from(&mut self, from: usize, mut keep: impl FnMut(&mut Mbuf) -> bool) {
        let mut index = 0;
        self.0.retain(|mbuf| {
            index += 1;
            index <= from || keep(mbuf)
        });
    }

    /// Frees all packets at once.
    pub fn clear(&mut self) {
        let count = self.0.len();
        // SAFETY: nothing is read from the slots after this; the call below takes over what they point to.
        unsafe { self.0.set_len(0) };
        // Only now: the array is borrowed as a whole by what comes before, which would end an earlier pointer's right to it.
        let packets = self.as_raw();
        // SAFETY: `packets` are `count` mbufs that the burst owned and has just given up.
        unsafe { dpdk_sys::shim_free_bulk(packets, count as u32, lend::in_one_flag()) };
    }

    /// Appends up to `N` packets that `receive(slots, room)` writes, and returns how many it said it wrote.
    #[inline]
    pub(crate) fn append(&mut self, receive: impl FnOnce(*mut *mut rte_mbuf, u16) -> u16) -> usize {
        let (len, room) = (self.0.len(), self.0.remaining_capacity());
        // SAFETY: `len` is at most the capacity, so the result points into or just past the array.
        let slots = unsafe { self.as_raw().add(len) };
        let received = usize::from(receive(slots, room as u16)).min(room);
        // SAFETY: the callee wrote `received` owned mbufs behind the `len` there were, and they fit.
        unsafe { self.0.set_len(len + received) };
        received
    }

    /// Appends exactly `n` packets if they fit and `take(slots, n)` says it wrote them.
    #[inline]
    pub(crate) fn fill(&mut self, n: usize, take: impl FnOnce(*mut *mut rte_mbuf, u32) -> bool) -> bool {
        if n > self.0.remaining_capacity() {
            return false;
        }
        self.append(|slots, _| if take(slots, n as u32) { n as u16 } else { 0 }) == n
    }

    /// Gives `send(packets, count)` all packets; the first so many as it returns are no longer ours.
    #[inline]
    pub(crate) fn take_front(&mut self, send: impl FnOnce(*mut *mut rte_mbuf, u16) -> u16) -> usize {
        let len = self.0.len();
        let sent = usize::from(send(self.as_raw(), len as u16)).min(len);
        // SAFETY: nothing is read until the remaining packets have been moved to the front. A panic cannot
        // come between.
        unsafe { self.0.set_len(0) };
        if sent < len {
            let packets = self.as_raw();
            // SAFETY: both ranges lie within the `len` slots; `copy` allows overlap.
            unsafe { std::ptr::copy(packets.add(sent), packets, len - sent) };
            // SAFETY: the first `len - sent` slots hold the packets that were not sent, each once.
            unsafe { self.0.set_len(len - sent) };
        }
        sent
    }

    /// The array as DPDK sees it: an `Mbuf` is one pointer to an `rte_mbuf`.
    #[inline]
    fn as_raw(&mut self) -> *mut *mut rte_mbuf {
        const { assert!(N <= u16::MAX as usize, "DPDK counts a burst in 16 bits") };
        self.0.as_mut_ptr().cast()
    }
}

impl<const N: usize> Drop for MbufBurst<N> {
    #[inline]
    fn drop(&mut self) {
        if !self.is_empty() {
            self.clear();
        }
    }
}
