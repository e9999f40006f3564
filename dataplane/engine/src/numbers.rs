//! A map from 24-bit numbers (QPNs, key indices, SRQNs), looked up several times a packet.
//!
//! Open addressing with linear probing, at most half full: a number that is there is found in its first place mostly, in one cache line.
//! The numbers are our own, and random; which of them a peer asks for does not matter, as no chain is long.

use std::num::NonZeroU32;

/// A slot in a table, below 2^32 − 1. Of these, eight places of a map lie in a cache line: of thousands, few are in a cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Slot(NonZeroU32);

impl Slot {
    /// A slot by its number.
    pub fn new(number: u32) -> Option<Slot> {
        number.checked_add(1).and_then(NonZeroU32::new).map(Slot)
    }

    /// Its number.
    #[inline]
    pub fn number(self) -> u32 {
        self.0.get() - 1
    }
}

const _: () = assert!(size_of::<Place<Slot>>() == 8);

/// What lies in a place.
#[derive(Debug)]
struct Place<V> {
    number: u32,
    value: Option<V>,
}

/// A map from numbers. It grows on insertion only.
#[derive(Debug)]
pub(crate) struct NumberMap<V> {
    /// A power of two of them, the half of them empty at least.
    places: Box<[Place<V>]>,
    len: usize,
}

impl<V> Default for NumberMap<V> {
    fn default() -> Self {
        NumberMap::with_capacity(0)
    }
}

impl<V> NumberMap<V> {
    /// A map with room for `capacity` numbers before it grows.
    pub fn with_capacity(capacity: usize) -> Self {
        let places = (2 * capacity).next_power_of_two().max(4);
        let empty = || Place { number: 0, value: None };
        NumberMap { places: std::iter::repeat_with(empty).take(places).collect(), len: 0 }
    }

    /// Numbers in the map.
    pub fn len(&self) -> usize {
        self.len
    }

    /// The value of a number.
    #[inline]
    pub fn get(&self, number: u32) -> Option<&V> {
        let mut at = self.home(number);
        loop {
            let place = &self.places[at & (self.places.len() - 1)];
            match &place.value {
                Some(value) if place.number == number => return Some(value),
                Some(_) => at += 1,
                None => return None,
            }
        }
    }

    /// Asks for what looking a number up needs.
    #[inline]
    pub fn fetch(&self, number: u32) {
        ring::fetch(&self.places[self.home(number) & (self.places.len() - 1)]);
    }

    /// Gives a number a value; the one before comes back.
    pub fn insert(&mut self, number: u32, value: V) -> Option<V> {
        if 2 * (self.len + 1) > self.places.len() {
            self.grow();
        }
        let at = self.find(number);
        let before = self.places[at].value.replace(value);
        self.places[at].number = number;
        self.len += usize::from(before.is_none());
        before
    }

    /// Takes a number out.
    pub fn remove(&mut self, number: u32) -> Option<V> {
        let mask = self.places.len() - 1;
        let mut gap = self.find(number);
        let value = self.places[gap].value.take()?;
        self.len -= 1;
        // Those behind, up to the next empty place, move up where the gap lies between their home and them.
        let mut at = (gap + 1) & mask;
        while self.places[at].value.is_some() {
            let home = self.home(self.places[at].number) & mask;
            if (at.wrapping_sub(home) & mask) >= (at.wrapping_sub(gap) & mask) {
                self.places.swap(gap, at);
                gap = at;
            }
            at = (at + 1) & mask;
        }
        Some(value)
    }

    /// All values.
    pub fn values(&self) -> impl Iterator<Item = &V> {
        self.places.iter().filter_map(|place| place.value.as_ref())
    }

    /// Where a number lies, or may be put.
    fn find(&self, number: u32) -> usize {
        let mask = self.places.len() - 1;
        let mut at = self.home(number) & mask;
        while self.places[at].value.is_some() && self.places[at].number != number {
            at = (at + 1) & mask;
        }
        at
    }

    /// Where the search for a number begins, but for the mask. Numbers of tests and of programs that count are spread, too.
    #[inline]
    fn home(&self, number: u32) -> usize {
        (u64::from(number).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 40) as usize
    }

    fn grow(&mut self) {
        let mut larger = NumberMap::with_capacity(self.places.len());
        for place in std::mem::take(&mut self.places) {
            if let Some(value) = place.value {
                larger.insert(place.number, value);
            }
        }
        *self = larger;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashMap;

    proptest! {
        /// The map agrees with the standard one, whatever comes and goes; numbers collide, and chains run over the end.
        #[test]
        fn agrees_with_a_hash_map(steps in proptest::collection::vec((0u8..3, 0u32..40, any::<u16>()), 0..400)) {
            let mut map = NumberMap::with_capacity(2);
            let mut model = HashMap::new();
            for (what, number, value) in steps {
                match what {
                    0 => prop_assert_eq!(map.remove(number), model.remove(&number)),
                    _ => prop_assert_eq!(map.insert(number, value), model.insert(number, value)),
                }
                prop_assert_eq!(map.len(), model.len());
                for number in 0..40 {
                    // Asking ahead changes nothing, whether it is there or not.
                    map.fetch(number);
                    prop_assert_eq!(map.get(number), model.get(&number));
                }
                let (mut all, mut right): (Vec<u16>, Vec<u16>) =
                    (map.values().copied().collect(), model.values().copied().collect());
                all.sort_unstable();
                right.sort_unstable();
                prop_assert_eq!(all, right);
            }
        }
    }

    #[test]
    fn a_slot_is_the_number_that_it_was_made_of() {
        for number in [0, 1, 65_535, u32::MAX - 1] {
            assert_eq!(Slot::new(number).map(Slot::number), Some(number));
        }
        assert_eq!(Slot::new(u32::MAX), None);
    }

    #[test]
    fn a_map_of_its_capacity_does_not_grow() {
        let mut map = NumberMap::with_capacity(1000);
        let places = map.places.len();
        assert!((0..1000).all(|number| map.insert(number * 7919, number).is_none()));
        assert_eq!((map.places.len(), map.len()), (places, 1000));
        assert!((0..1000).all(|number| map.get(number * 7919) == Some(&number)));
    }
}
