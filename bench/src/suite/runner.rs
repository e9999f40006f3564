//! The rounds: every case once, then every case again. A signal ends them, and what was measured stays.

use super::case::{Case, CaseResult, Sample, Trouble, Verdict};
use super::context::Context;
use crate::failure::Failure;
use humantime::format_duration;
use signal_hook::consts::{SIGINT, SIGTERM};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Whether somebody wants the suite to end.
#[derive(Clone, Debug, Default)]
pub struct Stop(Arc<AtomicBool>);

impl Stop {
    /// From now on signals ask for it.
    pub fn on_signals() -> Result<Stop, Failure> {
        let stop = Stop::default();
        for signal in [SIGINT, SIGTERM] {
            signal_hook::flag::register(signal, Arc::clone(&stop.0))
                .map_err(|why| Failure::setup(format!("signals cannot be caught: {why}")))?;
        }
        Ok(stop)
    }

    /// Whether it was asked for.
    pub fn is_asked(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// A case under way.
struct Turn {
    result: CaseResult,
    /// Seconds that it took, the last time.
    seconds: f64,
}

/// Measures every case so often.
pub fn run(cases: Vec<Case>, repetitions: u32, context: &mut Context, stop: &Stop) -> Vec<CaseResult> {
    let guess = |case: &Case| context.duration.as_secs_f64() + case.overhead_seconds;
    let mut turns: Vec<Turn> = cases
        .into_iter()
        .map(|case| Turn {
            seconds: guess(&case),
            result: CaseResult { case, samples: Vec::new(), verdict: Verdict::Missed },
        })
        .collect();
    let all = turns.len() * repetitions as usize;
    for round in 0..repetitions {
        for at in 0..turns.len() {
            if stop.is_asked() {
                return turns.into_iter().map(|turn| turn.result).collect();
            }
            if matches!(turns[at].result.verdict, Verdict::NotRun(_) | Verdict::Failed(_)) {
                continue;
            }
            let said = take_turn(&mut turns[at], context);
            let number = round as usize * turns.len() + at + 1;
            let id = turns[at].result.case.id();
            let left = left(&turns, at, repetitions - round);
            eprintln!("[{number:>4}/{all}] round {} of {repetitions}  {id}  {said}{left}", round + 1);
        }
    }
    turns.into_iter().map(|turn| turn.result).collect()
}

/// Measures once; what to say of it.
fn take_turn(turn: &mut Turn, context: &mut Context) -> String {
    let begin = Instant::now();
    let outcome = turn.result.case.job.run(context);
    turn.seconds = begin.elapsed().as_secs_f64();
    let primary = turn.result.case.primary;
    match outcome {
        Ok(sample) => {
            let said = told(&sample, primary);
            turn.result.samples.push(sample);
            turn.result.verdict = Verdict::Measured;
            said
        }
        Err(Trouble::Stopped) => "stopped".into(),
        Err(Trouble::NotRun(why)) => {
            let said = format!("not run: {why}");
            turn.result.verdict = Verdict::NotRun(why);
            said
        }
        Err(Trouble::Failed(why)) => {
            let said = format!("FAILED: {why}");
            turn.result.verdict = Verdict::Failed(why);
            said
        }
    }
}

fn told(sample: &Sample, primary: &super::metric::Metric) -> String {
    match sample.0.get(primary.id) {
        Some(value) => format!("{} {}", super::report::figure(*value), primary.unit),
        None => "no figure".into(),
    }
}

/// How long the rest takes: what comes after case `at` in this round, and the rounds to come.
fn left(turns: &[Turn], at: usize, rounds: u32) -> String {
    let seconds: f64 = turns
        .iter()
        .enumerate()
        .filter(|(_, turn)| !matches!(turn.result.verdict, Verdict::NotRun(_) | Verdict::Failed(_)))
        .map(|(index, turn)| turn.seconds * f64::from(if index > at { rounds } else { rounds - 1 }))
        .sum();
    let seconds = seconds.round() as u64;
    if seconds == 0 {
        return String::new();
    }
    format!("  (about {} left)", format_duration(Duration::from_secs(seconds)))
}
