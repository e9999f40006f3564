//! The ends meet by rdma_cm: the packets of their exchange go the way of those that are measured.

use super::{NAP, ask, serve_one};
use crate::cli::Cli;
use crate::failure::Failure;
use crate::report::Place;
use rockhopper::perf::{CmWay, Link, RunError, ServerOptions, Shared};
use rockhopper::programs::{Hears, Program, Served, ServiceOptions, Services, destination};
use rockhopper::{Device, Endpoint};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};

/// Clients that may wait for their turn.
const WAITING: usize = 8;

/// Runs this end.
pub fn run(
    cli: &Cli,
    port: u16,
    endpoint: &Endpoint,
    device: &Device,
    shared: &Arc<Shared>,
    place: Place,
) -> Result<(), Failure> {
    match cli.host.as_deref() {
        Some(host) => {
            let host = destination(host).map_err(Failure::Setup)?;
            device.wait_for_link(Device::LINK_PATIENCE, || shared.is_stopped())?;
            let from = cli.port.gid_index.map(|index| device.gid(index).ok_or(RunError::GidIndex(index)));
            let from = from.transpose()?.map(|entry| entry.address);
            let way = CmWay::new(endpoint, (host, port).into(), from, shared)?;
            let link = way.line()?;
            ask(cli, link, Some(way), device, shared, place)
        }
        None if cli.peer.is_some() => Err(Failure::setup(
            "with --peer --cm this end is the client: let `rockhopper serve` be the server",
        )),
        None => serve(cli, port, endpoint, device, shared, &place),
    }
}

/// Takes clients one after the other, while they connect in a thread of its own.
fn serve(
    cli: &Cli,
    port: u16,
    endpoint: &Endpoint,
    device: &Device,
    shared: &Arc<Shared>,
    place: &Place,
) -> Result<(), Failure> {
    let programs = ServiceOptions { programs: vec![(Program::Perf, port)], ..ServiceOptions::default() };
    let mut services = Services::open(endpoint, &programs).map_err(Failure::setup)?;
    if !cli.json {
        eprintln!("waiting for a client of {} on port {port} of rdma_cm", cli.op);
    }
    let (waiting, clients) = sync_channel(WAITING);
    let over = Shared::default();
    std::thread::scope(|scope| {
        let over = &over;
        scope.spawn(move || services.run(over, &Door { waiting }));
        let served = take_clients(cli, &clients, device, shared, place);
        over.stop();
        served
    })
}

fn take_clients(
    cli: &Cli,
    clients: &Receiver<Link>,
    device: &Device,
    shared: &Arc<Shared>,
    place: &Place,
) -> Result<(), Failure> {
    let options = ServerOptions { gid_index: cli.port.gid_index, only: Some(cli.op) };
    loop {
        let link = match clients.recv_timeout(NAP) {
            Ok(link) => link,
            Err(RecvTimeoutError::Timeout) if shared.is_stopped() => return Err(Failure::Interrupted),
            Err(RecvTimeoutError::Timeout) => continue,
            Err(RecvTimeoutError::Disconnected) => return Err(Failure::Run("no client can connect".into())),
        };
        let served = serve_one(cli, link, device, &options, shared, place.clone());
        if cli.once || matches!(served, Err(Failure::Interrupted)) {
            return served;
        }
        if let Err(failure) = served {
            eprintln!("rockhopper-perf: {}", failure.text().unwrap_or("a client failed"));
        }
    }
}

/// Where clients come in.
struct Door {
    waiting: SyncSender<Link>,
}

impl Hears for Door {
    fn served(&self, _: &Served) {}

    /// Who finds no place to wait is disconnected with its line.
    fn session(&self, link: Link, _: Device, _: SocketAddr) {
        let _ = self.waiting.try_send(link);
    }
}
