//! One end on a port of its own: the server without a host, the client with one.

mod by_cm;

use crate::cli::{Cli, PortArgs};
use crate::failure::Failure;
use crate::loopback::measure;
use crate::report::{Place, Report};
use crate::{peer, plan, stop};
use rockhopper::config::{DeviceKind, Drive, PollMode, PortSettings};
use rockhopper::perf::{
    CmWay, DEFAULT_PORT, Link, PEER_PORT, Params, RunError, ServerOptions, Shared, serve,
};
use rockhopper::{Config, Device, Endpoint};
use std::net::{TcpListener, TcpStream, ToSocketAddrs};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long to try to reach the server.
const CONNECT: Duration = Duration::from_secs(10);
/// How long a server that ends with its client waits for the client to go first.
const LEAVE: Duration = Duration::from_secs(1);
/// How often whoever waits looks again.
const NAP: Duration = Duration::from_millis(50);

/// Runs this end.
pub fn run(cli: &Cli) -> Result<(), Failure> {
    match cli.peer {
        Some(program) => peer::check(cli, program)?,
        None => plan::runs(cli, rockhopper::Mtu::Mtu4096)
            .iter()
            .try_for_each(Params::check)
            .map_err(Failure::setup)?,
    }
    let port = cli.tcp_port.unwrap_or(if cli.peer.is_some() { PEER_PORT } else { DEFAULT_PORT });
    let config = configuration(&cli.port)?;
    let shared = Arc::new(Shared::default());
    stop::on_signal(&shared)?;
    // Reached before the port comes up: a wrong host is told at once.
    let by_tcp = cli.host.as_deref().filter(|_| !cli.cm);
    let server = by_tcp.map(|host| reach(host, port)).transpose()?;
    let endpoint = Endpoint::start(&config)?;
    let device = endpoint
        .device(0)
        .ok_or_else(|| Failure::setup("the configuration names no port; add a [[port]]"))?;
    let place = Place {
        cores: config.workers.cores.clone(),
        polling: match (config.workers.drive, config.workers.poll) {
            (Drive::Caller, _) => "caller",
            (Drive::Threads, PollMode::Busy) => "busy",
            (Drive::Threads, PollMode::Adaptive) => "adaptive",
        },
        driver: device.driver().into(),
    };
    match server {
        _ if cli.cm => by_cm::run(cli, port, &endpoint, &device, &shared, place),
        Some(stream) => {
            device.wait_for_link(Device::LINK_PATIENCE, || shared.is_stopped())?;
            let link = Link::tcp(stream)
                .map_err(|why| Failure::setup(format!("the connection cannot be used: {why}")))?;
            ask(cli, link, None, &device, &shared, place)
        }
        // Only now: a client that gets through finds the port up.
        None => {
            let listener = listen(port)?;
            if !cli.json {
                eprintln!("waiting for a client of {} on TCP port {port}", cli.op);
            }
            wait_for_clients(cli, &listener, &device, &shared, &place)
        }
    }
}

/// The client's part, over a line to its server. `cm`: the way by which the line was made, if it was rdma_cm.
fn ask(
    cli: &Cli,
    link: Link,
    cm: Option<CmWay<'_>>,
    device: &Device,
    shared: &Arc<Shared>,
    place: Place,
) -> Result<(), Failure> {
    let mut report = Report::new(cli, place);
    if let Some(program) = cli.peer {
        peer::run(cli, program, link, cm, device, shared, &mut report)?;
        return report.finish();
    }
    let runs = plan::runs(cli, device.path_mtu());
    let gid_index = cli.port.gid_index.or(cm.and_then(|cm| cm.gid_index()));
    let measured = measure(cli, link, device, shared, (&runs, gid_index), &mut report);
    let reported = report.finish();
    measured.and(reported)
}

fn wait_for_clients(
    cli: &Cli,
    listener: &TcpListener,
    device: &Device,
    shared: &Arc<Shared>,
    place: &Place,
) -> Result<(), Failure> {
    let options = ServerOptions { gid_index: cli.port.gid_index, only: Some(cli.op) };
    loop {
        let stream = match listener.accept() {
            Ok((stream, _)) => stream,
            Err(why) if why.kind() == std::io::ErrorKind::WouldBlock => {
                if shared.is_stopped() {
                    return Err(Failure::Interrupted);
                }
                device.drive();
                std::thread::sleep(NAP);
                continue;
            }
            Err(why) => return Err(Failure::Run(format!("no client can connect: {why}"))),
        };
        let served = Link::tcp(stream)
            .map_err(|why| Failure::Run(format!("a client's connection failed: {why}")))
            .and_then(|link| serve_one(cli, link, device, &options, shared, place.clone()));
        if cli.once {
            let_client_leave(device);
            return served;
        }
        match served {
            Err(Failure::Interrupted) => return Err(Failure::Interrupted),
            Err(failure) => eprintln!("rockhopper-perf: {}", failure.text().unwrap_or("a client failed")),
            Ok(()) => {}
        }
    }
}

/// Waits for a link that goes down with the client, as net_memif's does, and a moment more: its driver (DPDK 22.11) frees the
/// shared memory on a thread of its own, and a port that closes at that moment takes the process with it.
fn let_client_leave(device: &Device) {
    if device.driver() != "net_memif" {
        return;
    }
    let end = Instant::now() + LEAVE;
    while Instant::now() < end && device.query_port().is_ok_and(|port| port.up) {
        std::thread::sleep(NAP);
    }
    std::thread::sleep(NAP);
}

fn serve_one(
    cli: &Cli,
    link: Link,
    device: &Device,
    options: &ServerOptions,
    shared: &Arc<Shared>,
    place: Place,
) -> Result<(), Failure> {
    let mut report = Report::new(cli, place);
    if let Some(program) = cli.peer {
        peer::run(cli, program, link, None, device, shared, &mut report)?;
        return report.finish();
    }
    let served = serve(link, device, options, shared, |outcome| report.add(outcome.clone()));
    if matches!(served, Err(RunError::Stopped)) {
        eprintln!("stopped; messages of the run under way: {}", shared.messages());
    }
    let reported = report.finish();
    served?;
    reported
}

/// The configuration file's, or one port as the flags say.
pub fn configuration(args: &PortArgs) -> Result<Config, Failure> {
    let mut config = match (&args.config, &args.vdev) {
        (Some(file), _) => Config::load(file)?,
        (None, Some(vdev)) => {
            let (name, arguments) = vdev.split_once(',').unwrap_or((vdev, ""));
            let device = DeviceKind::Vdev { name: name.into(), args: arguments.into() };
            let addresses = args
                .address
                .iter()
                .map(|text| text.parse().map_err(|why| Failure::setup(format!("--address {text}: {why}"))))
                .collect::<Result<_, _>>()?;
            Config { ports: vec![PortSettings::new("port0", device, addresses)], ..Config::default() }
        }
        (None, None) => {
            return Err(Failure::setup(
                "no port: name a configuration with -c FILE or a device with --vdev, or try --loopback ring",
            ));
        }
    };
    if let (Some(plan), [port, ..]) = (&args.impair, &mut config.ports[..]) {
        port.impair = Some(plan.clone());
    }
    if !args.cores.is_empty() {
        config.workers.cores.clone_from(&args.cores);
    }
    Ok(config)
}

fn listen(port: u16) -> Result<TcpListener, Failure> {
    // One socket for both families, where the system has IPv6.
    let listener =
        TcpListener::bind(("::", port)).or_else(|_| TcpListener::bind(("0.0.0.0", port))).map_err(|why| {
            Failure::setup(format!(
                "TCP port {port} cannot be listened on: {why}; choose another with --port"
            ))
        })?;
    listener.set_nonblocking(true).map_err(Failure::setup)?;
    Ok(listener)
}

fn reach(host: &str, port: u16) -> Result<TcpStream, Failure> {
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    let found = (bare, port).to_socket_addrs();
    let addresses = found.map_err(|why| Failure::setup(format!("there is no host {host}: {why}")))?;
    let mut last = String::from("it has no address");
    for address in addresses {
        match TcpStream::connect_timeout(&address, CONNECT) {
            Ok(stream) => return Ok(stream),
            Err(why) => last = format!("{address}: {why}"),
        }
    }
    Err(Failure::setup(format!(
        "no server at {host}, TCP port {port} ({last}); start `rockhopper-perf OP` or `rockhopper serve` there"
    )))
}
