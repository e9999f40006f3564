//! `rockhopper ping`: round trips to a peer over a connection that connection management makes, like rping.

mod report;

use super::failure::Failure;
use super::stop;
use clap::{Args, ValueEnum};
use rockhopper::cm::{CmAddr, PortSpace};
use rockhopper::perf::Shared;
use rockhopper::programs::{self, Messages, PingOptions, Program, VisitOptions};
use rockhopper::{Config, Device, Endpoint};
use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

/// Longest data.
const MAX_SIZE: u64 = 1 << 20;

#[derive(Args)]
pub struct PingArgs {
    /// Name or address of the peer's RDMA port; a link-local one with the name of ours behind it, like fe80::1%port0.
    host: String,
    /// Configuration file of this end.
    #[arg(short, long, value_name = "FILE")]
    config: PathBuf,
    /// Round trips; without end if 0.
    #[arg(short = 'n', long, value_name = "N", default_value_t = 5)]
    count: u64,
    /// Bytes of data, each way.
    #[arg(short, long, value_name = "BYTES", default_value_t = 64, value_parser = clap::value_parser!(u64).range(0..=MAX_SIZE))]
    size: u64,
    /// Milliseconds from one round trip to the next; 0: at once.
    #[arg(short, long, value_name = "MS", default_value_t = 1000, value_parser = clap::value_parser!(u64).range(0..=3_600_000))]
    interval: u64,
    /// RC: READ and WRITE of our memory by an rping server. UD: datagrams that a server like udaddy's sends back.
    #[arg(short = 'C', long, value_enum, ignore_case = true, default_value = "rc")]
    connection: Service,
    /// Port of the service [default: 7174].
    #[arg(short, long, value_name = "PORT", value_parser = clap::value_parser!(u16).range(1..))]
    port: Option<u16>,
    /// Milliseconds that an answer may take.
    #[arg(short = 'W', long, value_name = "MS", default_value_t = 1000, value_parser = clap::value_parser!(u64).range(1..=3_600_000))]
    timeout: u64,
    /// Be the client of this program instead, with its own words: ucmatose, udaddy, cmtime, or mckey, whose HOST is a group;
    /// --count and --size are its -C and -S.
    #[arg(long, value_name = "PROGRAM", value_parser = peer, conflicts_with = "connection")]
    peer: Option<Program>,
    /// With --peer mckey: wait for what others send to the group, instead of sending.
    #[arg(long, requires = "peer")]
    receive: bool,
    /// With --peer: connections, its -c.
    #[arg(long, value_name = "N", requires = "peer", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    connections: u32,
    /// Address of ours to connect from; by default the one that the way begins at.
    #[arg(short = 'I', long, value_name = "IP")]
    source: Option<IpAddr>,
    /// Say only what came of it.
    #[arg(short, long)]
    quiet: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Service {
    Rc,
    Ud,
}

/// Programs that have something else to say than round trips.
fn peer(text: &str) -> Result<Program, String> {
    match (text, text.parse()) {
        ("mckey", _) => Ok(Program::Mckey),
        (_, Ok(program @ (Program::Ucmatose | Program::Udaddy | Program::Cmtime))) => Ok(program),
        _ => Err("the programs to be a client of are ucmatose, udaddy, cmtime and mckey".into()),
    }
}

pub fn run(args: &PingArgs, json: bool) -> Result<(), Failure> {
    let config = Config::load(&args.config)?;
    let program = match (args.peer, args.connection) {
        (Some(program), _) => program,
        (None, Service::Rc) => Program::Rping,
        (None, Service::Ud) => Program::Udaddy,
    };
    let host = programs::destination(&args.host).map_err(Failure::Setup)?;
    let to: CmAddr = (host, args.port.unwrap_or(program.port())).into();
    let stop = stop::on_signal()?;
    let endpoint = Endpoint::start(&config)?;
    for device in endpoint.devices() {
        device.wait_for_link(Device::LINK_PATIENCE, || stop.is_stopped())?;
    }
    if args.peer.is_some() {
        return visit(args, program, to, &endpoint, &stop, json);
    }
    let options = PingOptions {
        program,
        to,
        from: args.source,
        count: (args.count > 0).then_some(args.count),
        size: size(args, program, &endpoint)?,
        interval: Duration::from_millis(args.interval),
        patience: Duration::from_millis(args.timeout),
    };
    let report = report::Report::new(&args.host, &options, json, args.quiet);
    let outcome = programs::ping(&endpoint, &options, &stop, |pinged| report.say(pinged));
    report.end(outcome?, stop.is_stopped())
}

fn visit(
    args: &PingArgs,
    program: Program,
    to: CmAddr,
    endpoint: &Endpoint,
    stop: &Shared,
    json: bool,
) -> Result<(), Failure> {
    let count = u32::try_from(args.count).map_err(|_| Failure::setup("--count is too large"))?;
    let options = VisitOptions {
        program,
        to,
        from: args.source,
        connections: args.connections,
        receives: args.receive,
        messages: Messages { count, size: size(args, program, endpoint)? },
        patience: Duration::from_millis(args.timeout),
    };
    let outcome = programs::visit(endpoint, &options, stop)?;
    report::visited(&args.host, &options, &outcome, json);
    Ok(())
}

/// A datagram has to fit into a packet of every port that it may leave by.
fn size(args: &PingArgs, program: Program, endpoint: &Endpoint) -> Result<usize, Failure> {
    let most =
        endpoint.devices().iter().map(|device| u64::from(device.path_mtu().bytes())).min().unwrap_or(0);
    if program.space() == PortSpace::Udp && args.size > most {
        return Err(Failure::setup(format!(
            "a datagram carries {most} bytes at most: use less with --size, or ping with --connection rc"
        )));
    }
    Ok(args.size as usize)
}
