//! Deadlines, and the 5-bit codes by which ends tell each other theirs (rocev2 facts, CM 10).

use crate::slab::Handle;
use std::collections::BTreeSet;

/// Nanoseconds of a 5-bit timeout code: 4.096 µs × 2^code.
pub const fn timeout_ns(code: u8) -> u64 {
    4_096 << (code & 0x1F)
}

/// The smallest code whose timeout is `ns` or more; 31 when none is.
pub fn timeout_code(ns: u64) -> u8 {
    (0..31).find(|&code| timeout_ns(code) >= ns).unwrap_or(31)
}

/// What a deadline is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Timed {
    Conn(Handle),
    Sidr(Handle),
}

/// Deadlines in their order.
#[derive(Debug, Default)]
pub(crate) struct Timers(BTreeSet<(u64, Timed)>);

impl Timers {
    /// Replaces the deadline `old` of `what` by `new`.
    pub fn change(&mut self, what: Timed, old: Option<u64>, new: Option<u64>) {
        if let Some(old) = old {
            self.0.remove(&(old, what));
        }
        if let Some(new) = new {
            self.0.insert((new, what));
        }
    }

    pub fn next(&self) -> Option<u64> {
        self.0.first().map(|&(at, _)| at)
    }

    /// Takes the first deadline, when it is not after `now`.
    pub fn take_due(&mut self, now: u64) -> Option<Timed> {
        let &(at, what) = self.0.first()?;
        (at <= now).then(|| {
            self.0.pop_first();
            what
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// rocev2 facts, CM 10: 20 is what Linux announces, 4.3 s.
    #[test]
    fn codes_are_powers_of_two() {
        assert_eq!(timeout_ns(0), 4_096);
        assert_eq!(timeout_ns(20), 4_294_967_296);
        for code in 0..=31 {
            assert_eq!(timeout_code(timeout_ns(code)), code);
        }
        assert_eq!((timeout_code(200_000_000), timeout_code(u64::MAX)), (16, 31));
    }
}
