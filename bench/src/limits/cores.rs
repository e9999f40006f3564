//! What the cores themselves cost: the way between two of them, and the time that the system takes away.

use hdrhistogram::Histogram;
use std::hint::spin_loop;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// CPUs that the system's set has room for; the crate below panics beyond.
const CPU_SETSIZE: usize = 1024;

/// Keeps this thread on a core; the sentence says what to do where the system does not let it.
pub fn pin(core: usize) -> Result<(), String> {
    if core < CPU_SETSIZE && core_affinity::set_for_current(core_affinity::CoreId { id: core }) {
        return Ok(());
    }
    Err(format!("the system does not let this process run on core {core}; choose others with --cores"))
}

/// A number on a cache line of its own.
#[repr(align(128))]
#[derive(Default)]
struct Line(AtomicU64);

/// Nanoseconds of round trips of a cache line between two cores, each recorded, for so long. Each end works for a while before it
/// passes the line on, by looking at the clock: what the system takes from either end in such a trip makes it longer, as it
/// does to a message of that latency.
pub fn round_trip_ns(cores: [usize; 2], work: Duration, time: Duration) -> Result<Histogram<u64>, String> {
    let (there, back, over) = (Line::default(), Line::default(), AtomicBool::new(false));
    // On a single core each has to give way to the other.
    let wait = || if cores[0] == cores[1] { std::thread::yield_now() } else { spin_loop() };
    std::thread::scope(|scope| {
        let (there, back, over) = (&there, &back, &over);
        let echo = scope.spawn(move || {
            let pinned = pin(cores[1]);
            let mut seen = 0;
            while pinned.is_ok() && !over.load(Ordering::Relaxed) {
                let now = there.0.load(Ordering::Acquire);
                if now == seen {
                    wait();
                    continue;
                }
                seen = now;
                spin(work);
                back.0.store(now, Ordering::Release);
            }
            pinned
        });
        let measured = pin(cores[0]).map(|()| {
            let mut record = histogram();
            let end = Instant::now() + time;
            let mut before = Instant::now();
            for turn in 1.. {
                spin(work);
                there.0.store(turn, Ordering::Release);
                while back.0.load(Ordering::Acquire) != turn && !echo.is_finished() {
                    wait();
                }
                let now = Instant::now();
                record.saturating_record((now - before).as_nanos() as u64);
                before = now;
                if now >= end || echo.is_finished() {
                    break;
                }
            }
            record
        });
        over.store(true, Ordering::Relaxed);
        echo.join().unwrap_or_else(|_| Err("the thread of the other core died".into()))?;
        measured
    })
}

/// Keeps the core busy for so long.
fn spin(work: Duration) {
    if !work.is_zero() {
        let begin = Instant::now();
        while begin.elapsed() < work {
            spin_loop();
        }
    }
}

/// What a thread that does nothing but look at the clock saw.
#[derive(Clone, Debug)]
pub struct Jitter {
    /// Nanoseconds between one look and the next.
    pub gaps: Histogram<u64>,
    /// Longest gaps, the longest first.
    pub longest: Vec<u64>,
    /// Of the time, the part in gaps of a microsecond or more: taken by the system.
    pub taken: f64,
}

/// Gaps from here on are the system's doing.
const GAP_NS: u64 = 1000;
/// Longest gaps that are told.
const LONGEST: usize = 10;

/// Looks at the clock on one core for so long.
pub fn spin_jitter(core: usize, time: Duration) -> Result<Jitter, String> {
    pin(core)?;
    let mut gaps = histogram();
    let mut longest = Vec::new();
    let mut taken = 0;
    let begin = Instant::now();
    let mut before = begin;
    while before - begin < time {
        let now = Instant::now();
        let gap = (now - before).as_nanos() as u64;
        gaps.saturating_record(gap);
        if gap >= GAP_NS {
            taken += gap;
            longest.push(gap);
        }
        before = now;
    }
    longest.sort_unstable_by(|a, b| b.cmp(a));
    longest.truncate(LONGEST);
    Ok(Jitter { gaps, longest, taken: taken as f64 / (before - begin).as_nanos().max(1) as f64 })
}

fn histogram() -> Histogram<u64> {
    // Up to a minute; bounds that cannot fail.
    Histogram::new_with_bounds(1, 60_000_000_000, 3).unwrap_or_else(|_| unreachable!("constant bounds"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allowed() -> Vec<usize> {
        core_affinity::get_core_ids().unwrap().iter().map(|core| core.id).collect()
    }

    #[test]
    fn a_line_comes_back_as_often_as_it_left() {
        let cores = allowed();
        let trips =
            round_trip_ns([cores[0], cores[cores.len() - 1]], Duration::ZERO, Duration::from_millis(20))
                .unwrap();
        // Where others use the cores one may be all that there is.
        assert!(!trips.is_empty() && trips.min() > 0);
        // On one core, too, where both give way.
        assert!(!round_trip_ns([cores[0]; 2], Duration::ZERO, Duration::from_millis(5)).unwrap().is_empty());
    }

    #[test]
    fn ends_that_work_make_trips_longer() {
        let cores = [allowed()[0], allowed()[allowed().len() - 1]];
        let trips = round_trip_ns(cores, Duration::from_micros(50), Duration::from_millis(20)).unwrap();
        assert!(trips.min() >= 100_000, "{}", trips.min());
    }

    #[test]
    fn a_core_that_is_not_there_is_told() {
        for cores in [[4095, 4095], [allowed()[0], 4095]] {
            let told = round_trip_ns(cores, Duration::ZERO, Duration::from_millis(5)).unwrap_err();
            assert!(told.contains("core 4095"), "{told}");
        }
        assert!(spin_jitter(4095, Duration::from_millis(1)).is_err());
    }

    #[test]
    fn gaps_are_in_order_and_part_of_the_time() {
        let jitter = spin_jitter(allowed()[0], Duration::from_millis(20)).unwrap();
        assert!(!jitter.gaps.is_empty() && (0.0..=1.0).contains(&jitter.taken), "{jitter:?}");
        assert!(jitter.longest.is_sorted_by(|a, b| a >= b) && jitter.longest.len() <= LONGEST);
    }
}
