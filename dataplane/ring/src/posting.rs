//! A poster's turn.

use crate::ring::{Place, RUNG, Ring, TURN, place_of};
use std::fmt;
use std::sync::atomic::Ordering;

/// One poster's turn at a ring: places are filled one after the other, and published together. Dropped without
/// [`publish`](Self::publish), it has posted nothing.
pub struct Posting<'a, T> {
    ring: &'a Ring<T>,
    /// The ring's. Read there they would be read for each item: what is written into places might be they, as far as the compiler knows.
    places: &'a [Place<T>],
    depth: u32,
    /// Items posted when all places that were given out are published.
    posted: u32,
    released: u32,
}

impl<'a, T> Posting<'a, T> {
    /// For whoever has the turn.
    #[inline]
    pub(crate) fn new(ring: &'a Ring<T>) -> Self {
        let posters = &ring.posters.0;
        Posting {
            ring,
            places: &posters.places,
            depth: posters.depth,
            posted: posters.posted.load(Ordering::Relaxed),
            released: posters.released_seen.load(Ordering::Relaxed),
        }
    }

    /// The next place, which holds whatever it held before; `None` when the ring is full.
    #[inline(always)]
    pub fn place(&mut self) -> Option<&mut T> {
        if self.posted.wrapping_sub(self.released) >= self.depth {
            self.released = look_for_room(self.ring);
            if self.posted.wrapping_sub(self.released) >= self.depth {
                return None;
            }
        }
        let place = place_of(self.places, self.posted);
        self.posted = self.posted.wrapping_add(1);
        // SAFETY: this thread has the turn, so no other posts. The place lies outside of `released` up to `posted` as the taker
        // knows them: fewer than `depth` items are there, and there are at least `depth` places. So the taker does not touch it;
        // its last touch came before it stored the `released` that was seen here, by an acquire load of this thread or of one that
        // had the turn before. The reference ends before the next call on this turn, and `publish` and drop take the turn itself.
        Some(unsafe { &mut *place.0.get() })
    }

    /// Gives all places that were filled to the taker, and rings. True when the bell was not rung already: then the taker has to be
    /// told.
    #[inline]
    pub fn publish(self) -> bool {
        let posters = &self.ring.posters.0;
        // Release: what is in the places is there before the taker can see that they are filled.
        posters.posted.store(self.posted, Ordering::Release);
        // The swap ends the turn.
        std::mem::forget(self);
        // Release: the next poster finds what this one has left; and the taker, if its answer comes later, what is published.
        posters.turn.swap(RUNG, Ordering::AcqRel) & RUNG == 0
    }
}

/// Items released. For whoever has the turn. (A turn whose address a call has is no longer in registers.)
#[cold]
fn look_for_room<T>(ring: &Ring<T>) -> u32 {
    // Acquire: the taker is done with what it has released.
    let released = ring.taker.0.released.load(Ordering::Acquire);
    ring.posters.0.released_seen.store(released, Ordering::Relaxed);
    released
}

impl<T> fmt::Debug for Posting<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Posting").field("posted", &self.posted).finish_non_exhaustive()
    }
}

impl<T> Drop for Posting<'_, T> {
    fn drop(&mut self) {
        self.ring.posters.0.turn.fetch_and(!TURN, Ordering::Release);
    }
}
