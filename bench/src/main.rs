//! `rockhopper-perf`: perftest-like measurements of RDMA operations over Rockhopper.
//!
//! | question | file |
//! | --- | --- |
//! | which flags there are | `cli.rs`, made into runs by `plan.rs` |
//! | how both ends come up in one process | `loopback.rs` |
//! | how one end comes up on a port | `network.rs` |
//! | what is different with a Linux program at the other end | `peer.rs` |
//! | what is printed | `table.rs`, `json.rs`, `progress.rs` |
//! | what Ctrl-C does | `stop.rs` |
//! | all measurements in one run, with a report | `suite/` |
//! | what of those is no RDMA operation | `probe.rs`, and `limits/` of the library |
//!
//! The sessions themselves, with their loops and checks, are `rockhopper::perf`.
//!
//! Exit status: 0 when all that was asked was done and right, 1 when it was not, 2 when it could not begin,
//! 130 when it was interrupted.
#![forbid(unsafe_code)]

mod cli;
mod failure;
mod json;
mod loopback;
mod network;
mod peer;
mod plan;
mod probe;
mod progress;
mod report;
mod stop;
mod suite;
mod table;

use clap::Parser;
use cli::Cli;
use failure::Failure;
use std::process::ExitCode;

fn main() -> ExitCode {
    let result = run();
    rockhopper::shutdown();
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            if let Some(text) = failure.text() {
                eprintln!("rockhopper-perf: {text}");
            }
            ExitCode::from(failure.status())
        }
    }
}

/// What the first word asks for: a command of its own, or an operation.
fn run() -> Result<(), Failure> {
    // Each has flags of its own, so each has a parser of its own.
    match std::env::args().nth(1).as_deref() {
        Some("suite") => suite::run(std::env::args().skip(1)),
        Some("probe") => probe::run(std::env::args().skip(1)),
        _ => {
            let cli = Cli::parse();
            if cli.loopback.is_some() { loopback::run(&cli) } else { network::run(&cli) }
        }
    }
}
