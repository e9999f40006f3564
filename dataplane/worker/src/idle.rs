//! What a worker does when there is nothing to do: pause first, then sleep for longer and longer.

use engine::Nanos;
use std::time::Duration;

/// Time of empty polls before the first sleep. In time and not in polls, for what a poll costs is the driver's: 80 ns on `net_ring`, a
/// system call on `net_tap`, while an application on the same core waits for it.
const PATIENCE: Nanos = 20_000;
/// The first sleep.
const FIRST: Duration = Duration::from_micros(50);
/// The longest. Most virtual devices tell nobody of a frame, so this bounds what it waits for a sleeping worker.
const LONGEST: Duration = Duration::from_millis(1);

/// How idle a worker has been.
#[derive(Debug)]
pub(crate) struct Idle {
    /// When the first of these empty polls was.
    since: Option<Nanos>,
    sleep: Duration,
}

impl Default for Idle {
    fn default() -> Self {
        Idle { since: None, sleep: FIRST }
    }
}

impl Idle {
    /// There was something to do.
    pub fn reset(&mut self) {
        self.since = None;
        self.sleep = FIRST;
    }

    /// There was nothing. How long to sleep, `None` to pause only. `due` tells when a timer wants to fire; it is asked only before
    /// a sleep, since walking over all timers costs more than an empty poll.
    pub fn next_sleep(&mut self, now: Nanos, due: impl FnOnce() -> Option<Nanos>) -> Option<Duration> {
        let since = *self.since.get_or_insert(now);
        if now.saturating_sub(since) < PATIENCE {
            return None;
        }
        let sleep = self.sleep;
        self.sleep = (sleep * 2).min(LONGEST);
        let until_due = due().map_or(LONGEST, |due| Duration::from_nanos(due.saturating_sub(now)));
        Some(sleep.min(until_due)).filter(|sleep| !sleep.is_zero())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sleeps_grow_to_their_bound_and_begin_anew() {
        let mut idle = Idle::default();
        let sleeps: Vec<_> = (0..29).filter_map(|at| idle.next_sleep(at * 1_000, || None)).collect();
        assert_eq!(sleeps.len(), 9, "nothing for 20 µs");
        assert_eq!(sleeps[..3], [50, 100, 200].map(Duration::from_micros));
        assert_eq!(sleeps[8], LONGEST);
        idle.reset();
        assert_eq!(idle.next_sleep(29_000, || None), None, "after work it pauses again");
        assert_eq!(idle.next_sleep(48_999, || None), None);
        assert_eq!(idle.next_sleep(49_000, || None), Some(FIRST));
    }

    #[test]
    fn timers_are_looked_at_only_before_a_sleep() {
        let mut idle = Idle::default();
        for now in 0..PATIENCE {
            assert_eq!(idle.next_sleep(now, || panic!("not yet")), None);
        }
    }

    #[test]
    fn a_timer_ends_the_sleep() {
        let mut idle = Idle { since: Some(0), sleep: LONGEST };
        assert_eq!(idle.next_sleep(100_000, || Some(120_000)), Some(Duration::from_micros(20)));
        assert_eq!(idle.next_sleep(100_000, || Some(100_000)), None, "it is due");
    }
}
