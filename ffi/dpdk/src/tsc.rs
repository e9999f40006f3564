//! The CPU's time stamp counter as a clock: a few nanoseconds a reading, no system call.

use crate::eal::Eal;

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
}

impl Clock {
    /// A clock that starts at zero now.
    pub fn new(eal: &Eal) -> Clock {
        Clock::with_rate(now(), hz(eal))
    }

    fn with_rate(base: u64, hz: u64) -> Clock {
        // At 1 GHz and more the rounding is below one part in 2^31: two seconds in a century.
        let q32 = (1_000_000_000u128 << 32) / u128::from(hz.max(1));
        Clock { base, ns_per_count_q32: q32.min(u128::from(u64::MAX)) as u64 }
    }

    /// Nanoseconds since the clock was made. Never goes back on one core, nor across cores where the counters
    /// are synchronised (`constant_tsc`, every CPU that DPDK supports).
    #[inline(always)]
    pub fn now_ns(&self) -> u64 {
        self.ns_at(now())
    }

    /// Nanoseconds from the making of the clock to the counter value `tsc`; 0 for earlier ones.
    #[inline(always)]
    pub fn ns_at(&self, tsc: u64) -> u64 {
        let counts = tsc.saturating_sub(self.base);
        ((u128::from(counts) * u128::from(self.ns_per_count_q32)) >> 32) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
