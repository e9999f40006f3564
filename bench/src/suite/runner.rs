//! The rounds: every case once, then every case again. A signal ends them, and what was measured stays.

use super::case::{Case, CaseResult, Sample, Trouble, Verdict};
use super::context::Context;
use super::nearness::{Nearness, Trips};
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

/// How often one repetition is made while the cores do not stay near.
const TRIES: u32 = 3;

/// A case under way.
struct Turn {
    case: Case,
    /// What was measured, and where the cores were, if that is looked at.
    measured: Vec<(Sample, Option<Trips>)>,
    verdict: Verdict,
    /// What was wrong with a try that was one more than needed.
    trouble: Option<String>,
    /// Seconds that it took, the last time.
    seconds: f64,
}

/// Measures every case so often, with cores that are near where `nearness` looks at them.
pub fn run(
    cases: Vec<Case>,
    repetitions: u32,
    context: &mut Context,
    nearness: &mut Option<Nearness>,
) -> Vec<CaseResult> {
    let stop = context.stop.clone();
    if let Some(nearness) = nearness {
        nearness.scout(&stop);
    }
    let turns = rounds(cases, repetitions, context, nearness);
    let nearest = nearness.as_ref().and_then(Nearness::nearest);
    turns.into_iter().map(|turn| turn.result(nearest)).collect()
}

fn rounds(
    cases: Vec<Case>,
    repetitions: u32,
    context: &mut Context,
    nearness: &mut Option<Nearness>,
) -> Vec<Turn> {
    let stop = context.stop.clone();
    let guess = |case: &Case| context.duration.as_secs_f64() + case.overhead_seconds;
    let mut turns: Vec<Turn> = cases
        .into_iter()
        .map(|case| Turn {
            seconds: guess(&case),
            case,
            measured: Vec::new(),
            verdict: Verdict::Missed,
            trouble: None,
        })
        .collect();
    let all = turns.len() * repetitions as usize;
    for round in 0..repetitions {
        for at in 0..turns.len() {
            if stop.is_asked() {
                return turns;
            }
            if matches!(turns[at].verdict, Verdict::NotRun(_) | Verdict::Failed(_)) {
                continue;
            }
            let said = turns[at].take(context, nearness);
            let number = round as usize * turns.len() + at + 1;
            let id = turns[at].case.id();
            let left = left(&turns, at, repetitions - round);
            eprintln!("[{number:>4}/{all}] round {} of {repetitions}  {id}  {said}{left}", round + 1);
        }
    }
    turns
}

impl Turn {
    /// Measures once, or again where the cores went apart meanwhile; what to say of it.
    fn take(&mut self, context: &mut Context, nearness: &mut Option<Nearness>) -> String {
        let begin = Instant::now();
        let mut said = String::new();
        let mut nearness = nearness.as_mut().filter(|_| !self.case.one_core);
        for turn in 1..=TRIES {
            let before = nearness.as_mut().and_then(|nearness| nearness.settle(&context.stop));
            let outcome = self.case.job.run(context);
            let after = nearness.as_mut().and_then(|nearness| nearness.look());
            let trips = before.zip(after).map(|(before, after)| Trips { before, after });
            let stayed = match (trips, &nearness) {
                (Some(trips), Some(nearness)) => trips.are_near(nearness.nearest()),
                _ => true,
            };
            let measured = outcome.is_ok();
            said += &self.note(outcome, trips, turn > 1);
            if stayed || !measured || turn == TRIES || context.stop.is_asked() {
                if !stayed {
                    said += " (cores apart)";
                }
                break;
            }
            said += " (cores apart), again: ";
        }
        self.seconds = begin.elapsed().as_secs_f64();
        said
    }

    /// What came of a try. One that was made `again` has figures before it already, of cores that were apart: they stand, whatever
    /// becomes of it.
    fn note(&mut self, outcome: Result<Sample, Trouble>, trips: Option<Trips>, again: bool) -> String {
        match outcome {
            Ok(sample) => {
                let said = told(&sample, self.case.primary);
                self.measured.push((sample, trips));
                self.verdict = Verdict::Measured;
                said
            }
            Err(Trouble::Stopped) => "stopped".into(),
            Err(Trouble::NotRun(why) | Trouble::Failed(why)) if again => {
                let said = format!("FAILED: {why}");
                self.trouble = Some(why);
                said
            }
            Err(Trouble::NotRun(why)) => {
                let said = format!("not run: {why}");
                self.verdict = Verdict::NotRun(why);
                said
            }
            Err(Trouble::Failed(why)) => {
                let said = format!("FAILED: {why}");
                self.verdict = Verdict::Failed(why);
                said
            }
        }
    }

    /// What came of it, now that it is known what near is.
    fn result(self, nearest: Option<f64>) -> CaseResult {
        let is_near =
            |(_, trips): &(Sample, Option<Trips>)| trips.is_none_or(|trips| trips.are_near(nearest));
        let (near, apart): (Vec<_>, Vec<_>) = self.measured.into_iter().partition(is_near);
        let samples = |measured: Vec<(Sample, Option<Trips>)>| measured.into_iter().map(|(sample, _)| sample);
        CaseResult {
            case: self.case,
            samples: samples(near).collect(),
            apart: samples(apart).collect(),
            verdict: self.verdict,
            trouble: self.trouble,
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
        .filter(|(_, turn)| !matches!(turn.verdict, Verdict::NotRun(_) | Verdict::Failed(_)))
        .map(|(index, turn)| turn.seconds * f64::from(if index > at { rounds } else { rounds - 1 }))
        .sum();
    let seconds = seconds.round() as u64;
    if seconds == 0 {
        return String::new();
    }
    format!("  (about {} left)", format_duration(Duration::from_secs(seconds)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::suite::case::Job;
    use crate::suite::metric::METRICS;
    use std::cell::Cell;
    use std::rc::Rc;

    /// Measures 1, 2, 3 and so on, but for one that fails.
    struct Counts {
        last: Rc<Cell<f64>>,
        fails: f64,
    }

    impl Job for Counts {
        fn run(&self, _: &mut Context) -> Result<Sample, Trouble> {
            self.last.set(self.last.get() + 1.0);
            if self.last.get() == self.fails {
                return Err(Trouble::Failed("broken".into()));
            }
            Ok(Sample([(METRICS[0].id, self.last.get())].into()))
        }

        fn commands(&self) -> Vec<String> {
            Vec::new()
        }
    }

    /// What comes of two repetitions, given what looks at the cores see: before and after each try.
    fn measured(trips: &'static [f64]) -> CaseResult {
        of_a_case(trips, false, 0.0)
    }

    fn of_a_case(trips: &'static [f64], one_core: bool, fails: f64) -> CaseResult {
        let case = Case {
            group: "none",
            name: "counts".into(),
            about: "counts".into(),
            primary: &METRICS[0],
            points: Vec::new(),
            job: Box::new(Counts { last: Rc::default(), fails }),
            overhead_seconds: 0.0,
            one_core,
        };
        let mut trips = trips.iter().copied();
        let mut nearness = Some(Nearness::by(move || trips.next()));
        let mut context = Context::new(Duration::ZERO, &Stop::default()).unwrap();
        let turns = rounds(vec![case], 2, &mut context, &mut nearness);
        let nearest = nearness.as_ref().and_then(Nearness::nearest);
        turns.into_iter().map(|turn| turn.result(nearest)).next().unwrap()
    }

    #[test]
    fn what_was_measured_with_cores_apart_is_measured_again_and_told_apart() {
        let name = METRICS[0].id;
        let result = measured(&[100.0, 110.0, 110.0, 120.0]);
        assert_eq!((result.raw(name), result.raw_apart(name)), (vec![1.0, 2.0], vec![]));
        // They went apart while the first was measured, and came back.
        let result = measured(&[100.0, 470.0, 100.0, 110.0, 110.0, 120.0]);
        assert_eq!((result.raw(name), result.raw_apart(name)), (vec![2.0, 3.0], vec![1.0]));
        assert!(!result.is_apart());
        // Three times at most.
        let result = measured(&[100.0, 470.0, 100.0, 470.0, 100.0, 470.0, 100.0, 110.0]);
        assert_eq!((result.raw(name), result.raw_apart(name)), (vec![4.0], vec![1.0, 2.0, 3.0]));
    }

    #[test]
    fn a_try_that_fails_after_one_with_cores_apart_leaves_its_figures() {
        let name = METRICS[0].id;
        let trips = &[100.0, 470.0, 100.0, 110.0, 110.0, 120.0];
        let result = of_a_case(trips, false, 2.0);
        assert_eq!((result.raw(name), result.raw_apart(name)), (vec![3.0], vec![1.0]));
        assert_eq!((&result.verdict, result.reason()), (&Verdict::Measured, Some("broken")));
        // A repetition that has none fails, and the case with it.
        let result = of_a_case(trips, false, 1.0);
        assert_eq!((&result.verdict, result.reason()), (&Verdict::Failed("broken".into()), Some("broken")));
        let result = of_a_case(trips, false, 3.0);
        assert_eq!((result.verdict.name(), result.raw(name)), ("failed", vec![2.0]));
    }

    #[test]
    fn where_nobody_can_look_and_where_cores_are_never_near_all_counts() {
        let name = METRICS[0].id;
        let result = measured(&[]);
        assert_eq!((result.raw(name), result.is_apart()), (vec![1.0, 2.0], false));
        // Far, if somebody looked.
        let result = of_a_case(&[100.0, 470.0, 470.0, 470.0], true, 0.0);
        assert_eq!((result.raw(name), result.raw_apart(name)), (vec![1.0, 2.0], vec![]));
        let trips = |near: f64| Some(Trips { before: near, after: near });
        let turn = |trips| Turn {
            case: crate::suite::cases::all(Duration::ZERO).remove(0),
            measured: vec![(Sample([(name, 7.0)].into()), trips)],
            verdict: Verdict::Measured,
            trouble: None,
            seconds: 0.0,
        };
        let apart = turn(trips(470.0)).result(Some(100.0));
        assert_eq!((apart.raw(name), apart.raw_apart(name), apart.is_apart()), (vec![7.0], vec![], true));
        let near = turn(trips(470.0)).result(Some(400.0));
        assert_eq!((near.raw(name), near.is_apart()), (vec![7.0], false));
    }
}
