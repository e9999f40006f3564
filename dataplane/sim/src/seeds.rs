//! Seeds of a test: how many, which, and how to get back to the one that failed.
//!
//! `SIM_SEEDS=n` runs n seeds instead of the test's few; `SIM_SEED=s` runs only that one.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

/// Runs a test for `few` seeds, or those that the environment names. When one fails, a line is printed that replays it.
pub fn for_each_seed(few: u64, test: impl Fn(u64)) {
    let seeds = match (number("SIM_SEED"), number("SIM_SEEDS")) {
        (Some(seed), _) => seed..=seed,
        (None, count) => 1..=count.unwrap_or(few),
    };
    for seed in seeds {
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| test(seed))) {
            eprintln!("{}", replay_line(seed, std::thread::current().name().unwrap_or_default()));
            resume_unwind(panic);
        }
    }
}

fn number(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{name}={text}: expected a number like {name}=42")))
}

/// Test threads bear the name of their test.
fn replay_line(seed: u64, test: &str) -> String {
    format!("replay this failure: SIM_SEED={seed} cargo test -p rockhopper-sim {test}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Mutex;

    #[test]
    fn the_failing_seed_ends_the_run_and_the_line_names_it() {
        let seen = Mutex::new(Vec::new());
        let outcome = catch_unwind(AssertUnwindSafe(|| {
            for_each_seed(5, |seed| {
                seen.lock().unwrap().push(seed);
                assert!(seed < 3, "as asked");
            });
        }));
        assert!(outcome.is_err());
        let seen = seen.into_inner().unwrap();
        // The environment may name other seeds; the last one run is the one that failed.
        assert!(seen.iter().rev().skip(1).all(|&seed| seed < 3), "{seen:?}");
        assert_eq!(
            replay_line(3, "links::a"),
            "replay this failure: SIM_SEED=3 cargo test -p rockhopper-sim links::a"
        );
    }
}
