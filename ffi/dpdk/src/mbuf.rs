//! A packet buffer with one owner.
//!
//! Fields are read in place, without a call into C, at offsets taken from the installed DPDK's headers.
//!
//! The invariant behind every unsafe block: a `Mbuf` points to the first segment of a well-formed chain that
//! nobody else reads or writes. DPDK establishes it when it hands out a buffer (allocation, receive burst), and
//! the functions here keep it: in each segment `data_off + data_len <= buf_len`, in the first one `nb_segs` and
//! `pkt_len` are the chain's sums; but a packet that is lent in one buffer has a `pkt_len` with what is not in it (`lend.rs`).
//!
//! Buffer memory comes from `mmap`, which fills it with zeros: bytes that were never written hold old packet
//! data or zeros but are never uninitialised in Rust's sense, so slices of `u8` over them are sound.

use std::fmt;
use std::marker::PhantomData;
use std::ptr::NonNull;

use crate::lend;
use crate::lines::{self, CACHE_LINE, own_line};
use crate::mempool::HEADROOM;
use dpdk_sys::rte_mbuf;

/// A packet: one buffer or a chain of them, owned. Dropping it returns all to their pools.
#[repr(transparent)]
pub struct Mbuf(NonNull<rte_mbuf>);

// SAFETY: a buffer belongs to no thread; pools accept it from any.
unsafe impl Send for Mbuf {}

/// What the NIC says about a checksum.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Checksum {
    /// It did not look, or cannot tell.
    Unknown,
    /// Right.
    Good,
    /// Wrong.
    Bad,
}

/// Why two packets were not chained; both are given back.
#[derive(Debug)]
pub struct ChainTooLong {
    /// The packet that was to be first.
    pub head: Mbuf,
    /// The packet that was to follow.
    pub tail: Mbuf,
}

/// One segment of a chain, by pointer. Valid as long as the `Mbuf` it was reached through is borrowed.
#[derive(Clone, Copy)]
pub(crate) struct Segment(NonNull<rte_mbuf>);

impl Segment {
    #[inline(always)]
    pub(crate) fn get<T: Copy>(self, offset: u32) -> T {
        // SAFETY: `offset` is a SHIM_MBUF_* constant, so it lies inside the struct.
        let field = unsafe { self.0.as_ptr().cast::<u8>().add(offset as usize) };
        // SAFETY: every caller names the field's C type as `T`, DPDK aligns it, and the chain is ours to read.
        unsafe { field.cast::<T>().read() }
    }

    #[inline(always)]
    pub(crate) fn set<T: Copy>(self, offset: u32, value: T) {
        // SAFETY: as in `get`.
        let field = unsafe { self.0.as_ptr().cast::<u8>().add(offset as usize) };
        // SAFETY: as in `get`, or of fields side by side `T` is as they lie; callers that write hold the `Mbuf` by `&mut`.
        unsafe { field.cast::<T>().write(value) };
    }

    #[inline(always)]
    fn data_off(self) -> u16 {
        self.get(dpdk_sys::SHIM_MBUF_DATA_OFF)
    }

    #[inline(always)]
    pub(crate) fn data_len(self) -> u16 {
        self.get(dpdk_sys::SHIM_MBUF_DATA_LEN)
    }

    #[inline(always)]
    fn buf_len(self) -> u16 {
        self.get(dpdk_sys::SHIM_MBUF_BUF_LEN)
    }

    #[inline(always)]
    pub(crate) fn next(self) -> Option<Segment> {
        NonNull::new(self.get::<*mut rte_mbuf>(dpdk_sys::SHIM_MBUF_NEXT)).map(Segment)
    }

    /// Bytes after the data.
    #[inline(always)]
    fn tailroom(self) -> u16 {
        self.buf_len() - self.data_off() - self.data_len()
    }

    /// Where the buffer begins that the data is in.
    #[inline(always)]
    pub(crate) fn buffer(self) -> *mut u8 {
        self.get(dpdk_sys::SHIM_MBUF_BUF_ADDR)
    }

    #[inline(always)]
    pub(crate) fn data_start(self) -> *mut u8 {
        // SAFETY: the invariant: `data_off` is at most `buf_len`, the size of the buffer at `buf_addr`.
        unsafe { self.buffer().add(usize::from(self.data_off())) }
    }

    /// The data is not in the buffer that the mbuf came with.
    #[inline(always)]
    pub(crate) fn is_external(self) -> bool {
        self.get::<u64>(dpdk_sys::SHIM_MBUF_OL_FLAGS) & dpdk_sys::SHIM_MBUF_EXTERNAL != 0
    }

    /// The data; none where it is lent, which others may be writing. The caller chooses the lifetime: that of its borrow of
    /// the `Mbuf`.
    #[inline(always)]
    pub(crate) unsafe fn bytes<'a>(self) -> &'a [u8] {
        if lend::is_lent(self) {
            return &[];
        }
        // SAFETY: the caller's promise.
        unsafe { self.own_bytes() }
    }

    /// The data of a segment that is not external, lent or not.
    #[inline(always)]
    pub(crate) unsafe fn own_bytes<'a>(self) -> &'a [u8] {
        // SAFETY: `data_len` bytes from `data_start` lie in the buffer, are initialised (see the module) and
        // are not written while the caller's borrow lasts.
        unsafe { std::slice::from_raw_parts(self.data_start(), usize::from(self.data_len())) }
    }
}

/// Fields that lie side by side are written at once where a buffer is made ready: its data's place, with the reference count and the
/// number of segments as the pool keeps them, and no port.
#[inline(always)]
fn beginning(data_off: u16) -> [u16; 4] {
    const {
        use dpdk_sys::{SHIM_MBUF_DATA_OFF, SHIM_MBUF_NB_SEGS, SHIM_MBUF_PORT, SHIM_MBUF_REFCNT};
        assert!(SHIM_MBUF_REFCNT == SHIM_MBUF_DATA_OFF + 2 && SHIM_MBUF_NB_SEGS == SHIM_MBUF_DATA_OFF + 4);
        assert!(SHIM_MBUF_PORT == SHIM_MBUF_DATA_OFF + 6);
    }
    [data_off, 1, 1, dpdk_sys::SHIM_MBUF_PORT_INVALID]
}

/// The same for the lengths of a packet and its one segment, and the tag that it has not.
#[inline(always)]
fn lengths(len: u16) -> Lengths {
    const {
        use dpdk_sys::{SHIM_MBUF_DATA_LEN, SHIM_MBUF_PKT_LEN, SHIM_MBUF_VLAN_TCI};
        assert!(SHIM_MBUF_DATA_LEN == SHIM_MBUF_PKT_LEN + 4 && SHIM_MBUF_VLAN_TCI == SHIM_MBUF_PKT_LEN + 6);
    }
    Lengths { pkt_len: len.into(), data_len: len, vlan_tci: 0 }
}

/// As in `struct rte_mbuf`.
#[derive(Clone, Copy)]
#[repr(C)]
struct Lengths {
    pkt_len: u32,
    data_len: u16,
    vlan_tci: u16,
}
impl Mbuf {
    /// Takes ownership of a buffer from DPDK.
    ///
    /// # Safety
    /// `raw` is the first segment of a well-formed chain that nobody else owns.
    #[inline]
    pub(crate) unsafe fn from_raw(raw: NonNull<rte_mbuf>) -> Mbuf {
        Mbuf(raw)
    }

    /// Makes a packet of `len` bytes, which hold whatever was there, of a buffer as its pool keeps it. The description's second line, which another core may have, is not
    /// touched: of what is there, `next` is empty in the pool (DPDK, `rte_mbuf_raw_alloc`), and drivers look at the rest only if
    /// `ol_flags` says so.
    ///
    /// # Safety
    /// `raw` was taken from a packet pool, raw, and nobody has touched it since or owns it. `offset`, where its data begins, and `len`
    /// together are no more than its buffer has.
    #[inline(always)]
    pub(crate) unsafe fn from_pool(raw: NonNull<rte_mbuf>, offset: u16, len: u16) -> Mbuf {
        let segment = Segment(raw);
        debug_assert!(segment.next().is_none() && segment.get::<u16>(dpdk_sys::SHIM_MBUF_NB_SEGS) == 1);
        debug_assert!(offset.checked_add(len).is_some_and(|end| end <= segment.buf_len()));
        segment.set(dpdk_sys::SHIM_MBUF_DATA_OFF, beginning(offset));
        segment.set(dpdk_sys::SHIM_MBUF_OL_FLAGS, 0u64);
        segment.set(dpdk_sys::SHIM_MBUF_PKT_LEN, lengths(len));
        Mbuf(raw)
    }

    /// Asks for what a packet of `len` bytes writes of an empty buffer to come into the cache, as this core's alone: the first line of
    /// its description, and those of its data, which is to begin `offset` bytes behind the buffer's beginning. Of a long packet only the
    /// first lines.
    #[inline(always)]
    pub(crate) fn prefetch_empty(raw: *mut rte_mbuf, offset: u16, len: usize) {
        let description = raw.cast::<u8>();
        own_line(description);
        // Where our pools' buffers begin, counted from the beginning of a line; nothing needs to be read to know that.
        let room = dpdk_sys::SHIM_MBUF_SIZE as usize + usize::from(offset);
        for line in 0..lines::of(room, len) {
            own_line(description.wrapping_add(room + line * CACHE_LINE));
        }
    }

    /// As DPDK knows it.
    #[inline(always)]
    pub(crate) fn as_raw(&self) -> *mut rte_mbuf {
        self.0.as_ptr()
    }

    #[inline(always)]
    pub(crate) fn head(&self) -> Segment {
        Segment(self.0)
    }

    /// The last segment. That of a packet of one is found without a look at the second line of its description.
    #[inline(always)]
    fn last(&self) -> Segment {
        let mut segment = self.head();
        if self.nb_segs() != 1 {
            while let Some(next) = segment.next() {
                segment = next;
            }
        }
        segment
    }

    /// The bytes of the first segment: the whole packet if [`Mbuf::nb_segs`] is 1.
    #[inline]
    pub fn data(&self) -> &[u8] {
        // SAFETY: the slice borrows `self`, so the segment is neither freed nor written meanwhile.
        unsafe { self.head().bytes() }
    }

    /// Asks for the buffer's description, as far as a packet in one piece needs it, to come into the cache. Waits for nothing.
    #[inline(always)]
    pub fn prefetch(&self) {
        lines::prefetch(self.0.as_ptr().cast(), 1);
    }

    /// Asks for the data, too, as far as a short packet goes: from where it begins in most buffers. So nothing of it waits for its
    /// description, which may be on its way still.
    #[inline(always)]
    pub fn prefetch_unread(&self) {
        let start = self.0.as_ptr().cast::<u8>().wrapping_add(dpdk_sys::SHIM_MBUF_SIZE as usize);
        lines::prefetch(start.wrapping_add(HEADROOM.into()), 2);
    }

    /// Asks for the data of the first segment to come into the cache, to be read: of a long one only the first lines.
    #[inline(always)]
    pub fn prefetch_data(&self) {
        let head = self.head();
        let (start, len) = (head.data_start(), usize::from(head.data_len()));
        if 0 < len && len <= 3 * CACHE_LINE {
            // As mostly it begins with a line: the first, the second and the last, which may be the same.
            lines::prefetch(start, 1);
            lines::prefetch(start.wrapping_add(CACHE_LINE.min(len - 1)), 1);
            lines::prefetch(start.wrapping_add(len - 1), 1);
        } else {
            lines::prefetch(start, lines::of(start.addr(), len));
        }
    }

    /// The bytes of a packet that lies in one buffer of its own, and of which no tag was removed: what most packets are, found out sooner
    /// than by one question after the other.
    #[inline(always)]
    pub fn plain_data(&self) -> Option<&[u8]> {
        let odd = dpdk_sys::SHIM_MBUF_EXTERNAL | dpdk_sys::SHIM_RX_VLAN_STRIPPED | lend::in_one_flag();
        // SAFETY: neither lent nor external; the slice borrows `self`.
        (self.nb_segs() == 1 && self.flags() & odd == 0).then(|| unsafe { self.head().own_bytes() })
    }

    /// The bytes of the first segment, to be changed.
    #[inline]
    pub fn data_mut(&mut self) -> &mut [u8] {
        let head = self.head();
        // SAFETY: as in `Segment::bytes`; the slice borrows `self` exclusively.
        unsafe { std::slice::from_raw_parts_mut(head.data_start(), usize::from(head.data_len())) }
    }

    /// The bytes of the first segment and those free behind them, up to `room` together: who writes a little more than the packet has need
    /// not count to the byte.
    #[inline(always)]
    pub fn roomy_mut(&mut self, room: usize) -> &mut [u8] {
        let head = self.head();
        let room = room.min(usize::from(head.buf_len() - head.data_off()));
        // SAFETY: so many bytes from the data on lie in the buffer, are initialised (see the module), and are borrowed exclusively.
        unsafe { std::slice::from_raw_parts_mut(head.data_start(), room) }
    }

    /// The bytes of every segment in order.
    #[inline]
    pub fn segments(&self) -> Segments<'_> {
        Segments { next: Some(self.head()), chained: self.nb_segs() != 1, of: PhantomData }
    }

    /// Bytes in all segments together.
    #[inline]
    pub fn pkt_len(&self) -> usize {
        self.head().get::<u32>(dpdk_sys::SHIM_MBUF_PKT_LEN) as usize
    }

    /// Number of segments, at least 1.
    #[inline]
    pub fn nb_segs(&self) -> u16 {
        self.head().get(dpdk_sys::SHIM_MBUF_NB_SEGS)
    }

    /// Copies the packet's bytes from `offset` on into `to`, across segments. Returns how many there were.
    pub fn copy_to(&self, mut offset: usize, to: &mut [u8]) -> usize {
        let mut copied = 0;
        for bytes in self.segments() {
            let Some(bytes) = bytes.get(offset..) else {
                offset -= bytes.len();
                continue;
            };
            offset = 0;
            let n = bytes.len().min(to.len() - copied);
            to[copied..copied + n].copy_from_slice(&bytes[..n]);
            copied += n;
            if copied == to.len() {
                break;
            }
        }
        copied
    }

    /// Bytes free before the first segment's data: none where they describe what is lent.
    #[inline]
    pub fn headroom(&self) -> usize {
        if lend::is_in_one(self.head()) { 0 } else { usize::from(self.head().data_off()) }
    }

    /// Bytes free after the last segment's data.
    #[inline]
    pub fn tailroom(&self) -> usize {
        usize::from(self.last().tailroom())
    }

    /// Has the data of an empty buffer begin `offset` bytes behind the buffer's beginning, instead of the usual headroom. False,
    /// and no change, if there is data or the buffer is shorter.
    #[inline]
    #[must_use]
    pub fn begin_at(&mut self, offset: u16) -> bool {
        let head = self.head();
        if self.nb_segs() != 1 || self.pkt_len() != 0 || lend::is_in_one(head) || offset > head.buf_len() {
            return false;
        }
        head.set(dpdk_sys::SHIM_MBUF_DATA_OFF, offset);
        true
    }

    /// Lengthens the last segment by `n` bytes and returns them; they hold whatever was in the buffer.
    /// `None`, and no change, if they do not fit.
    #[inline]
    pub fn append(&mut self, n: usize) -> Option<&mut [u8]> {
        self.append_roomy(n, n)
    }

    /// The same, but with `room` bytes if those are more and the buffer has them: who writes a little more than he appended need
    /// not count to the byte.
    #[inline]
    pub fn append_roomy(&mut self, n: usize, room: usize) -> Option<&mut [u8]> {
        let last = self.last();
        let tailroom = usize::from(last.tailroom());
        if n > tailroom {
            return None;
        }
        let room = room.clamp(n, tailroom);
        let old = usize::from(last.data_len());
        // SAFETY: `old + room` bytes from the start lie in the buffer, as just checked.
        let start = unsafe { last.data_start().add(old) };
        last.set(dpdk_sys::SHIM_MBUF_DATA_LEN, (old + n) as u16);
        self.set_pkt_len(self.pkt_len() + n);
        // SAFETY: the bytes are in the buffer, initialised (see the module), and borrowed exclusively.
        Some(unsafe { std::slice::from_raw_parts_mut(start, room) })
    }

    /// Appends a copy of `bytes` to the last segment; false, and no change, if they do not fit.
    #[inline]
    #[must_use]
    pub fn extend_from_slice(&mut self, bytes: &[u8]) -> bool {
        self.append(bytes.len()).map(|room| room.copy_from_slice(bytes)).is_some()
    }

    /// Puts `n` bytes before the first segment's data and returns them; they hold whatever was in the buffer.
    /// `None`, and no change, if the headroom is smaller.
    #[inline]
    pub fn prepend(&mut self, n: usize) -> Option<&mut [u8]> {
        let head = self.head();
        if n > self.headroom() {
            return None;
        }
        head.set(dpdk_sys::SHIM_MBUF_DATA_OFF, head.data_off() - n as u16);
        head.set(dpdk_sys::SHIM_MBUF_DATA_LEN, head.data_len() + n as u16);
        self.set_pkt_len(self.pkt_len() + n);
        Some(&mut self.data_mut()[..n])
    }

    /// Drops `n` bytes from the start of the first segment; false, and no change, if it has fewer.
    #[inline]
    #[must_use]
    pub fn trim_front(&mut self, n: usize) -> bool {
        let head = self.head();
        if n > usize::from(head.data_len()) {
            return false;
        }
        head.set(dpdk_sys::SHIM_MBUF_DATA_OFF, head.data_off() + n as u16);
        head.set(dpdk_sys::SHIM_MBUF_DATA_LEN, head.data_len() - n as u16);
        self.set_pkt_len(self.pkt_len() - n);
        true
    }

    /// Drops `n` bytes from the end of the last segment; false, and no change, if it has fewer.
    #[inline]
    #[must_use]
    pub fn trim_back(&mut self, n: usize) -> bool {
        let last = self.last();
        if n > usize::from(last.data_len()) {
            return false;
        }
        last.set(dpdk_sys::SHIM_MBUF_DATA_LEN, last.data_len() - n as u16);
        self.set_pkt_len(self.pkt_len() - n);
        true
    }

    /// The byte at `offset` from the packet's start, in whatever segment, to be changed; none of lent ones.
    pub fn byte_mut(&mut self, mut offset: usize) -> Option<&mut u8> {
        let mut segment = self.head();
        loop {
            let len = usize::from(segment.data_len());
            if offset < len {
                if lend::is_lent(segment) {
                    return None;
                }
                // SAFETY: `offset` lies in the segment's data, which lies in its buffer.
                let byte = unsafe { segment.data_start().add(offset) };
                // SAFETY: the byte is initialised (see the module) and borrowed exclusively with `self`.
                return Some(unsafe { &mut *byte });
            }
            offset -= len;
            segment = segment.next()?;
        }
    }

    /// Drops what is beyond the first `len` bytes; nothing when there is no more. Segments that lose all stay in the
    /// chain, empty.
    pub fn truncate(&mut self, len: usize) {
        if len >= self.pkt_len() {
            return;
        }
        let (mut left, mut next) = (len, Some(self.head()));
        while let Some(segment) = next {
            let keep = left.min(usize::from(segment.data_len()));
            segment.set(dpdk_sys::SHIM_MBUF_DATA_LEN, keep as u16);
            left -= keep;
            next = segment.next();
        }
        self.set_pkt_len(len);
    }

    /// Makes one packet of two, without copying: `tail`'s segments follow `self`'s.
    pub fn chain(self, tail: Mbuf) -> Result<Mbuf, Box<ChainTooLong>> {
        // SAFETY: both are whole packets; on success the second belongs to the first.
        if unsafe { dpdk_sys::rte_pktmbuf_chain(self.0.as_ptr(), tail.0.as_ptr()) } != 0 {
            return Err(Box::new(ChainTooLong { head: self, tail }));
        }
        std::mem::forget(tail);
        Ok(self)
    }

    /// The port it was received on; meaningless for an allocated one.
    #[inline]
    pub fn port(&self) -> u16 {
        self.head().get(dpdk_sys::SHIM_MBUF_PORT)
    }

    /// The NIC's hash of the flow, if it delivered one.
    #[inline]
    pub fn rss_hash(&self) -> Option<u32> {
        let has = self.flags() & dpdk_sys::SHIM_RX_RSS_HASH != 0;
        has.then(|| self.head().get(dpdk_sys::SHIM_MBUF_HASH_RSS))
    }

    /// The tag control information of a VLAN tag that the NIC has removed from the packet, in CPU order.
    #[inline]
    pub fn stripped_vlan(&self) -> Option<u16> {
        let has = self.flags() & dpdk_sys::SHIM_RX_VLAN_STRIPPED != 0;
        has.then(|| self.head().get(dpdk_sys::SHIM_MBUF_VLAN_TCI))
    }

    /// Marks the packet as one whose tag was removed, as a NIC does that strips tags.
    pub fn set_stripped_vlan(&mut self, tci: u16) {
        self.head().set(dpdk_sys::SHIM_MBUF_VLAN_TCI, tci);
        self.head().set(dpdk_sys::SHIM_MBUF_OL_FLAGS, self.flags() | dpdk_sys::SHIM_RX_VLAN_STRIPPED);
    }

    /// The NIC's word on the IPv4 header checksum.
    #[inline]
    pub fn ip_checksum(&self) -> Checksum {
        match self.flags() & dpdk_sys::SHIM_RX_IP_CKSUM_MASK {
            dpdk_sys::SHIM_RX_IP_CKSUM_GOOD => Checksum::Good,
            dpdk_sys::SHIM_RX_IP_CKSUM_BAD => Checksum::Bad,
            _ => Checksum::Unknown,
        }
    }

    /// The NIC's word on the UDP or TCP checksum.
    #[inline]
    pub fn l4_checksum(&self) -> Checksum {
        match self.flags() & dpdk_sys::SHIM_RX_L4_CKSUM_MASK {
            dpdk_sys::SHIM_RX_L4_CKSUM_GOOD => Checksum::Good,
            dpdk_sys::SHIM_RX_L4_CKSUM_BAD => Checksum::Bad,
            _ => Checksum::Unknown,
        }
    }

    #[inline(always)]
    fn flags(&self) -> u64 {
        self.head().get(dpdk_sys::SHIM_MBUF_OL_FLAGS)
    }

    #[inline(always)]
    fn set_pkt_len(&mut self, len: usize) {
        self.head().set(dpdk_sys::SHIM_MBUF_PKT_LEN, len as u32);
    }
}

impl Drop for Mbuf {
    #[inline]
    fn drop(&mut self) {
        let mut raw = self.0.as_ptr();
        // SAFETY: the chain is ours and nobody uses it after this.
        unsafe { dpdk_sys::shim_free_bulk(&raw mut raw, 1, lend::in_one_flag()) };
    }
}

impl fmt::Debug for Mbuf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Mbuf({} bytes in {} segments)", self.pkt_len(), self.nb_segs())
    }
}

/// Iterator over a packet's segments, from [`Mbuf::segments`].
pub struct Segments<'a> {
    next: Option<Segment>,
    /// There is more than the first: only then a look at the second line of its description is worth it.
    chained: bool,
    of: PhantomData<&'a Mbuf>,
}

impl<'a> Iterator for Segments<'a> {
    type Item = &'a [u8];

    #[inline]
    fn next(&mut self) -> Option<&'a [u8]> {
        let segment = self.next?;
        self.next = if self.chained { segment.next() } else { None };
        // SAFETY: the segment belongs to the packet borrowed for 'a.
        Some(unsafe { segment.bytes() })
    }
}
