//! A case: one thing to measure, and what came of it.

use super::context::Context;
use super::metric::Metric;
use std::collections::BTreeMap;

/// The figures of one measurement, by the names of [`super::metric::METRICS`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sample(pub BTreeMap<&'static str, f64>);

/// Why a measurement gave no figures.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// It cannot be made here: what is missing.
    NotRun(String),
    /// It went wrong.
    Failed(String),
    /// The suite was told to stop.
    Stopped,
}

/// How a measurement is made.
pub trait Job {
    /// Makes it once.
    fn run(&self, context: &mut Context) -> Result<Sample, Trouble>;
    /// The commands that it takes, for whoever wants to repeat it.
    fn commands(&self) -> Vec<String>;
}

/// Where a case stands in a plot.
#[derive(Clone, Debug)]
pub struct Point {
    /// The plot's name.
    pub plot: &'static str,
    /// The line that it belongs to.
    pub series: String,
    /// Its place on the x axis.
    pub x: f64,
}

/// One thing to measure.
pub struct Case {
    /// What it is measured with.
    pub group: &'static str,
    /// Its name within the group.
    pub name: String,
    /// What it is, in words.
    pub about: String,
    /// The figure that stands for it.
    pub primary: &'static Metric,
    /// Where it is drawn.
    pub points: Vec<Point>,
    /// How it is measured.
    pub job: Box<dyn Job>,
    /// Seconds that it takes besides its duration, about.
    pub overhead_seconds: f64,
    /// Nothing goes from core to core.
    pub one_core: bool,
}

impl Case {
    /// `GROUP/NAME`.
    pub fn id(&self) -> String {
        format!("{}/{}", self.group, self.name)
    }

    /// Nothing of it goes from core to core: it does not matter where they are.
    pub fn on_one_core(mut self) -> Case {
        self.one_core = true;
        self
    }

    /// Draws it there, too.
    pub fn drawn(mut self, plot: &'static str, series: impl Into<String>, x: impl Into<f64>) -> Case {
        self.points.push(Point { plot, series: series.into(), x: x.into() });
        self
    }
}

/// Where a case stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// As often as was asked for, or until the suite was stopped.
    Measured,
    /// Not once: it cannot be here.
    NotRun(String),
    /// It went wrong.
    Failed(String),
    /// The suite was stopped before its turn.
    Missed,
}

impl Verdict {
    /// In a word.
    pub fn name(&self) -> &'static str {
        match self {
            Verdict::Measured => "measured",
            Verdict::NotRun(_) => "not run",
            Verdict::Failed(_) => "failed",
            Verdict::Missed => "missed",
        }
    }

    /// Why, where it was not measured.
    pub fn reason(&self) -> Option<&str> {
        match self {
            Verdict::NotRun(why) | Verdict::Failed(why) => Some(why),
            Verdict::Missed => Some("the suite was stopped before its turn"),
            Verdict::Measured => None,
        }
    }
}

/// A case and its repetitions.
pub struct CaseResult {
    /// The case.
    pub case: Case,
    /// What each repetition measured while the cores were near.
    pub samples: Vec<Sample>,
    /// And while they were not.
    pub apart: Vec<Sample>,
    /// Where it stands.
    pub verdict: Verdict,
    /// What was wrong with a try that was made once more because the cores were apart; its repetition has figures.
    pub trouble: Option<String>,
}

impl CaseResult {
    /// Why it was not measured, or what went wrong although it was.
    pub fn reason(&self) -> Option<&str> {
        self.verdict.reason().or(self.trouble.as_deref())
    }

    /// Whether the cores were near in none of its repetitions.
    pub fn is_apart(&self) -> bool {
        self.samples.is_empty() && !self.apart.is_empty()
    }

    /// The repetitions that count: where the cores were never near, all that there are.
    pub fn counted(&self) -> &[Sample] {
        if self.samples.is_empty() { &self.apart } else { &self.samples }
    }

    /// One figure of all repetitions that count.
    pub fn raw(&self, metric: &str) -> Vec<f64> {
        figures(self.counted(), metric)
    }

    /// What one figure was while the cores were apart, beside those that count.
    pub fn raw_apart(&self, metric: &str) -> Vec<f64> {
        if self.is_apart() { Vec::new() } else { figures(&self.apart, metric) }
    }

    /// What they come to.
    pub fn summary(&self, metric: &str) -> Option<super::statistics::Summary> {
        super::statistics::Summary::of(&self.raw(metric))
    }
}

fn figures(samples: &[Sample], metric: &str) -> Vec<f64> {
    samples.iter().filter_map(|sample| sample.0.get(metric).copied()).collect()
}
