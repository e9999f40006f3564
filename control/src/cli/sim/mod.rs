//! `rockhopper sim`: worlds from seeds, or from a plan file; what fails is cut down and told so that it can be read.

mod report;

use super::failure::Failure;
use super::stop;
use report::Report;
use sim::{Campaign, Choices, Failed, Plan, Totals};
use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// Flags of `rockhopper sim`.
#[derive(clap::Args)]
pub struct SimArgs {
    /// Play this plan file instead of plans from seeds.
    #[arg(value_name = "PLAN", conflicts_with_all = ["seeds", "seed", "jobs"])]
    plan: Option<PathBuf>,
    /// Seeds to play; 2000, or with --seed one.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    seeds: Option<u64>,
    /// The first seed.
    #[arg(long, value_name = "S")]
    seed: Option<u64>,
    /// What links do, instead of something random: 'drop 1%; reorder 3 every 100'.
    #[arg(long, value_name = "PLAN")]
    impair: Option<String>,
    /// Threads; as many as there are CPUs when left out.
    #[arg(long, value_name = "J", value_parser = clap::value_parser!(u64).range(1..=1024))]
    jobs: Option<u64>,
    /// Forge every Nth frame, to see that it is found.
    #[arg(long, value_name = "N", default_value_t = 0)]
    forge: u32,
    /// Write the plan of the first failure, cut down, to this file; replay it with `rockhopper sim FILE`.
    #[arg(long, value_name = "FILE")]
    save: Option<PathBuf>,
}

/// Plays to cut a plan down.
const SHRINK_TRIES: usize = 1_000;

/// Runs the command.
pub fn run(args: &SimArgs, json: bool) -> Result<(), Failure> {
    if let Some(words) = &args.impair {
        words.parse::<impair::Plan>().map_err(Failure::setup)?;
    }
    // The engine's panics are findings: they are told with the seed.
    std::panic::set_hook(Box::new(|_| ()));
    let stopped = stop::on_signal()?;
    let began = Instant::now();
    let (totals, first) = match &args.plan {
        Some(path) => one(args, path)?,
        None => many(args, || stopped.is_stopped()),
    };
    let seconds = began.elapsed().as_secs_f64();
    let wanted = if args.plan.is_some() { 1 } else { count(args) };
    let shrunken = first.map(|plan| sim::shrink(&plan, SHRINK_TRIES));
    let report = Report {
        totals: &totals,
        seconds,
        complete: totals.seeds == wanted,
        impair: args.impair.as_deref(),
        forge: args.forge,
        shrunken: shrunken.as_ref(),
    };
    if json {
        report.print_json()
    } else {
        report.print_text()
    }
    if let (Some(path), Some(plan)) = (&args.save, &shrunken) {
        std::fs::write(path, plan.to_text())
            .map_err(|why| Failure::Run(format!("{} cannot be written: {why}", path.display())))?;
    }
    match () {
        () if !totals.failed.is_empty() => Err(Failure::Told),
        () if totals.seeds < wanted => Err(Failure::Interrupted),
        () => Ok(()),
    }
}

fn count(args: &SimArgs) -> u64 {
    args.seeds.unwrap_or(if args.seed.is_some() { 1 } else { 2_000 })
}

/// A plan file.
fn one(args: &SimArgs, path: &Path) -> Result<(Totals, Option<Plan>), Failure> {
    let told = |why: &dyn std::fmt::Display| Failure::setup(format!("{}: {why}", path.display()));
    let text = std::fs::read_to_string(path).map_err(|why| told(&why))?;
    let mut plan = Plan::parse(&text).map_err(|why| told(&why))?;
    if let Some(words) = &args.impair {
        plan.impair.clone_from(words);
    }
    if args.forge > 0 {
        plan.forge = args.forge;
    }
    let outcome = sim::play(&plan, false);
    let failed: Vec<Failed> =
        outcome.failure.map(|why| Failed { seed: plan.seed, why }).into_iter().collect();
    let first = (!failed.is_empty()).then_some(plan);
    Ok((Totals { seeds: 1, failed, stats: outcome.stats }, first))
}

/// Seeds, until all are played or somebody interrupts.
fn many(args: &SimArgs, stop: impl Fn() -> bool + Sync) -> (Totals, Option<Plan>) {
    let choices = Choices { impair: args.impair.clone(), forge: args.forge };
    let begin = args.seed.unwrap_or(0);
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    let jobs = args.jobs.map_or(cpus, |jobs| jobs as usize);
    let seeds = begin..begin.saturating_add(count(args));
    let progress = Progress {
        total: count(args),
        shown: std::io::stderr().is_terminal().then(|| Mutex::new(Instant::now())),
    };
    let totals = Campaign { seeds, choices: choices.clone(), jobs }
        .run(stop, |done, failed| progress.show(done, failed));
    progress.end();
    let first = totals.failed.first().map(|failed| Plan::random(failed.seed, &choices));
    (totals, first)
}

/// How far it is, for people who wait.
struct Progress {
    total: u64,
    shown: Option<Mutex<Instant>>,
}

impl Progress {
    fn show(&self, done: u64, failed: u64) {
        let Some(mut shown) = self.shown.as_ref().and_then(|shown| shown.try_lock().ok()) else { return };
        if shown.elapsed() >= Duration::from_millis(100) {
            *shown = Instant::now();
            eprint!("\r{done} of {} seeds, {failed} failed ", self.total);
            let _ = std::io::stderr().flush();
        }
    }

    fn end(&self) {
        if self.shown.is_some() {
            eprint!("\r\x1b[K");
        }
    }
}
