//! How many receives an SRQ holds, and the number below which it has to be said (rocev2 facts, transport section 17).
//!
//! Both lie in one word, so that posters, responders of several workers and whoever arms the limit agree on one order of what
//! they did: of all that take receives, exactly one sees the number fall below an armed limit.

use std::sync::atomic::{AtomicU64, Ordering};

/// Receives in the low half, the armed limit (0: none) in the high half.
#[derive(Debug)]
pub(super) struct Level(AtomicU64);

/// A level at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Word {
    posted: u32,
    limit: u32,
}

impl Word {
    fn unpack(word: u64) -> Word {
        Word { posted: word as u32, limit: (word >> 32) as u32 }
    }

    fn pack(self) -> u64 {
        u64::from(self.limit) << 32 | u64::from(self.posted)
    }

    /// Disarmed, if the limit is reached.
    fn told(self) -> Word {
        if self.posted < self.limit { Word { limit: 0, ..self } } else { self }
    }
}

impl Level {
    pub fn new(limit: u32) -> Level {
        Level(AtomicU64::new(Word { posted: 0, limit }.pack()))
    }

    /// Receives posted and not taken.
    pub fn posted(&self) -> u32 {
        Word::unpack(self.0.load(Ordering::Acquire)).posted
    }

    /// The armed limit; 0 when none is.
    pub fn limit(&self) -> u32 {
        Word::unpack(self.0.load(Ordering::Acquire)).limit
    }

    /// Sets the limit for the next event; 0 for none.
    pub fn arm(&self, limit: u32) {
        self.update(|word| Some(Word { limit, ..word }));
    }

    /// Makes room for one receive among `most`; false when there is none. Called before the receive is pushed, so the ring never
    /// holds more than are counted.
    pub fn reserve(&self, most: u32) -> bool {
        self.update(|word| (word.posted < most).then_some(Word { posted: word.posted + 1, ..word })).is_some()
    }

    /// A receive was taken from the ring. True when the limit is reached by that, which it is once.
    pub fn taken(&self) -> bool {
        let less = |word: Word| Word { posted: word.posted.saturating_sub(1), ..word };
        self.update(|word| Some(less(word).told())).is_some_and(|before| less(before).told() != less(before))
    }

    /// A receive was wanted and there was none. True as for [`taken`](Self::taken): whoever arms an empty queue hears of it when
    /// it matters.
    pub fn wanted(&self) -> bool {
        self.update(|word| (word.told() != word).then(|| word.told())).is_some()
    }

    /// Changes the word; gives the one before, or `None` when there was nothing to change.
    fn update(&self, change: impl Fn(Word) -> Option<Word>) -> Option<Word> {
        let next = |word| change(Word::unpack(word)).map(Word::pack);
        self.0.fetch_update(Ordering::AcqRel, Ordering::Acquire, next).ok().map(Word::unpack)
    }
}
