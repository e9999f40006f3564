//! The command line: what there is, and what each command ends with.

mod address;
mod check;
mod conform;
mod demo;
mod doctor;
mod failure;
mod out;
mod ping;
mod serve;
mod services;
mod sim;
mod stats;
mod stop;
mod tally;

use clap::{Parser, Subcommand};
use std::net::{IpAddr, SocketAddr};
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
    /// Both ends in one process: verify every operation, show speed and latency. Needs no NIC and no privileges, but for --config.
    Demo(DemoArgs),
    /// Bring an endpoint up: answers ARP, neighbour discovery and ping, serves rockhopper-perf, until Ctrl-C.
    Serve(ServeArgs),
    /// Round trips to a peer over a connection that rdma_cm makes: to Linux' rping, or to `rockhopper serve`.
    Ping(ping::PingArgs),
    /// Check what this machine, and a configuration, need; say how to mend what is missing.
    Doctor(DoctorArgs),
    /// Show what a running endpoint has counted.
    Stats(StatsArgs),
    /// Show, add or remove addresses of a running endpoint.
    Address(address::AddressArgs),
    /// Hold captures against the rules of the protocol: 0 when none is broken, 1 with rule, frame and words when one is.
    Check(CheckArgs),
    /// Hold a RoCEv2 device to the rules of the protocol: a scripted peer plays both roles, rule by rule.
    Conform(ConformArgs),
    /// Play whole worlds in virtual time, each from a seed, and verify everything. Needs no NIC, no DPDK device and no privileges.
    Sim(sim::SimArgs),
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
    /// Verify between the first two ports of this configuration file, which reach each other, instead of two joined in memory.
    #[arg(short, long, value_name = "FILE")]
    config: Option<PathBuf>,
}

#[derive(clap::Args)]
struct ServeArgs {
    /// Configuration file; see configs/ for one per kind of port.
    #[arg(short, long, value_name = "FILE")]
    config: PathBuf,
    /// Where to listen for rockhopper-perf clients, instead of [control] listen. Further ports take the next numbers.
    #[arg(long, value_name = "ADDRESS:PORT")]
    listen: Option<SocketAddr>,
    /// Where to listen for `rockhopper conform`: whoever connects may make objects on the first port's device.
    #[arg(long, value_name = "ADDRESS:PORT")]
    agent: Option<SocketAddr>,
    /// What to serve to clients that connect by rdma_cm: `all`, `none`, or some of rping, udaddy, ucmatose, cmtime, perftest, perf,
    /// each with another port if need be: rping=7174,perf.
    #[arg(long, value_name = "PROGRAM[=PORT],...", default_value = "all")]
    cm: services::Programs,
    /// How many messages ucmatose's clients expect, and of how many bytes: its -C and -S.
    #[arg(long, value_name = "COUNTxSIZE", default_value = "10x100", value_parser = services::messages)]
    ucmatose: rockhopper::programs::Messages,
    /// Print a line for each connection of rdma_cm that ends, instead of counts every few seconds.
    #[arg(short, long)]
    verbose: bool,
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

#[derive(clap::Args)]
struct ConformArgs {
    /// The device is an endpoint in this process. Needs no NIC and no privileges.
    #[arg(long)]
    loopback: bool,
    /// The device has this address on the link of the port that --config describes.
    #[arg(long, value_name = "IP")]
    target: Option<IpAddr>,
    /// Where the device's agent listens: `rockhopper serve --agent`, or scripts/interop/conform-agent.py.
    #[arg(long, value_name = "ADDRESS:PORT")]
    agent: Option<SocketAddr>,
    #[command(flatten)]
    given: conform::given::GivenArgs,
    /// Configuration file; its first port is the peer's.
    #[arg(short, long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Play the rules of this directory's *.rule files instead of the built-in ones.
    #[arg(long, value_name = "DIR")]
    scripts: Option<PathBuf>,
    /// Play only rules whose name contains this.
    #[arg(long, value_name = "PATTERN")]
    only: Option<String>,
    /// Show the rules instead of playing them.
    #[arg(long)]
    list: bool,
    /// Show every rule with its packets, not just those that did not pass.
    #[arg(short, long)]
    verbose: bool,
    /// Write the packets of each rule that failed to DIR/RULE.pcapng.
    #[arg(long, value_name = "DIR")]
    pcapng: Option<PathBuf>,
    /// Stretch silences and patience, for devices that are slow.
    #[arg(long, value_name = "TIMES", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=100))]
    stretch: u32,
}

/// Runs the program.
pub fn run() -> ExitCode {
    let cli = Cli::parse();
    let result = match &cli.command {
        Command::Demo(args) => demo::run(args, cli.json),
        Command::Serve(args) => serve::run(args, cli.json),
        Command::Ping(args) => ping::run(args, cli.json),
        Command::Doctor(args) => doctor::run(args.config.as_deref(), cli.json),
        Command::Stats(args) => stats::run(args, cli.json),
        Command::Address(args) => address::run(args, cli.json),
        Command::Check(args) => check::run(&args.files, cli.json),
        Command::Conform(args) => conform::run(args, cli.json),
        Command::Sim(args) => sim::run(args, cli.json),
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
