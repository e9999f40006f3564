//! What `rockhopper sim` says in the end.

use crate::cli::out::say;
use serde_json::json;
use sim::{Failed, Plan, Totals, play, print_trace};

/// Everything that is told.
pub struct Report<'a> {
    /// What came of it.
    pub totals: &'a Totals,
    /// How long it took.
    pub seconds: f64,
    /// All seeds that were asked for were played.
    pub complete: bool,
    /// `--impair`.
    pub impair: Option<&'a str>,
    /// `--forge`.
    pub forge: u32,
    /// The first failure, cut down.
    pub shrunken: Option<&'a Plan>,
}

/// Failures that are listed as text.
const LISTED: usize = 20;

impl Report<'_> {
    /// For people.
    pub fn print_text(&self) {
        let Totals { seeds, failed, stats } = self.totals;
        for failed in failed.iter().take(LISTED) {
            say(format_args!("seed {} failed: {}", failed.seed, failed.why));
            say(format_args!("  replay: {}", self.replay(failed)));
        }
        if failed.len() > LISTED {
            say(format_args!("… and {} more", failed.len() - LISTED));
        }
        if let Some(plan) = self.shrunken {
            let outcome = play(plan, true);
            say(format_args!(
                "\nThe first failure, cut down to {} requests:\n\n{}",
                plan.ops.len(),
                plan.to_text()
            ));
            say(format_args!("{}\n{}\n", print_trace(&outcome.trace), outcome.failure.unwrap_or_default()));
        }
        let operations: u64 = stats.operations.values().sum();
        let kinds: Vec<String> =
            stats.operations.iter().map(|(kind, count)| format!("{count} {kind}")).collect();
        say(format_args!("{operations} operations: {}", kinds.join(", ")));
        let verdict = match (failed.len(), self.complete) {
            (0, true) => "nothing wrong".to_owned(),
            (0, false) => "interrupted, nothing wrong so far".to_owned(),
            (count, _) => format!("{count} FAILED"),
        };
        say(format_args!(
            "{seeds} seeds, {} packets in {:.1} s ({:.0} seeds a second): {verdict}",
            stats.packets,
            self.seconds,
            self.rate()
        ));
    }

    /// For programs.
    pub fn print_json(&self) {
        let Totals { seeds, failed, stats } = self.totals;
        let failures: Vec<_> = failed
            .iter()
            .map(|failed| json!({ "seed": failed.seed, "why": failed.why, "replay": self.replay(failed) }))
            .collect();
        let shrunken = self.shrunken.map(|plan| {
            let outcome = play(plan, true);
            json!({ "plan": plan.to_text(), "trace": print_trace(&outcome.trace), "why": outcome.failure })
        });
        say(json!({
            "seeds": seeds,
            "failed": failed.len(),
            "packets": stats.packets,
            "complete": self.complete,
            "seconds": self.seconds,
            "seeds_per_second": self.rate(),
            "operations": stats.operations,
            "met": stats.met,
            "failures": failures,
            "shrunken": shrunken,
        }));
    }

    fn rate(&self) -> f64 {
        self.totals.seeds as f64 / self.seconds.max(1e-9)
    }

    /// The command that does it again.
    fn replay(&self, failed: &Failed) -> String {
        let impair = self.impair.map_or(String::new(), |words| format!(" --impair '{words}'"));
        let forge = if self.forge > 0 { format!(" --forge {}", self.forge) } else { String::new() };
        format!("rockhopper sim --seed {}{impair}{forge}", failed.seed)
    }
}
