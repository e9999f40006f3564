//! What a world is like, from its seed.

use super::dice::Dice;
use crate::support::MS;
use cm::Timing;

pub const TIMING: Timing = Timing { interval_ns: 200 * MS, tries: 5 };
/// How long applications may think.
pub const THINK_NS: u64 = 2_000 * MS;
/// How long an MRA can hold an end.
pub const MRA_MAX_NS: u64 = 3_000 * MS;
/// Nothing new is begun afterwards, and the network is good.
pub const CALM_AT: u64 = 10_000 * MS;
/// Both ends agree, or one of them has noticed.
pub const JUDGED_AT: u64 = 22_000 * MS;

/// The network: percentages, and the longest way.
pub struct Weather {
    pub loss: u64,
    pub repeat: u64,
    /// Of messages that come once more much later.
    pub haunt: u64,
    pub delay_ns: u64,
}

/// How much later.
pub const HAUNT_NS: u64 = 4_000 * MS;

impl Weather {
    pub fn new(dice: &mut Dice) -> Weather {
        Weather {
            loss: dice.one_of(&[0, 0, 5, 20, 40]),
            repeat: dice.one_of(&[0, 5, 30]),
            haunt: dice.one_of(&[0, 0, 3]),
            delay_ns: dice.one_of(&[1, 5, 50, 350, 900]) * MS,
        }
    }

    pub const CALM: Weather = Weather { loss: 0, repeat: 0, haunt: 0, delay_ns: MS };

    /// Everything arrives, and soon enough that nothing need be sent again in vain.
    pub fn is_fair(&self) -> bool {
        self.loss == 0 && self.haunt == 0 && self.delay_ns <= 50 * MS
    }
}

/// What an application does when it has to answer.
#[derive(Clone, Copy, Debug)]
pub enum Answer {
    /// Yes, after a while.
    Yes(u64),
    /// Asks for time, then yes.
    AskForTime(u64),
    /// No, after a while.
    No(u64),
    /// Destroys, after a while.
    Destroy(u64),
    /// Nothing at all.
    Never,
}

impl Answer {
    pub fn new(dice: &mut Dice) -> Answer {
        let quick = dice.below(50) * MS;
        let long = dice.below(1_800) * MS;
        match dice.below(20) {
            0..10 => Answer::Yes(0),
            10..12 => Answer::Yes(quick),
            12..14 => Answer::Yes(long),
            14 => Answer::AskForTime(long * 2),
            15 => Answer::No(0),
            16 => Answer::No(long),
            17 => Answer::Destroy(quick),
            18 => Answer::Destroy(long),
            _ => Answer::Never,
        }
    }

    /// In fair weather it makes a connection.
    pub fn is_yes(self) -> bool {
        matches!(self, Answer::Yes(_) | Answer::AskForTime(_))
    }
}
