//! Numbers from the seed.

use std::hash::{DefaultHasher, Hasher};

/// A stream of numbers: a keyed hash of a count, so that whoever has seen some of them cannot tell the next.
#[derive(Debug)]
pub(crate) struct Random {
    seed: [u8; 32],
    count: u64,
}

impl Random {
    pub fn new(seed: [u8; 32]) -> Random {
        Random { seed, count: 0 }
    }

    pub fn next(&mut self) -> u64 {
        self.count += 1;
        let mut hasher = DefaultHasher::new();
        hasher.write(&self.seed);
        hasher.write_u64(self.count);
        hasher.finish()
    }

    /// Never 0, which stands for no ID.
    pub fn next_id(&mut self) -> u32 {
        loop {
            let id = (self.next() >> 32) as u32;
            if id != 0 {
                return id;
            }
        }
    }
}
