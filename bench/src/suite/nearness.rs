//! How near the two cores are to each other.
//!
//! Where the host of a virtual machine chooses the cores behind its CPUs, the two of a measurement share a cache at one time, are
//! threads of one core at another, and lie on different dies or sockets at a third, and it changes within seconds. A cache line's
//! way between them tells which. Small messages and latencies then differ by a factor of two, so that a median over all of it says
//! more of the host than of what is measured. So cores are looked at before and after each repetition, repetitions begin with cores
//! that share a cache where that can be had, and those in which they did not are told apart.
//!
//! | they are | a round trip takes |
//! | --- | --- |
//! | threads of one core | less than [`ONE_CORE_NS`] |
//! | near: on one cache | up to [`NEAR`] times the shortest otherwise seen |
//! | far | more |
//!
//! On hardware of one's own all of this is steady, and costs a second at the beginning and some milliseconds a repetition.

use super::runner::Stop;
use rockhopper_perf::limits::round_trip_ns;
use std::fs::File;
use std::io::Write;
use std::time::Duration;

/// Threads of one core hand a line over in less, those of different cores do not.
const ONE_CORE_NS: f64 = 75.0;
/// Beyond so many times the shortest, the way leads over another cache.
const NEAR: f64 = 2.0;
/// How long a look takes.
const LOOK: Duration = Duration::from_millis(3);
/// Looks at the beginning, to know what near is.
const SCOUTS: u32 = 12;
/// Looks before a repetition begins wherever the cores are.
const PATIENCE: u32 = 20;
/// Where a system is told that its CPUs shall not sleep, as long as the file is open.
const LATENCY: &str = "/dev/cpu_dma_latency";

/// Where cores were.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Trips {
    /// Nanoseconds of a line's round trip before a repetition.
    pub before: f64,
    /// And after it.
    pub after: f64,
}

/// Looks at the cores, and brings them together.
pub struct Nearness {
    /// A line's round trip now, in nanoseconds. `None` on one core, and where the system does not let us look.
    trip: Box<dyn FnMut() -> Option<f64>>,
    /// Open: CPUs do not sleep. One that does may be on another core when it wakes.
    awake: Option<File>,
    nearest: Option<f64>,
}

impl Nearness {
    /// Of two cores.
    pub fn new(cores: [usize; 2]) -> Nearness {
        Nearness::by(move || round_trip(cores))
    }

    /// By what tells round trips.
    pub fn by(trip: impl FnMut() -> Option<f64> + 'static) -> Nearness {
        Nearness { trip: Box::new(trip), awake: None, nearest: None }
    }

    /// Finds out what near is.
    pub fn scout(&mut self, stop: &Stop) {
        for turn in 0..SCOUTS {
            if stop.is_asked() || self.look().is_none() {
                return;
            }
            self.shuffle(turn);
        }
        self.stay();
    }

    /// Waits a while for cores that are near, and has them stay where they are. What the last look saw.
    pub fn settle(&mut self, stop: &Stop) -> Option<f64> {
        for turn in 0..PATIENCE {
            self.stay();
            let trip = self.look()?;
            if self.is_near(trip) || stop.is_asked() {
                return Some(trip);
            }
            self.shuffle(turn);
        }
        self.stay();
        self.look()
    }

    /// A line's round trip now, if one can look.
    pub fn look(&mut self) -> Option<f64> {
        let trip = (self.trip)()?;
        if trip >= ONE_CORE_NS {
            self.nearest = Some(self.nearest.map_or(trip, |nearest| nearest.min(trip)));
        }
        Some(trip)
    }

    /// The shortest round trip between two cores that was seen.
    pub fn nearest(&self) -> Option<f64> {
        self.nearest
    }

    /// Whether cores with such a round trip share a cache, as far as is known by now.
    pub fn is_near(&self, trip: f64) -> bool {
        is_near(trip, self.nearest)
    }

    /// Lets the CPUs sleep for a moment, which each time is another one.
    fn shuffle(&mut self, turn: u32) {
        self.awake = None;
        std::thread::sleep(Duration::from_millis(u64::from(20 + turn % 7 * 30)));
    }

    /// From now on no CPU sleeps. Where that is not allowed, they come and go as they do.
    fn stay(&mut self) {
        if self.awake.is_none() {
            let file = File::options().write(true).open(LATENCY);
            self.awake = file.and_then(|mut file| file.write_all(&0i32.to_ne_bytes()).map(|()| file)).ok();
        }
    }
}

impl Trips {
    /// Whether the cores were near all the time, as far as one can tell.
    pub fn are_near(self, nearest: Option<f64>) -> bool {
        is_near(self.before, nearest) && is_near(self.after, nearest)
    }
}

/// The median of a few milliseconds, in nanoseconds.
fn round_trip(cores: [usize; 2]) -> Option<f64> {
    if cores[0] == cores[1] {
        return None;
    }
    // In a thread of its own, since it pins itself, and what this one starts would stay there.
    let trips = std::thread::scope(|scope| {
        scope.spawn(move || round_trip_ns(cores, Duration::ZERO, LOOK)).join().ok()?.ok()
    })?;
    Some(trips.value_at_quantile(0.5) as f64)
}

/// Where there are never two cores, what there is counts as near.
fn is_near(trip: f64, nearest: Option<f64>) -> bool {
    nearest.is_none_or(|nearest| trip >= ONE_CORE_NS && trip <= NEAR * nearest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cores_are_near_when_they_share_a_cache_and_no_more_than_that() {
        let near = |before, after| Trips { before, after }.are_near(Some(110.0));
        assert!(near(110.0, 220.0) && near(ONE_CORE_NS, 110.0));
        assert!(!near(110.0, 221.0) && !near(470.0, 110.0), "far at one end of it");
        assert!(!near(50.0, 110.0) && !near(110.0, 74.0), "threads of one core");
        // A machine whose two CPUs are always threads of one core has no better.
        assert!(Trips { before: 50.0, after: 60.0 }.are_near(None));
    }

    #[test]
    fn a_look_is_a_round_trip_between_two_cores() {
        let allowed: Vec<usize> = core_affinity::get_core_ids().unwrap().iter().map(|core| core.id).collect();
        assert_eq!(Nearness::new([allowed[0]; 2]).settle(&Stop::default()), None, "one core");
        assert_eq!(Nearness::new([4094, 4095]).look(), None, "cores that are not there");
        if let [first, second, ..] = allowed[..] {
            assert!(Nearness::new([first, second]).look().unwrap() > 0.0);
            // Whoever looked is not pinned.
            let still: Vec<usize> =
                core_affinity::get_core_ids().unwrap().iter().map(|core| core.id).collect();
            assert_eq!(still, allowed);
        }
    }

    #[test]
    fn it_waits_for_cores_that_are_near_and_not_for_ever() {
        let mut trips = [110.0, 470.0, 50.0, 480.0, 130.0].into_iter();
        let mut nearness = Nearness::by(move || trips.next().or(Some(500.0)));
        assert_eq!(nearness.look(), Some(110.0));
        assert_eq!(nearness.settle(&Stop::default()), Some(130.0));
        assert_eq!(nearness.nearest(), Some(110.0), "threads of one core do not count");
        assert_eq!(nearness.settle(&Stop::default()), Some(500.0));
    }
}
