//! The taker's side.

use crate::ahead::fetch;
use crate::ring::{Place, Ring, place_of};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// The one taker of a ring's items. It may go from thread to thread.
pub struct Taker<T> {
    ring: Arc<Ring<T>>,
    /// The ring's: here they are not in a line that posters write.
    places: Arc<[Place<T>]>,
    taken: u32,
    released: u32,
    /// Items posted, as seen last.
    posted: u32,
}

impl<T> Taker<T> {
    /// Becomes the taker of a ring; `None` while there is another. It begins where the one before has ended, and what that one has
    /// taken and not released is released.
    pub fn new(ring: &Arc<Ring<T>>) -> Option<Taker<T>> {
        // Acquire: the one before has left by a release store.
        if ring.taker.0.claimed.swap(true, Ordering::Acquire) {
            return None;
        }
        let taken = ring.taker.0.taken.load(Ordering::Relaxed);
        ring.taker.0.released.store(taken, Ordering::Release);
        let (ring, places) = (Arc::clone(ring), Arc::clone(&ring.posters.0.places));
        Some(Taker { ring, places, taken, released: taken, posted: taken })
    }

    /// The ring.
    pub fn ring(&self) -> &Arc<Ring<T>> {
        &self.ring
    }

    /// Something waits to be taken.
    #[inline]
    pub fn has_waiting(&self) -> bool {
        self.has_seen() || self.look() != self.taken
    }

    /// Items posted. Acquire: what is in the places is there.
    #[inline]
    fn look(&self) -> u32 {
        self.ring.posters.0.posted.load(Ordering::Acquire)
    }

    /// Takes the oldest item that was not taken, to be read where it lies. Its place stays occupied until it is
    /// [released](Self::release).
    #[inline]
    pub fn take(&mut self) -> Option<&mut T> {
        if self.taken == self.posted {
            self.posted = self.look();
            if self.taken == self.posted {
                return None;
            }
        }
        let place = place_of(&self.places, self.taken);
        self.taken = self.taken.wrapping_add(1);
        self.ring.taker.0.taken.store(self.taken, Ordering::Relaxed);
        // SAFETY: there is one taker, and this is it. The place lies between `released` and `posted` as posters know them, so no
        // poster touches it; the last touch came before the store of `posted` that was seen here. The reference ends before the
        // next call on this taker, and only `release` moves `released`.
        Some(unsafe { &mut *place.0.get() })
    }

    /// The item that comes `ahead` items after the oldest that was not taken, and stays so: to be read where it lies, and
    /// [passed](Self::pass) when nothing more is needed of it.
    #[inline(always)]
    pub fn peek(&mut self, ahead: u32) -> Option<&T> {
        if ahead >= self.seen() {
            self.posted = self.look();
            if ahead >= self.seen() {
                return None;
            }
        }
        // SAFETY: as for `take`: this place, too, lies between `released` and `posted`. The item is only read, and the reference ends
        // before the next call on this taker.
        Some(unsafe { &*place_of(&self.places, self.taken.wrapping_add(ahead)).0.get() })
    }

    /// Takes the oldest item that was not taken if it was seen before, and `is_so` says so: as [`take`](Self::take) does, but who posts
    /// meanwhile is not looked for.
    #[inline(always)]
    pub fn take_seen(&mut self, is_so: impl FnOnce(&T) -> bool) -> Option<&mut T> {
        if self.taken == self.posted {
            return None;
        }
        let place = place_of(&self.places, self.taken);
        // SAFETY: as for `take`; until `taken` moves on the item is only read.
        if !is_so(unsafe { &*place.0.get() }) {
            return None;
        }
        self.taken = self.taken.wrapping_add(1);
        self.ring.taker.0.taken.store(self.taken, Ordering::Relaxed);
        // SAFETY: as for `take`. The reference before has ended.
        Some(unsafe { &mut *place.0.get() })
    }

    /// Takes the oldest `count` items, which were [looked at](Self::peek), and releases them at once.
    ///
    /// # Panics
    /// When there are fewer, or others are held, whose places are not to be given back.
    #[inline(always)]
    pub fn pass(&mut self, count: u32) {
        assert!(count <= self.seen() && self.held() == 0, "{count} items cannot be passed");
        self.taken = self.taken.wrapping_add(count);
        self.released = self.taken;
        self.ring.taker.0.taken.store(self.taken, Ordering::Relaxed);
        // Release: as in `release`.
        self.ring.taker.0.released.store(self.released, Ordering::Release);
    }

    /// The number of the next item to be taken: items are counted modulo 2^32.
    #[inline]
    pub fn taken(&self) -> u32 {
        self.taken
    }

    /// The number of the oldest item that is held; of the next one when none is.
    #[inline]
    pub fn released(&self) -> u32 {
        self.released
    }

    /// A held item, by its number.
    ///
    /// # Panics
    /// When it is not held.
    #[inline]
    pub fn get(&self, number: u32) -> &T {
        let place = self.held_place(number);
        // SAFETY: the place is held, so no poster touches it, and this is the one taker. Nothing changes the item or gives its place
        // back while this reference borrows the taker.
        unsafe { &*place.0.get() }
    }

    /// The same, to be changed.
    ///
    /// # Panics
    /// When it is not held.
    #[inline]
    pub fn get_mut(&mut self, number: u32) -> &mut T {
        let place = self.held_place(number);
        // SAFETY: as for `get`; and the reference borrows the taker alone.
        unsafe { &mut *place.0.get() }
    }

    #[inline]
    fn held_place(&self, number: u32) -> &Place<T> {
        // Beyond that a place is the posters'.
        assert!(number.wrapping_sub(self.released) < self.held(), "item {number} is not held");
        place_of(&self.places, number)
    }

    /// Asks for the lines of held items, the `most` from `number` on.
    #[inline]
    pub fn fetch_held(&self, number: u32, most: u32) {
        for ahead in 0..self.taken.wrapping_sub(number).min(self.held()).min(most) {
            fetch(place_of(&self.places, number.wrapping_add(ahead)));
        }
    }

    /// Asks for what has to be looked at to see what was posted.
    #[inline]
    pub fn fetch_posted(&self) {
        fetch(&self.ring.posters);
    }

    /// Asks for the places of the next `count` items.
    #[inline]
    pub fn fetch_next(&self, count: u32) {
        for number in 0..count.min(self.places.len() as u32) {
            fetch(place_of(&self.places, self.taken.wrapping_add(number)));
        }
    }

    /// Asks for the item that comes after so many others, if it was seen: a poster may be busy with one that was not.
    #[inline(always)]
    pub fn fetch_later(&self, others: u32) {
        if others < self.seen() {
            fetch(place_of(&self.places, self.taken.wrapping_add(others)));
        }
    }

    /// Asks for what taking the next `count` items and releasing them needs.
    #[inline]
    pub fn fetch_take(&self, count: u32) {
        self.fetch_next(count);
        fetch(&self.ring.taker);
        if !self.has_seen() {
            self.fetch_posted();
        }
    }

    /// Items were posted and not taken when this was last looked at.
    #[inline]
    pub fn has_seen(&self) -> bool {
        self.taken != self.posted
    }

    /// How many those are.
    #[inline(always)]
    fn seen(&self) -> u32 {
        self.posted.wrapping_sub(self.taken)
    }

    /// Items taken and not released.
    #[inline]
    pub fn held(&self) -> u32 {
        self.taken.wrapping_sub(self.released)
    }

    /// Gives the places of the oldest `count` items back to the posters.
    ///
    /// # Panics
    /// When fewer are held.
    #[inline]
    pub fn release(&mut self, count: u32) {
        // Beyond that a place would be the posters' and the taker's.
        assert!(count <= self.held(), "{count} released of {}", self.held());
        self.released = self.released.wrapping_add(count);
        // Release: this side is done with the places before a poster can have them.
        self.ring.taker.0.released.store(self.released, Ordering::Release);
    }
}

impl<T> fmt::Debug for Taker<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = f.debug_struct("Taker");
        debug.field("taken", &self.taken).field("released", &self.released).finish_non_exhaustive()
    }
}

impl<T> Drop for Taker<T> {
    fn drop(&mut self) {
        self.ring.taker.0.claimed.store(false, Ordering::Release);
    }
}
