//! From a plan to words that read back as the same plan.

use crate::words::UNITS;
use crate::{Action, Clause, Direction, Filter, Nanos, Plan, Rate, Times, When};
use std::fmt::{self, Display, Formatter};
use wire::OpcodeInfo;

/// An opcode's name in one word: "RC SEND Only" is `rc_send_only`.
pub(crate) fn opcode_word(info: &OpcodeInfo) -> String {
    let name = info.to_string();
    let words = name.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    words.collect::<Vec<_>>().join("_").to_ascii_lowercase()
}

impl Display for Plan {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        for (index, clause) in self.clauses.iter().enumerate() {
            write!(f, "{}{clause}", if index == 0 { "" } else { "; " })?;
        }
        match self.seed {
            Some(seed) if self.clauses.is_empty() => write!(f, "seed {seed}"),
            Some(seed) => write!(f, "; seed {seed}"),
            None => Ok(()),
        }
    }
}

impl Display for Clause {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Clause { action, when, filter, times } = self;
        write!(f, "{action}")?;
        match when {
            When::Chance(rate) => write!(f, " {rate}")?,
            When::Every(count) => write!(f, " every {count}")?,
            When::Packet(count) => write!(f, " packet {count}")?,
            // Without a filter there has to be a word for it; what it means is the same.
            When::Always if filter.asks_bth() => {}
            When::Always => write!(f, " every 1")?,
        }
        write!(f, "{filter}")?;
        if *times == Times::unsaid(*when, filter) {
            return Ok(());
        }
        match times {
            Times::All => write!(f, " times all"),
            Times::Most(most) => write!(f, " times {most}"),
        }
    }
}

impl Display for Action {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match *self {
            Action::Drop => write!(f, "drop"),
            Action::Duplicate => write!(f, "duplicate"),
            Action::Reorder(frames) => write!(f, "reorder {frames}"),
            Action::Delay(least, most) if least == most => write!(f, "delay {}", Time(least)),
            Action::Delay(least, most) => write!(f, "delay {}..{}", Time(least), Time(most)),
            Action::Corrupt(1) => write!(f, "corrupt"),
            Action::Corrupt(bits) => write!(f, "corrupt {bits} bits"),
            Action::Truncate(None) => write!(f, "truncate"),
            Action::Truncate(Some(len)) => write!(f, "truncate to {len}"),
            Action::Ce => write!(f, "ce"),
        }
    }
}

impl Display for Filter {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        if let Some(psn) = self.psn {
            write!(f, " psn={}", psn.value())?;
        }
        if let Some(qp) = self.qp {
            write!(f, " qp={:#x}", qp.value())?;
        }
        if let Some(opcode) = self.opcode {
            match opcode.info() {
                Some(info) => write!(f, " opcode={}", opcode_word(info))?,
                None => write!(f, " opcode={:#04x}", opcode.0)?,
            }
        }
        match self.direction {
            Some(Direction::Rx) => write!(f, " rx")?,
            Some(Direction::Tx) => write!(f, " tx")?,
            None => {}
        }
        if self.any { write!(f, " any") } else { Ok(()) }
    }
}

impl Display for Rate {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let (whole, part) = (self.parts() / 10_000, self.parts() % 10_000);
        if part == 0 {
            return write!(f, "{whole}%");
        }
        write!(f, "{whole}.{}%", format!("{part:04}").trim_end_matches('0'))
    }
}

/// A time in the largest unit that says it without a point.
struct Time(Nanos);

impl Display for Time {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let whole = |&(_, zeros): &(&str, u32)| self.0.is_multiple_of(10_u64.pow(zeros));
        let (unit, zeros) = UNITS.into_iter().find(whole).unwrap_or(("ns", 0));
        write!(f, "{}{unit}", self.0 / 10_u64.pow(zeros))
    }
}
