//! `rockhopper-perf suite`: all measurements in one run, interleaved, with one report.
//!
//! | question | file |
//! | --- | --- |
//! | which flags there are | `args.rs` |
//! | what is measured, and how | `cases/`: a file per group |
//! | what a case is, and what comes of it | `case.rs`, `metric.rs`, `statistics.rs` |
//! | in which order, and what Ctrl-C does | `runner.rs` |
//! | whether the cores are near each other meanwhile | `nearness.rs` |
//! | where programs run: processes, namespaces, wires | `child.rs`, `hosts.rs`, `context.rs` |
//! | what is written | `report/` |
//!
//! Every case is a program of its own, ours with `--json` or a foreign one, so each has its own DPDK. Round 1 of all cases is
//! followed by round 2 of all: what changes on the machine meanwhile touches all of them alike.

mod args;
mod case;
mod cases;
mod child;
mod context;
mod hosts;
mod machine;
mod metric;
mod nearness;
mod report;
mod runner;
mod statistics;

use crate::failure::Failure;
use args::SuiteArgs;
use clap::Parser;
use context::Context;
use nearness::Nearness;
use runner::Stop;

/// Runs what was asked for. `arguments` begin with the program's name.
pub fn run(arguments: impl Iterator<Item = String>) -> Result<(), Failure> {
    let args = SuiteArgs::parse_from(arguments);
    let cases = args.narrowed(cases::all(args.duration))?;
    if args.list {
        cases.iter().for_each(|case| println!("{:<40} {}", case.id(), case.about));
        return Ok(());
    }
    // Asked before an hour is spent on what cannot be written.
    std::fs::create_dir_all(&args.output).map_err(|why| cannot_write(&args, &why))?;
    let stop = Stop::on_signals()?;
    let mut context = Context::new(args.duration, &stop)?;
    let begun = report::Begun::now();
    let mut nearness = (!args.anywhere).then(|| Nearness::new(context.cores));
    let results = runner::run(cases, args.repetitions, &mut context, &mut nearness);
    drop(context);
    let nearest = nearness.as_ref().and_then(Nearness::nearest);
    let report = report::Report::new(&args, begun, results, nearest);
    let files = report.write(&args.output).map_err(|why| cannot_write(&args, &why))?;
    if args.json {
        println!("{}", report.json());
    }
    eprintln!("{}", report.summary());
    files.iter().for_each(|file| eprintln!("wrote {}", file.display()));
    match report.failed() {
        _ if stop.is_asked() => Err(Failure::Interrupted),
        0 => Ok(()),
        failed => Err(Failure::Run(format!("{failed} cases failed; the report says why"))),
    }
}

fn cannot_write(args: &SuiteArgs, why: &std::io::Error) -> Failure {
    Failure::setup(format!(
        "nothing can be written into {}: {why}; choose another directory with --output",
        args.output.display()
    ))
}
