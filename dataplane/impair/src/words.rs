//! The words of a clause, each with its place, and the numbers among them.

use crate::{Nanos, PlanError, Rate};
use std::num::NonZeroU64;
use std::ops::Range;

/// A word and where it is in the plan.
#[derive(Clone, Debug)]
pub(crate) struct Word<'a> {
    /// The whole plan.
    pub plan: &'a str,
    pub text: &'a str,
    pub at: Range<usize>,
}

/// The clauses of a plan, each as its words; those without words are left out.
pub(crate) fn clauses(plan: &str) -> impl Iterator<Item = Words<'_>> {
    let mut begin = 0;
    plan.split(';').filter_map(move |clause| {
        let words = Words { plan, rest: clause, at: begin };
        begin += clause.len() + 1;
        (!clause.trim().is_empty()).then_some(words)
    })
}

/// The words of one clause that have not been taken.
#[derive(Clone, Debug)]
pub(crate) struct Words<'a> {
    plan: &'a str,
    rest: &'a str,
    /// Where `rest` begins in the plan.
    at: usize,
}

impl<'a> Iterator for Words<'a> {
    type Item = Word<'a>;

    fn next(&mut self) -> Option<Word<'a>> {
        let gap = |c: char| c.is_whitespace() || c == ',';
        let rest = self.rest.trim_start_matches(gap);
        if rest.is_empty() {
            return None;
        }
        let len = rest.find(gap).unwrap_or(rest.len());
        let begin = self.at + self.rest.len() - rest.len();
        let at = begin..begin + len;
        (self.rest, self.at) = (&rest[len..], at.end);
        Some(Word { plan: self.plan, text: &rest[..len], at })
    }
}

impl<'a> Words<'a> {
    /// Takes the next word if `wanted` likes it.
    pub fn next_if(&mut self, wanted: impl FnOnce(&Word<'a>) -> bool) -> Option<Word<'a>> {
        let mut ahead = self.clone();
        let word = ahead.next().filter(wanted)?;
        *self = ahead;
        Some(word)
    }

    /// Takes the next word; if there is none, `after` is what lacks it.
    pub fn need(&mut self, after: &Word<'a>, remedy: &str) -> Result<Word<'a>, PlanError> {
        self.next().ok_or_else(|| after.refuse("lacks what follows it", remedy))
    }
}

impl Word<'_> {
    pub fn is(&self, text: &str) -> bool {
        self.text.eq_ignore_ascii_case(text)
    }

    pub fn refuse(&self, problem: &'static str, remedy: impl Into<String>) -> PlanError {
        PlanError::new(self.plan, self.at.clone(), problem, remedy)
    }

    /// The part behind `=`, as a word.
    pub fn value(&self) -> Self {
        let skip = self.text.find('=').map_or(0, |at| at + 1);
        Word { plan: self.plan, text: &self.text[skip..], at: self.at.start + skip..self.at.end }
    }

    /// A whole number, decimal or hexadecimal after `0x`.
    pub fn number(&self) -> Option<u64> {
        let hex = self.text.strip_prefix("0x").or(self.text.strip_prefix("0X"));
        let digits = hex.unwrap_or(self.text);
        // Rust's own parser takes a sign as well.
        if !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
            return None;
        }
        u64::from_str_radix(digits, if hex.is_some() { 16 } else { 10 }).ok()
    }

    /// A whole number in a range.
    pub fn number_in(&self, range: std::ops::RangeInclusive<u64>) -> Result<u64, PlanError> {
        self.number().filter(|number| range.contains(number)).ok_or_else(|| {
            let (least, most) = (range.start(), range.end());
            let remedy = match *most {
                u64::MAX => format!("say a whole number from {least}"),
                most => format!("say a whole number from {least} to {most:#x}"),
            };
            self.refuse("is not such a number", remedy)
        })
    }

    /// A number that counts something.
    pub fn count(&self) -> Result<NonZeroU64, PlanError> {
        self.number_in(1..=u64::MAX).map(|count| NonZeroU64::new(count).unwrap_or(NonZeroU64::MIN))
    }

    /// A 24-bit number.
    pub fn number24(&self) -> Result<u32, PlanError> {
        self.number_in(0..=0xFF_FFFF).map(|number| number as u32)
    }

    /// "0.5%": up to four digits behind the point, 100 at most. `None` when it is no percentage at all.
    pub fn percentage(&self) -> Option<Result<Rate, PlanError>> {
        let number = self.text.strip_suffix('%')?;
        let rate = scaled(number, 4).filter(|&parts| parts <= u64::from(Rate::ONE.parts()));
        let remedy = "say 0% to 100%, with up to four digits behind the point, as in 0.01%";
        Some(match rate {
            Some(parts) => Ok(Rate::per_million(parts as u32)),
            None => Err(self.refuse("is not such a percentage", remedy)),
        })
    }

    /// "50us", or "50us..2ms".
    pub fn duration(&self) -> Result<(Nanos, Nanos), PlanError> {
        let (least, most) = self.text.split_once("..").unwrap_or((self.text, self.text));
        match (duration(least), duration(most)) {
            (Some(least), Some(most)) if least <= most => Ok((least, most)),
            _ => Err(self.refuse(
                "is not such a time",
                "say a time like 50us, 1.5ms or 2s, or a range like 10us..1ms",
            )),
        }
    }
}

/// Units of time, the largest first.
pub(crate) const UNITS: [(&str, u32); 4] = [("s", 9), ("ms", 6), ("us", 3), ("ns", 0)];
/// The longest delay: an hour.
const LONGEST: Nanos = 3_600_000_000_000;

fn duration(text: &str) -> Option<Nanos> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = text[digits.len()..].to_ascii_lowercase();
    let (_, zeros) = UNITS.into_iter().find(|(name, _)| *name == unit)?;
    scaled(digits, zeros).filter(|&nanos| nanos <= LONGEST)
}

/// A decimal number with up to `zeros` digits behind the point, times ten to the power of `zeros`.
fn scaled(text: &str, zeros: u32) -> Option<u64> {
    let (whole, part) = text.split_once('.').unwrap_or((text, ""));
    let digits = |text: &str| text.bytes().all(|digit| digit.is_ascii_digit());
    if !digits(whole) || !digits(part) || part.len() > zeros as usize || whole.is_empty() {
        return None;
    }
    let whole: u64 = whole.parse().ok()?;
    let part: u64 = format!("{part:0<width$}0", width = zeros as usize).parse().ok()?;
    whole.checked_mul(10_u64.checked_pow(zeros)?)?.checked_add(part / 10)
}
