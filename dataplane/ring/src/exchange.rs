//! A bounded queue between many and many: completions, which queue pairs of several workers add and several threads take.
//!
//! Both sides move any number of items for the price of one: who adds or takes, claims so many places by one atomic operation on
//! its side's counter, and then fills or empties them one by one. Each place has a number that says whose it is:
//!
//! | number of a place | it is |
//! | --- | --- |
//! | *n* | empty, for the *n*th item |
//! | *n* + 1 | filled with the *n*th item |
//!
//! Claims are made only of places that are ready, so nobody who has claimed some waits for another. A thread that is suspended
//! between its claim and its last item keeps those behind it from being seen, and when the queue has gone round, from being
//! added.

use crate::fetch;
use crate::ring::Line;
use std::cell::UnsafeCell;
use std::fmt;
use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicU64, Ordering};

/// A queue of items that are copied in and out.
pub struct Exchange<T> {
    places: Box<[Place<T>]>,
    mask: u64,
    capacity: u64,
    /// Items for which a place was claimed by those who add.
    added: Line<AtomicU64>,
    /// Items that were claimed by those who take.
    taken: Line<AtomicU64>,
}

struct Place<T> {
    number: AtomicU64,
    item: UnsafeCell<MaybeUninit<T>>,
}

// SAFETY: an item is reached by two threads only one after the other: the one that has claimed its place to add, and the one that has
// claimed it to take. Each gives it on by a release store of the place's number, which the other has seen by an acquire load before its
// claim. Items may go from thread to thread, as `T: Send` allows.
unsafe impl<T: Send> Sync for Exchange<T> {}

impl<T: Copy> Exchange<T> {
    /// A queue for `capacity` items, at least one.
    pub fn new(capacity: usize) -> Exchange<T> {
        let capacity = capacity.max(1);
        let places = capacity.next_power_of_two() as u64;
        let place =
            |number| Place { number: AtomicU64::new(number), item: UnsafeCell::new(MaybeUninit::uninit()) };
        Exchange {
            places: (0..places).map(place).collect(),
            mask: places - 1,
            capacity: capacity as u64,
            added: Line(AtomicU64::new(0)),
            taken: Line(AtomicU64::new(0)),
        }
    }

    /// Items that fit.
    pub fn capacity(&self) -> usize {
        self.capacity as usize
    }

    /// Items added and not taken.
    pub fn len(&self) -> usize {
        // In this order: the counter that may not be overtaken first.
        let taken = self.taken.0.load(Ordering::Acquire);
        self.added.0.load(Ordering::Acquire).wrapping_sub(taken).min(self.capacity) as usize
    }

    /// Nothing can be taken.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.ready(self.taken.0.load(Ordering::Acquire), 1, 1) == 0
    }

    /// Adds items, the first of them first and one behind the other, as far as there are places at the moment; returns how many.
    /// Ask again for the rest: only 0 means that the queue is full.
    #[inline]
    pub fn add(&self, items: &[T]) -> usize {
        loop {
            let begin = self.added.0.load(Ordering::Relaxed);
            // More than fit when others have added and taken since: then the claim fails, and this is done again.
            let used = begin.wrapping_sub(self.taken.0.load(Ordering::Acquire));
            let room = if used > self.capacity { self.capacity } else { self.capacity - used };
            let wanted = room.min(items.len() as u64);
            if wanted == 0 {
                return 0;
            }
            let count = self.ready(begin, 0, wanted);
            if count == 0 {
                // Somebody has claimed the next place to take, and is about to empty it.
                std::hint::spin_loop();
            } else if claim(&self.added.0, begin, count) {
                for (n, item) in (begin..).zip(&items[..count as usize]) {
                    let place = self.place(n);
                    // SAFETY: this thread has claimed the place, which was empty, and nobody else reaches it before the store below.
                    unsafe { (*place.item.get()).write(*item) };
                    // Release: the item is there before anybody finds the place filled.
                    place.number.store(n + 1, Ordering::Release);
                    // As many are added next, as likely as not.
                    fetch(self.place(n + count));
                }
                return count as usize;
            }
        }
    }

    /// Takes up to `most` items, the oldest first, and gives them to `with`; returns how many.
    #[inline]
    pub fn take(&self, most: usize, mut with: impl FnMut(T)) -> usize {
        loop {
            let begin = self.taken.0.load(Ordering::Relaxed);
            let count = self.ready(begin, 1, most as u64);
            if count == 0 {
                if self.taken.0.load(Ordering::Relaxed) == begin {
                    return 0;
                }
            } else if claim(&self.taken.0, begin, count) {
                for n in begin..begin + count {
                    let place = self.place(n);
                    // SAFETY: this thread has claimed the place, which was filled: there is an item, and nobody else reaches it before
                    // the store below.
                    let item = unsafe { (*place.item.get()).assume_init_read() };
                    // Release: it is read before anybody finds the place empty.
                    place.number.store(n + self.places.len() as u64, Ordering::Release);
                    with(item);
                }
                return count as usize;
            }
        }
    }

    /// How many places from the `begin`th on, `most` of them at most, are empty (`filled` is 0) or filled (1).
    #[inline]
    fn ready(&self, begin: u64, filled: u64, most: u64) -> u64 {
        // Acquire: whoever had the place before is done with it.
        let is_ready = |n: &u64| self.place(begin + n).number.load(Ordering::Acquire) == begin + n + filled;
        (0..most).take_while(is_ready).count() as u64
    }

    #[inline]
    fn place(&self, number: u64) -> &Place<T> {
        &self.places[(number & self.mask) as usize]
    }
}

/// Claims `count` places from the `begin`th on, if nobody has claimed any since `begin` was read. That is all that threads have to agree
/// on here: what is in the places goes along with their numbers.
#[inline]
fn claim(counter: &AtomicU64, begin: u64, count: u64) -> bool {
    counter.compare_exchange_weak(begin, begin + count, Ordering::Relaxed, Ordering::Relaxed).is_ok()
}

impl<T: Copy> fmt::Debug for Exchange<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = f.debug_struct("Exchange");
        debug.field("capacity", &self.capacity).field("len", &self.len()).finish_non_exhaustive()
    }
}
