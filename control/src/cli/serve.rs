//! `rockhopper serve`: an endpoint until Ctrl-C.
//!
//! Each port serves rockhopper-perf clients on a TCP port of its own: the first on the configured one, the next on the
//! following numbers. Every client has a thread. What connects by rdma_cm is served on all ports, in one more thread.

use super::ServeArgs;
use super::failure::Failure;
use super::out::say;
use super::tally::Tally;
use super::{conform, stats, stop};
use rockhopper::config::Drive;
use rockhopper::perf::{self, Link, Outcome, ServerOptions, Shared};
use rockhopper::programs::{Hears, Served, ServiceOptions, Services};
use rockhopper::{Config, Device, Endpoint};
use serde_json::{Value, json};
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::Scope;
use std::time::{Duration, Instant};

/// Clients of one port at a time. More are turned away.
const MAX_CLIENTS: usize = 8;
/// How often the main loop looks for clients and signals.
const LOOK: Duration = Duration::from_millis(20);

pub fn run(args: &ServeArgs, json: bool) -> Result<(), Failure> {
    let mut config = Config::load(&args.config)?;
    if let Some(plan) = &args.impair {
        config.ports.iter_mut().for_each(|port| port.impair = Some(plan.clone()));
    }
    let stop = stop::on_signal()?;
    let endpoint = Endpoint::start(&config)?;
    let listen = args.listen.or(config.control.listen);
    let listen = listen.unwrap_or(SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), perf::DEFAULT_PORT));
    let mut services = Vec::new();
    for (index, device) in endpoint.devices().into_iter().enumerate() {
        services.push(Service::open(device, listen, index)?);
    }
    let say = Say { json };
    for service in &services {
        say.up(service)?;
    }
    let begin = Instant::now();
    let end = args.duration.map(|seconds| begin + Duration::from_secs(seconds));
    let agent = args.agent.map(listener).transpose()?;
    let programs = ServiceOptions { programs: args.cm.0.clone(), messages: args.ucmatose };
    let mut programs = Services::open(&endpoint, &programs)
        .map_err(|why| Failure::setup(format!("{why}; choose what to serve with --cm")))?;
    let tally = (!args.verbose).then(Tally::new);
    let tell = |is_end| {
        let due = tally.as_ref().map_or(Vec::new(), |tally| tally.due(Instant::now(), is_end));
        due.into_iter().for_each(|(json, text)| say.line(json, &text));
    };
    std::thread::scope(|scope| {
        let heard = Heard { scope, services: &services, stop: &stop, say, tally: tally.as_ref() };
        let (programs, over) = (&mut programs, &stop);
        scope.spawn(move || programs.run(over, &heard));
        if let (Some((listener, _)), Some(service)) = (&agent, services.first()) {
            scope.spawn(|| conform::link::serve(listener, &service.device, &stop));
        }
        while !stop.is_stopped() && end.is_none_or(|end| Instant::now() < end) {
            services.iter().for_each(|service| service.accept(scope, &stop, say));
            tell(false);
            wait(&endpoint);
        }
        // Sessions that are under way end early.
        stop.stop();
    });
    tell(true);
    say.down(&services, begin.elapsed());
    Ok(())
}

/// Until the next look; drives the workers if nobody else does.
fn wait(endpoint: &Endpoint) {
    if endpoint.drive() == Drive::Threads {
        return std::thread::sleep(LOOK);
    }
    let begin = Instant::now();
    while begin.elapsed() < LOOK {
        if !endpoint.poll_once() {
            std::thread::yield_now();
        }
    }
}

/// A listener on an address, and the address in use.
fn listener(address: SocketAddr) -> Result<(TcpListener, SocketAddr), Failure> {
    let bound = TcpListener::bind(address).and_then(|listener| {
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        Ok((listener, address))
    });
    bound.map_err(|why| {
        let what = match why.kind() {
            io::ErrorKind::AddrInUse => {
                "another program listens there: stop it, or choose another with --listen or --agent"
            }
            io::ErrorKind::PermissionDenied => {
                "ports below 1024 are root's: choose another with --listen or --agent"
            }
            _ => "choose another with --listen or --agent",
        };
        Failure::setup(format!("cannot listen on {address}: {why}; {what}"))
    })
}

/// One port's server.
struct Service {
    device: Device,
    listener: TcpListener,
    address: SocketAddr,
    clients: Arc<AtomicUsize>,
    sessions: AtomicUsize,
}

impl Service {
    fn open(device: Device, first: SocketAddr, index: usize) -> Result<Service, Failure> {
        let number = usize::from(first.port()) + if first.port() == 0 { 0 } else { index };
        let port = u16::try_from(number).map_err(|_| {
            Failure::setup("there is no TCP port above 65535; choose a lower one to listen on")
        })?;
        let address = SocketAddr::new(first.ip(), port);
        let (listener, address) = listener(address)?;
        Ok(Service { device, listener, address, clients: Arc::default(), sessions: AtomicUsize::new(0) })
    }

    /// Gives every waiting client a thread.
    fn accept<'scope>(&'scope self, scope: &'scope Scope<'scope, '_>, stop: &Arc<Shared>, say: Say) {
        while let Ok((stream, peer)) = self.listener.accept() {
            if let Ok(link) = Link::tcp(stream) {
                self.begin(scope, link, peer, stop, say);
            }
        }
    }

    /// Gives a client a thread, if there are not too many. Closing the line tells it.
    fn begin<'scope>(
        &'scope self,
        scope: &'scope Scope<'scope, '_>,
        link: Link,
        peer: SocketAddr,
        stop: &Arc<Shared>,
        say: Say,
    ) {
        if self.clients.fetch_add(1, Ordering::AcqRel) >= MAX_CLIENTS {
            self.clients.fetch_sub(1, Ordering::AcqRel);
            return;
        }
        let stop = Arc::clone(stop);
        let session = move || {
            self.session(link, peer, &stop, say);
            self.clients.fetch_sub(1, Ordering::AcqRel);
        };
        if std::thread::Builder::new().name("session".into()).spawn_scoped(scope, session).is_err() {
            self.clients.fetch_sub(1, Ordering::AcqRel);
        }
    }

    fn session(&self, link: Link, peer: SocketAddr, stop: &Arc<Shared>, say: Say) {
        let ended = |outcome: &Outcome| {
            self.sessions.fetch_add(1, Ordering::Relaxed);
            say.ran(self.device.name(), peer, outcome);
        };
        if let Err(why) = perf::serve(link, &self.device, &ServerOptions::default(), stop, ended) {
            say.broke(self.device.name(), peer, &why.to_string());
        }
    }
}

/// What comes by rdma_cm.
struct Heard<'scope, 'env> {
    scope: &'scope Scope<'scope, 'env>,
    services: &'scope [Service],
    stop: &'scope Arc<Shared>,
    say: Say,
    /// Where connections are counted, unless each is told of.
    tally: Option<&'scope Tally>,
}

impl Hears for Heard<'_, '_> {
    fn served(&self, served: &Served) {
        match self.tally {
            Some(tally) => tally.add(served),
            None => self.say.served(served),
        }
    }

    fn session(&self, link: Link, device: Device, peer: SocketAddr) {
        if let Some(service) = self.services.iter().find(|service| service.device.name() == device.name()) {
            service.begin(self.scope, link, peer, self.stop, self.say);
        }
    }
}

/// What is printed, as text or as one JSON object a line.
#[derive(Clone, Copy)]
struct Say {
    json: bool,
}

impl Say {
    fn line(self, json: Value, text: &str) {
        if self.json {
            say(json);
        } else {
            say(text);
        }
    }

    fn up(self, service: &Service) -> Result<(), Failure> {
        let device = &service.device;
        let port = device.query_port().map_err(Failure::setup)?;
        let gids: Vec<String> = port.gids.iter().map(|(_, gid)| gid.address.to_string()).collect();
        let (name, mac, path_mtu) = (device.name(), port.mac.to_string(), port.path_mtu.bytes());
        self.line(
            json!({
                "event": "up", "port": name, "driver": device.driver(), "mac": mac, "gids": gids,
                "ip_mtu": port.ip_mtu, "path_mtu": path_mtu, "listen": service.address.to_string(),
            }),
            &format!(
                "{name} is up: {}; {mac}, path MTU {path_mtu}, {}; rockhopper-perf at {}",
                device.negotiated(),
                gids.join(" "),
                service.address
            ),
        );
        Ok(())
    }

    fn ran(self, port: &str, peer: SocketAddr, outcome: &Outcome) {
        let params = &outcome.params;
        let (op, faults) = (params.op.to_string(), outcome.faults());
        // The client has the full account: this end knows what it received and, of a run in both directions, sent.
        let messages = outcome.messages();
        self.line(
            json!({
                "event": "run", "port": port, "peer": peer.to_string(), "op": op, "size_bytes": params.size,
                "qps": params.qps, "messages": messages, "faults": faults,
            }),
            &format!(
                "{port}: {op} of {} bytes for {peer}: {messages} messages, {faults} faults",
                params.size
            ),
        );
    }

    fn served(self, served: &Served) {
        let Served { program, port, peer, count, broken } = served;
        let end = broken.as_ref().map_or(String::new(), |why| format!(": {why}"));
        self.line(
            json!({
                "event": "served", "program": program.to_string(), "port": port, "peer": peer.to_string(),
                "count": count, "broken": broken,
            }),
            &format!("{port}: {program} for {peer}: {count} exchanges{end}"),
        );
    }

    fn broke(self, port: &str, peer: SocketAddr, why: &str) {
        self.line(
            json!({ "event": "broke", "port": port, "peer": peer.to_string(), "why": why }),
            &format!("{port}: the session with {peer} ended: {why}"),
        );
    }

    fn down(self, services: &[Service], up: Duration) {
        for service in services {
            let (stats, runs) = (service.device.stats(), service.sessions.load(Ordering::Relaxed));
            let seconds = up.as_secs_f64();
            let text = format!("up for {seconds:.1} s, {runs} runs\n{}", stats::port_text(&stats, false));
            self.line(
                json!({ "event": "down", "seconds": seconds, "runs": runs, "stats": stats }),
                text.trim_end(),
            );
        }
    }
}
