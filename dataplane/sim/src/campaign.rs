//! Many seeds, on several threads.

use crate::plan::{Choices, Plan};
use crate::play::{Stats, play};
use std::ops::Range;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicU64, Ordering};

/// What is to be played.
#[derive(Clone, Debug)]
pub struct Campaign {
    /// The seeds.
    pub seeds: Range<u64>,
    /// What all their plans have in common.
    pub choices: Choices,
    /// Threads.
    pub jobs: usize,
}

/// A seed that failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failed {
    /// The seed.
    pub seed: u64,
    /// Why.
    pub why: String,
}

/// What came of a campaign, as far as it got.
#[derive(Clone, Debug, Default)]
pub struct Totals {
    /// Seeds played.
    pub seeds: u64,
    /// Those that failed, the lowest seed first.
    pub failed: Vec<Failed>,
    /// What happened in all of them.
    pub stats: Stats,
}

impl Campaign {
    /// Plays until all seeds are played or `stop` says so. `progress` is told now and then how many seeds are done and
    /// how many of them failed.
    pub fn run(&self, stop: impl Fn() -> bool + Sync, progress: impl Fn(u64, u64) + Sync) -> Totals {
        let (next, done, bad) = (AtomicU64::new(self.seeds.start), AtomicU64::new(0), AtomicU64::new(0));
        let totals = Mutex::new(Totals::default());
        std::thread::scope(|scope| {
            for _ in 0..self.jobs.max(1) {
                scope.spawn(|| {
                    let mut mine = Totals::default();
                    while !stop() {
                        let seed = next.fetch_add(1, Ordering::Relaxed);
                        if seed >= self.seeds.end {
                            break;
                        }
                        let outcome = play(&Plan::random(seed, &self.choices), false);
                        mine.seeds += 1;
                        mine.stats.merge(&outcome.stats);
                        if let Some(why) = outcome.failure {
                            bad.fetch_add(1, Ordering::Relaxed);
                            mine.failed.push(Failed { seed, why });
                        }
                        progress(done.fetch_add(1, Ordering::Relaxed) + 1, bad.load(Ordering::Relaxed));
                    }
                    let mut all = totals.lock().unwrap_or_else(PoisonError::into_inner);
                    all.seeds += mine.seeds;
                    all.stats.merge(&mine.stats);
                    all.failed.append(&mut mine.failed);
                });
            }
        });
        let mut totals = totals.into_inner().unwrap_or_else(PoisonError::into_inner);
        totals.failed.sort_by_key(|failed| failed.seed);
        totals
    }
}
