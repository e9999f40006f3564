//! What a stage has done, by name.

/// What a stage did to a frame. One variant, one counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(usize)]
pub enum Effect {
    /// It vanished.
    Dropped,
    /// A copy was made.
    Duplicated,
    /// It was held for further frames.
    Reordered,
    /// It was held for a time.
    Delayed,
    /// Bits flipped.
    Corrupted,
    /// It was cut.
    Truncated,
    /// It was marked "congestion experienced".
    CeMarked,
    /// It was to be held, and passed at once: too many were held.
    NotHeld,
    /// It was to be copied, and there was no buffer for the copy.
    NotCopied,
}

impl Effect {
    /// Every effect, in the order of their numbers.
    pub const ALL: &'static [Effect] = &[
        Effect::Dropped,
        Effect::Duplicated,
        Effect::Reordered,
        Effect::Delayed,
        Effect::Corrupted,
        Effect::Truncated,
        Effect::CeMarked,
        Effect::NotHeld,
        Effect::NotCopied,
    ];

    /// The name to count it by.
    pub const fn name(self) -> &'static str {
        match self {
            Effect::Dropped => "impair_dropped",
            Effect::Duplicated => "impair_duplicated",
            Effect::Reordered => "impair_reordered",
            Effect::Delayed => "impair_delayed",
            Effect::Corrupted => "impair_corrupted",
            Effect::Truncated => "impair_truncated",
            Effect::CeMarked => "impair_ce_marked",
            Effect::NotHeld => "impair_not_held",
            Effect::NotCopied => "impair_not_copied",
        }
    }
}

/// Counts of all effects.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters([u64; Effect::ALL.len()]);

impl Counters {
    /// How often it happened.
    pub fn get(&self, effect: Effect) -> u64 {
        self.0[effect as usize]
    }

    /// Every counter with its name.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, u64)> + '_ {
        Effect::ALL.iter().map(|&effect| (effect.name(), self.get(effect)))
    }

    pub(crate) fn count(&mut self, effect: Effect) {
        self.0[effect as usize] += 1;
    }
}
