//! What is written: one self-contained HTML file, and the same as JSON.

mod html;
mod json;
pub mod plots;
mod ratios;

use super::args::SuiteArgs;
use super::case::{CaseResult, Verdict};
use super::machine;
use serde_json::Value;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

/// What is known before the first case.
pub struct Begun {
    machine: Value,
    at: SystemTime,
    clock: Instant,
}

impl Begun {
    /// Looks at the machine.
    pub fn now() -> Begun {
        Begun { machine: machine::machine(), at: SystemTime::now(), clock: Instant::now() }
    }
}

/// All that there is to tell.
pub struct Report {
    begun: Begun,
    took: Duration,
    load_at_end: Option<String>,
    versions: Value,
    repetitions: u32,
    duration: Duration,
    only: Vec<String>,
    anywhere: bool,
    /// The shortest round trip of a line between the two cores, in nanoseconds, where it was looked at.
    nearest: Option<f64>,
    results: Vec<CaseResult>,
}

impl Report {
    /// Of a run.
    pub fn new(args: &SuiteArgs, begun: Begun, results: Vec<CaseResult>, nearest: Option<f64>) -> Report {
        Report {
            took: begun.clock.elapsed(),
            begun,
            load_at_end: machine::load(),
            versions: machine::versions(),
            repetitions: args.repetitions,
            duration: args.duration,
            only: args.only.clone(),
            anywhere: args.anywhere,
            nearest,
            results,
        }
    }

    /// Whether every case that can be here was measured as often as was asked for.
    pub fn is_complete(&self) -> bool {
        self.results.iter().all(|result| match result.verdict {
            Verdict::Measured => result.samples.len() + result.apart.len() >= self.repetitions as usize,
            Verdict::NotRun(_) | Verdict::Failed(_) => true,
            Verdict::Missed => false,
        })
    }

    /// Cases that went wrong.
    pub fn failed(&self) -> usize {
        self.count(|verdict| matches!(verdict, Verdict::Failed(_)))
    }

    fn count(&self, of: impl Fn(&Verdict) -> bool) -> usize {
        self.results.iter().filter(|result| of(&result.verdict)).count()
    }

    /// In a line.
    pub fn summary(&self) -> String {
        let mut text = format!(
            "{} cases measured, {} not run, {} failed",
            self.count(|verdict| *verdict == Verdict::Measured),
            self.count(|verdict| matches!(verdict, Verdict::NotRun(_))),
            self.failed()
        );
        if !self.is_complete() {
            text += &format!("; INCOMPLETE: stopped, {} missed", self.count(|v| *v == Verdict::Missed));
        }
        text
    }

    /// The object.
    pub fn json(&self) -> Value {
        json::object(self)
    }

    /// Writes `suite.html` and `suite.json` into a directory that is there.
    pub fn write(&self, directory: &Path) -> io::Result<Vec<PathBuf>> {
        let files = [("suite.html", html::page(self)), ("suite.json", format!("{:#}\n", self.json()))];
        let write = |(name, text): (&str, String)| {
            let file = directory.join(name);
            std::fs::write(&file, text).map(|()| file)
        };
        files.into_iter().map(write).collect()
    }
}

/// A figure for people: three or four digits that count.
pub fn figure(value: f64) -> String {
    match value.abs() {
        0.0 => "0".into(),
        small if small < 0.001 => format!("{value:.1e}"),
        small if small < 1.0 => format!("{value:.4}"),
        small if small < 10.0 => format!("{value:.2}"),
        small if small < 100.0 => format!("{value:.1}"),
        _ => format!("{value:.0}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_have_as_many_digits_as_count() {
        let said: Vec<String> = [0.0, 0.00012, 0.1234567, 1.2345, 12.345, 12345.6].map(figure).into();
        assert_eq!(said, ["0", "1.2e-4", "0.1235", "1.23", "12.3", "12346"]);
    }
}
