//! Printing: a table as it grows, or one JSON object at the end.

use crate::cli::Cli;
use crate::failure::Failure;
use crate::{json, table};
use rockhopper::perf::Outcome;

/// Where and how it ran.
#[derive(Clone, Debug)]
pub struct Place {
    /// CPUs: client and server of a loopback, else the workers'. Empty when not pinned.
    pub cores: Vec<usize>,
    /// How the workers wait: `caller`, `busy` or `adaptive`.
    pub polling: &'static str,
    /// The port's driver.
    pub driver: String,
}

/// Collects outcomes and prints them.
pub struct Report<'a> {
    cli: &'a Cli,
    place: Place,
    outcomes: Vec<Outcome>,
}

impl<'a> Report<'a> {
    /// Nothing printed yet.
    pub fn new(cli: &'a Cli, place: Place) -> Self {
        Report { cli, place, outcomes: Vec::new() }
    }

    /// One more run.
    pub fn add(&mut self, outcome: Outcome) {
        if !self.cli.json {
            if self.outcomes.is_empty() {
                print!("{}", table::head(&outcome, &self.place));
            }
            print!("{}", table::row(&outcome));
        }
        self.outcomes.push(outcome);
    }

    /// The end: the JSON object, and what it all means for the exit status.
    pub fn finish(self) -> Result<(), Failure> {
        if self.cli.json && !self.outcomes.is_empty() {
            let many = self.cli.run.size == Some(crate::cli::Sizes::All);
            println!("{}", json::object(&self.outcomes, &self.place, many));
        }
        if !self.cli.json && !self.outcomes.is_empty() {
            print!("{}", table::foot(&self.outcomes));
        }
        Failure::of_outcomes(&self.outcomes)
    }
}
