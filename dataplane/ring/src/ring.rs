//! The ring itself: places, counters, and the word of turns.

use crate::ahead::fetch;
use crate::posting::Posting;
use std::cell::UnsafeCell;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

/// Bits of the word of turns: a poster has its turn.
pub(crate) const TURN: u32 = 1;
/// The bell was rung and is not answered.
pub(crate) const RUNG: u32 = 2;

/// How often a poster looks at a turn that another has before it lets other threads run.
const LOOKS: u32 = 128;

/// A ring of places that each hold a `T`, filled again and again.
pub struct Ring<T> {
    pub(crate) posters: Line<Posters<T>>,
    pub(crate) taker: Line<Taken>,
}

/// A place for an item. It begins a cache line: an item touches no more of them than it has to, and none of its neighbour's, which may be in
/// other hands.
#[repr(align(64))]
pub(crate) struct Place<T>(pub UnsafeCell<T>);

/// A cache line of its own.
#[repr(align(64))]
pub(crate) struct Line<T>(pub T);

/// What posters need: one line of many rings is all that a post has to fetch besides its places.
pub(crate) struct Posters<T> {
    /// A power of two of them. The taker has them too, and does not look here for them.
    pub places: Arc<[Place<T>]>,
    pub depth: u32,
    pub turn: AtomicU32,
    /// Items posted so far. Written by whoever has the turn.
    pub posted: AtomicU32,
    /// The taker's count of released items, as a poster saw it last: often that is all that a poster needs. For whoever has the turn.
    pub released_seen: AtomicU32,
}

/// What the taker writes.
pub(crate) struct Taken {
    /// There is a taker.
    pub claimed: AtomicBool,
    pub taken: AtomicU32,
    /// Items whose places are free again.
    pub released: AtomicU32,
}

// SAFETY: a place is reached in two ways. A `Posting` has the turn, which one thread has at a time, and reaches places that are not
// from `released` up to `posted`; the one `Taker` reaches those that are. Each gives places to the other by a release store that the
// other's acquire load sees, of `posted` and `released`. So no place is reached by two threads at a time, and what is in it may go
// from thread to thread, as `T: Send` allows.
unsafe impl<T: Send> Sync for Place<T> {}

/// The place of an item, by its number.
#[inline]
pub(crate) fn place_of<T>(places: &[Place<T>], number: u32) -> &Place<T> {
    &places[number as usize & (places.len() - 1)]
}

impl<T> Ring<T> {
    /// A ring for `depth` items (at least one), in places that hold what `make` makes until they are filled.
    pub fn new(depth: u32, make: impl FnMut() -> T) -> Ring<T> {
        // Counters wrap at 2^32, so the number of places has to be a power of two, below half of that.
        let depth = depth.clamp(1, 1 << 30);
        let places = depth.next_power_of_two();
        let items = std::iter::repeat_with(make).map(|item| Place(UnsafeCell::new(item)));
        Ring {
            posters: Line(Posters {
                places: items.take(places as usize).collect(),
                depth,
                turn: AtomicU32::new(0),
                posted: AtomicU32::new(0),
                released_seen: AtomicU32::new(0),
            }),
            taker: Line(Taken {
                claimed: AtomicBool::new(false),
                taken: AtomicU32::new(0),
                released: AtomicU32::new(0),
            }),
        }
    }

    /// Items that fit, from post to release.
    pub fn depth(&self) -> u32 {
        self.posters.0.depth
    }

    /// Places: as many as the depth, or more.
    pub fn places(&self) -> usize {
        self.posters.0.places.len()
    }

    /// Bytes that it takes: places and counters.
    pub fn bytes(&self) -> usize {
        size_of_val(self) + size_of_val(&*self.posters.0.places)
    }

    /// Posted and not released.
    pub fn outstanding(&self) -> u32 {
        // In this order: the counter that may not be overtaken first.
        let released = self.taker.0.released.load(Ordering::Acquire);
        self.posters.0.posted.load(Ordering::Acquire).wrapping_sub(released)
    }

    /// Posted and not taken.
    pub fn waiting(&self) -> u32 {
        let taken = self.taker.0.taken.load(Ordering::Acquire);
        self.posters.0.posted.load(Ordering::Acquire).wrapping_sub(taken)
    }

    /// Asks for the lines of a post's next `count` places, and for what it needs of the ring.
    #[inline]
    pub fn fetch_posting(&self, count: u32) {
        fetch(&self.taker);
        let Posters { places, posted, .. } = &self.posters.0;
        // Where they lie a moment later does not matter much.
        let begin = posted.load(Ordering::Relaxed);
        for number in 0..count.min(places.len() as u32) {
            fetch(place_of(places, begin.wrapping_add(number)));
        }
    }

    /// A poster's turn, waiting while another thread has it. A thread that has the turn must not ask for another.
    #[inline]
    pub fn post(&self) -> Posting<'_, T> {
        // Acquire: what the poster before has left, places and counters, is there.
        while self.posters.0.turn.fetch_or(TURN, Ordering::Acquire) & TURN != 0 {
            self.await_turn();
        }
        Posting::new(self)
    }

    #[cold]
    fn await_turn(&self) {
        let mut looks = 0;
        while self.posters.0.turn.load(Ordering::Relaxed) & TURN != 0 {
            looks += 1;
            if looks % LOOKS == 0 { std::thread::yield_now() } else { std::hint::spin_loop() }
        }
    }

    /// Rings the bell without posting; true when it was not rung already.
    pub fn ring(&self) -> bool {
        self.posters.0.turn.fetch_or(RUNG, Ordering::AcqRel) & RUNG == 0
    }

    /// Answers the bell. The taker's side, before it looks: what is posted later rings again.
    pub fn answer(&self) {
        self.posters.0.turn.fetch_and(!RUNG, Ordering::AcqRel);
    }
}

impl<T> fmt::Debug for Ring<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (waiting, outstanding) = (self.waiting(), self.outstanding());
        let mut debug = f.debug_struct("Ring");
        debug.field("depth", &self.depth()).field("waiting", &waiting).field("outstanding", &outstanding);
        debug.finish_non_exhaustive()
    }
}
