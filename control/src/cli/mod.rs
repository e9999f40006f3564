//! The command line: what there is, and what each command ends with.

mod check;
mod demo;
mod doctor;
mod failure;
mod out;
mod serve;
mod stats;
mod stop;

use clap::{Parser, Subcommand};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;

/// A RoCEv2 endpoint in user space.
#[derive(Parser)]
#[command(name = "rockhopper", version, arg_required_else_help = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
    /// Print JSON instead of text.
    #[arg(long, global = true)]
    json: bool,
}

#[derive(Subcommand)]
enum Command {
    /// Both ends in one process: verify every operation, show speed and latency. Needs no NIC and no privileges.
    Demo(DemoArgs),
    /// Bring an endpoint up: answers ARP, neighbour discovery and ping, serves rockhopper-perf, until Ctrl-C.
    Serve(ServeArgs),
    /// Check what this machine, and a configuration, need; say how to mend what is missing.
    Doctor(DoctorArgs),
    /// Show what a running endpoint has counted.
    Stats(StatsArgs),
    /// Hold captures against the rules of the protocol: 0 when none is broken, 1 with rule, frame and words when one is.
    Check(CheckArgs),
}

#[derive(clap::Args)]
struct DemoArgs {
    /// Verify only; leave the speed table out.
    #[arg(long)]
    no_speed: bool,
    /// Milliseconds of each line of the speed table.
    #[arg(long, value_name = "MS", default_value_t = 250, value_parser = clap::value_parser!(u64).range(1..=60_000))]
    each: u64,
    /// Spoil the link on purpose, as in "drop 1%; reorder 3 every 1000"; lost UC and UD messages are sent again.
    #[arg(long, value_name = "PLAN")]
    impair: Option<rockhopper::ImpairPlan>,
}

#[derive(clap::Args)]
struct ServeArgs {
    /// Configuration file; see configs/ for one per kind of port.
    #[arg(short, long, value_name = "FILE")]
    config: PathBuf,
    /// Where to listen for rockhopper-perf clients, instead of [control] listen. Further ports take the next numbers.
    #[arg(long, value_name = "ADDRESS:PORT")]
    listen: Option<SocketAddr>,
    /// Stop after so many seconds.
    #[arg(long, value_name = "SECONDS")]
    duration: Option<u64>,
    /// Spoil the links of all ports on purpose, as in "drop 1%; reorder 3 every 1000", instead of what [[port]] says.
    #[arg(long, value_name = "PLAN")]
    impair: Option<rockhopper::ImpairPlan>,
}

#[derive(clap::Args)]
struct DoctorArgs {
    /// Check what this configuration file needs, too.
    #[arg(short, long, value_name = "FILE")]
    config: Option<PathBuf>,
}

#[derive(clap::Args)]
struct StatsArgs {
    /// The endpoint's admin socket.
    #[arg(long, value_name = "PATH", required_unless_present = "config", conflicts_with = "config")]
    socket: Option<PathBuf>,
    /// The endpoint's configuration file, which names the socket.
    #[arg(short, long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Show zeros too.
    #[arg(long)]
    all: bool,
}

#[derive(clap::Args)]
struct CheckArgs {
    /// Captures, pcap or pcapng, of anybody's RoCE.
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
}

/// Runs the program.
pub fn run() -> ExitCode {
    let cli = Cli::parse();
    let result = match &cli.command {
        Command::Demo(args) => demo::run(args, cli.json),
        Command::Serve(args) => serve::run(args, cli.json),
        Command::Doctor(args) => doctor::run(args.config.as_deref(), cli.json),
        Command::Stats(args) => stats::run(args, cli.json),
        Command::Check(args) => check::run(&args.files, cli.json),
    };
    rockhopper::shutdown();
    match result {
        // What nobody could read was not done.
        Ok(()) if out::is_lost() => ExitCode::FAILURE,
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            if let Some(text) = failure.text() {
                eprintln!("rockhopper: {text}");
            }
            ExitCode::from(failure.status())
        }
    }
}
