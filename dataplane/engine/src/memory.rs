//! The engine's view of registered memory: checked spans, and the copies that someone else performs.
//!
//! A [`Span`] names bytes inside one registered region. Only a key check ([`crate::mr`]) makes one, so whoever holds a
//! span was allowed to touch those bytes when it was made. The implementer of [`Memory`] still bounds each copy by the
//! region itself and answers [`RegionGone`] once the region was deregistered: a stale span is an error, never a wild
//! pointer.

/// Names a region inside a [`Memory`]. A number is never used again for another region.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RegionId {
    /// Index in the implementer's table.
    pub slot: u32,
    /// Counts how often the slot was used.
    pub generation: u32,
}

/// `len` bytes from `offset` inside a region. Made by key checks only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    region: RegionId,
    offset: u64,
    len: u32,
}

impl Span {
    /// No bytes of no region.
    pub(crate) const EMPTY: Span = Span { region: RegionId { slot: 0, generation: 0 }, offset: 0, len: 0 };

    /// Made by a key check, and by tests of a [`Memory`].
    pub fn new(region: RegionId, offset: u64, len: u32) -> Self {
        Span { region, offset, len }
    }

    /// The region.
    pub fn region(self) -> RegionId {
        self.region
    }

    /// First byte, counted from the start of the region.
    pub fn offset(self) -> u64 {
        self.offset
    }

    /// Bytes.
    // A span is a length, not a container: an empty one is an ordinary value.
    #[allow(clippy::len_without_is_empty)]
    pub fn len(self) -> u32 {
        self.len
    }

    /// `len` bytes from `at` of this span; `None` when that is not inside it.
    #[inline(always)]
    pub fn slice(self, at: u32, len: u32) -> Option<Span> {
        let end = at.checked_add(len)?;
        (end <= self.len).then(|| Span { region: self.region, offset: self.offset + u64::from(at), len })
    }
}

/// Bytes of one region, perhaps more than a message can have: what a FLUSH is about. Made by key checks only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    region: RegionId,
    offset: u64,
    len: u64,
}

impl Extent {
    /// Made by a key check, and by tests of a [`Memory`].
    pub fn new(region: RegionId, offset: u64, len: u64) -> Self {
        Extent { region, offset, len }
    }

    /// The region.
    pub fn region(self) -> RegionId {
        self.region
    }

    /// First byte, counted from the start of the region.
    pub fn offset(self) -> u64 {
        self.offset
    }

    /// Bytes.
    #[allow(clippy::len_without_is_empty)]
    pub fn len(self) -> u64 {
        self.len
    }
}

impl From<Span> for Extent {
    fn from(span: Span) -> Self {
        Extent { region: span.region, offset: span.offset, len: span.len.into() }
    }
}

/// The region of a span was deregistered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the memory region was deregistered")]
pub struct RegionGone;

/// Why a payload was not placed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlaceError {
    /// Where it belongs is no more.
    #[error(transparent)]
    Gone(#[from] RegionGone),
    /// Held bytes are not those that their sender summed: as if the packet had not come.
    #[error("the payload is not what its sender has summed")]
    Spoilt,
}

/// Why bytes were not made persistent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PersistError {
    /// The region was deregistered.
    #[error(transparent)]
    Gone(#[from] RegionGone),
    /// Nothing in this memory survives a loss of power.
    #[error("the memory cannot persist")]
    Volatile,
    /// What is below the memory failed: a disk error, a file system that is full.
    #[error("the storage below the memory failed")]
    Failed,
}

/// Registered memory. The application may write it at any moment, so nothing here hands out references.
pub trait Memory {
    /// Copies registered bytes out. `dst` is as long as the span.
    fn read(&self, src: Span, dst: &mut [u8]) -> Result<(), RegionGone>;
    /// Copies bytes in, the tail last: programs poll the last byte. `src` is as long as the span.
    fn write(&self, dst: Span, src: &[u8]) -> Result<(), RegionGone>;
    /// Copies in the next `dst.len()` bytes of the payload that is held for the packet at hand
    /// ([`Payload::held`](crate::Payload::held)), the tail last. Whoever places the last of them learns whether all are what
    /// their sender summed; if not, the tail is not written. A memory for which nobody holds anything has none.
    ///
    /// `follows` is how many bytes behind `dst` the same message is going to fill, or may: they can be asked for before their packets are here.
    fn write_held(&self, _dst: Span, _follows: u32) -> Result<(), PlaceError> {
        Err(RegionGone.into())
    }
    /// Adds to the aligned 8 bytes at the span (host order) and returns what was there.
    fn fetch_add(&self, at: Span, add: u64) -> Result<u64, RegionGone>;
    /// Stores `swap` at the span if it holds `compare`, and returns what was there.
    fn compare_swap(&self, at: Span, compare: u64, swap: u64) -> Result<u64, RegionGone>;
    /// Stores these 8 bytes at the span at once, in the order they have: whoever reads the word sees all or nothing of it.
    /// The span is 8 bytes, aligned.
    fn store(&self, at: Span, bytes: [u8; 8]) -> Result<(), RegionGone>;
    /// Everyone who may read these bytes sees from now on what was written to them before (FLUSH to global visibility).
    fn make_visible(&self, what: Extent) -> Result<(), RegionGone>;
    /// These bytes, as they were written before, survive a loss of power from now on (FLUSH to persistence). It may take as
    /// long as the storage does. Memory that cannot do it says so.
    fn persist(&self, what: Extent) -> Result<(), PersistError>;
    /// Makes earlier writes of this core visible before later ones (a completion may follow).
    fn publish(&self) {}
}
