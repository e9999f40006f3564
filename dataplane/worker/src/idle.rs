//! What a worker does when there is nothing to do: pause first, then sleep for longer and longer.

use engine::Nanos;
use std::time::Duration;

/// Empty polls before the first sleep: some tens of microseconds.
const PATIENCE: u32 = 256;
/// The first sleep.
const FIRST: Duration = Duration::from_micros(50);
/// The longest. Virtual devices raise no interrupt, so this bounds what a frame waits for a sleeping worker.
const LONGEST: Duration = Duration::from_millis(1);

/// How idle a worker has been.
#[derive(Debug)]
pub(crate) struct Idle {
    empty_polls: u32,
    sleep: Duration,
}

impl Default for Idle {
    fn default() -> Self {
        Idle { empty_polls: 0, sleep: FIRST }
    }
}

impl Idle {
    /// There was something to do.
    pub fn reset(&mut self) {
        self.empty_polls = 0;
        self.sleep = FIRST;
    }

    /// There was nothing. How long to sleep, `None` to pause only. `due` tells when a timer wants to fire; it is asked only before
    /// a sleep, since walking over all timers costs more than an empty poll.
    pub fn next_sleep(&mut self, now: Nanos, due: impl FnOnce() -> Option<Nanos>) -> Option<Duration> {
        self.empty_polls = self.empty_polls.saturating_add(1);
        if self.empty_polls < PATIENCE {
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
        let sleeps: Vec<_> = (0..PATIENCE + 9).filter_map(|_| idle.next_sleep(0, || None)).collect();
        assert_eq!(sleeps.len(), 10);
        assert_eq!(sleeps[..3], [50, 100, 200].map(Duration::from_micros));
        assert_eq!(sleeps[9], LONGEST);
        idle.reset();
        assert_eq!(idle.next_sleep(0, || None), None, "after work it pauses again");
    }

    #[test]
    fn timers_are_looked_at_only_before_a_sleep() {
        let mut idle = Idle::default();
        for _ in 1..PATIENCE {
            assert_eq!(idle.next_sleep(0, || panic!("not yet")), None);
        }
    }

    #[test]
    fn a_timer_ends_the_sleep() {
        let mut idle = Idle { empty_polls: PATIENCE, sleep: LONGEST };
        assert_eq!(idle.next_sleep(1_000, || Some(21_000)), Some(Duration::from_micros(20)));
        assert_eq!(idle.next_sleep(1_000, || Some(1_000)), None, "it is due");
    }
}
