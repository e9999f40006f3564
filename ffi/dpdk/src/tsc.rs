//! The CPU's time stamp counter as a clock: a few nanoseconds a reading, no system call.

use crate::eal::Eal;
use std::sync::atomic::{AtomicU64, Ordering};

/// The counter now.
#[inline(always)]
pub fn now() -> u64 {
    // SAFETY: reads a counter; it has no precondition.
    #[cfg(target_arch = "x86_64")]
    unsafe {
        std::arch::x86_64::_rdtsc()
    }
    // SAFETY: as above; elsewhere DPDK knows which register it is.
    #[cfg(not(target_arch = "x86_64"))]
    unsafe {
        dpdk_sys::rte_rdtsc()
    }
}

/// Counts per second, as DPDK has measured it at start.
pub fn hz(_started: &Eal) -> u64 {
    // SAFETY: EAL is started, which is when the rate is measured.
    unsafe { dpdk_sys::rte_get_tsc_hz() }
}

/// Converts counts to nanoseconds since the clock was made, by one multiplication.
#[derive(Debug, Clone, Copy)]
pub struct Clock {
    base: u64,
    /// Nanoseconds per count, times 2^32.
    ns_per_count_q32: u64,
    hand: Option<Hand>,
}

/// The hand of a clock that goes by hand: its time is what this was moved to.
#[derive(Debug, Clone, Copy)]
pub struct Hand(&'static AtomicU64);

impl Hand {
    /// A hand at zero. Its place is never given back: a program makes few.
    pub fn new() -> Hand {
        Hand(Box::leak(Box::default()))
    }

    /// Lets so many nanoseconds pass, for every clock of this hand.
    pub fn advance(self, ns: u64) {
        self.0.fetch_add(ns, Ordering::AcqRel);
    }
}

impl Default for Hand {
    fn default() -> Self {
        Hand::new()
    }
}

impl Clock {
    /// A clock that starts at zero now.
    pub fn new(eal: &Eal) -> Clock {
        Clock::with_rate(now(), hz(eal))
    }

    /// A clock that goes by hand, for whole endpoints in a time of their caller's making: however busy the machine is, nothing
    /// is late.
    pub const fn by_hand(hand: Hand) -> Clock {
        Clock { base: 0, ns_per_count_q32: 0, hand: Some(hand) }
    }

    fn with_rate(base: u64, hz: u64) -> Clock {
        // At 1 GHz and more the rounding is below one part in 2^31: two seconds in a century.
        let q32 = (1_000_000_000u128 << 32) / u128::from(hz.max(1));
        Clock { base, ns_per_count_q32: q32.min(u128::from(u64::MAX)) as u64, hand: None }
    }

    /// Nanoseconds since the clock was made. Never goes back on one core, nor across cores where the counters
    /// are synchronised (`constant_tsc`, every CPU that DPDK supports).
    #[inline(always)]
    pub fn now_ns(&self) -> u64 {
        match self.hand {
            None => self.ns_at(now()),
            Some(hand) => hand.0.load(Ordering::Acquire),
        }
    }

    /// Nanoseconds from the making of the clock to the counter value `tsc`; 0 for earlier ones.
    #[inline(always)]
    fn ns_at(&self, tsc: u64) -> u64 {
        let counts = tsc.saturating_sub(self.base);
        ((u128::from(counts) * u128::from(self.ns_per_count_q32)) >> 32) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_by_hand_stands_until_it_is_moved() {
        let hand = Hand::new();
        let clocks = [Clock::by_hand(hand), Clock::by_hand(hand)];
        assert_eq!(clocks.map(|clock| clock.now_ns()), [0, 0]);
        std::thread::sleep(std::time::Duration::from_millis(1));
        hand.advance(70);
        hand.advance(7);
        assert_eq!(clocks.map(|clock| clock.now_ns()), [77, 77]);
    }

    #[test]
    fn converts_without_drift_or_overflow() {
        let clock = Clock::with_rate(1_000, 2_400_000_000);
        assert_eq!(clock.ns_at(1_000), 0);
        assert_eq!(clock.ns_at(999), 0, "a reading of before is zero, not a wrap");
        let day = 86_400 * 2_400_000_000u64;
        let error = (clock.ns_at(1_000 + day) as i64 - 86_400_000_000_000).abs();
        assert!(error < 100_000, "{error} ns off after a day");
        let century = 36_500 * day;
        assert!(clock.ns_at(century) > 36_499 * 86_400_000_000_000);
    }
}
