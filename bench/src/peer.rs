//! One run with a Linux program at the other end.

use crate::cli::{Cli, Sizes};
use crate::failure::Failure;
use crate::network::configuration;
use crate::plan;
use crate::report::Report;
use rockhopper::perf::{
    CmWay, Link, Outcome, Params, PeerOptions, PeerProgram, Piece, Shared, run_with_peer,
};
use rockhopper::{Device, Mtu};
use serde_json::json;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// How often whoever waits looks again.
const NAP: Duration = Duration::from_millis(5);

/// Refuses what cannot be, before anything comes up.
pub fn check(cli: &Cli, program: PeerProgram) -> Result<(), Failure> {
    if cli.run.size == Some(Sizes::All) {
        return Err(Failure::setup(
            "with --peer there is one size a run: name it with --size (-s at the peer)",
        ));
    }
    Ok(program.check(&params(cli, Mtu::Mtu4096))?)
}

/// Does the run, and reports it.
pub fn run(
    cli: &Cli,
    program: PeerProgram,
    link: Link,
    cm: Option<CmWay<'_>>,
    device: &Device,
    shared: &Shared,
    report: &mut Report<'_>,
) -> Result<(), Failure> {
    let mut hold = |pieces: &[Piece]| wait_for_a_look(pieces);
    let options = PeerOptions {
        program,
        is_server: cli.host.is_none(),
        gid_index: cli.port.gid_index,
        ipv6: cli.port.ipv6,
        cm,
        hold: if cli.hold { Some(&mut hold) } else { None },
    };
    let params = params(cli, device.path_mtu());
    let over = AtomicBool::new(false);
    let outcome = std::thread::scope(|scope| {
        let over = &over;
        let flap = cli.flap.map(|time| scope.spawn(move || flap(cli, device, time, shared, over)));
        let outcome = run_with_peer(link, device, &params, options, shared);
        over.store(true, Ordering::Relaxed);
        let flapped =
            flap.map_or(Ok(()), |flap| flap.join().unwrap_or_else(|_| Err("its thread died".into())));
        let outcome = outcome?;
        flapped.map_err(|why| Failure::Run(format!("the address did not go and come: {why}")))?;
        Ok::<Outcome, Failure>(outcome)
    })?;
    report.add(outcome);
    Ok(())
}

/// Takes the address in use from the port once messages flow, and gives it back after a while.
fn flap(
    cli: &Cli,
    device: &Device,
    time: Duration,
    shared: &Shared,
    over: &AtomicBool,
) -> Result<(), String> {
    let config = configuration(&cli.port).map_err(|why| format!("{why:?}"))?;
    let mut addresses = config.ports.iter().flat_map(|port| &port.addresses);
    let address = addresses.find(|address| address.address().is_ipv6() == cli.port.ipv6);
    let address = *address.ok_or("the port has no such address")?;
    while shared.messages() == 0 {
        if over.load(Ordering::Relaxed) {
            return Err("the run was over first".into());
        }
        std::thread::sleep(NAP);
    }
    device.remove_address(address.address()).map_err(|why| why.to_string())?;
    std::thread::sleep(time);
    device.add_address(address).map_err(|why| why.to_string())?;
    Ok(())
}

/// One size, and the path MTU that our port carries unless told otherwise: the peer does likewise.
fn params(cli: &Cli, mtu: Mtu) -> Params {
    let runs = plan::runs(cli, mtu);
    let params = runs.into_iter().next().unwrap_or_else(|| Params::new(cli.op));
    Params { mtu: cli.run.mtu.unwrap_or(mtu.bytes()), ..params }
}

/// One line tells what the peer has to have; whoever compares it says so with a line of theirs. A closed input does as well.
fn wait_for_a_look(pieces: &[Piece]) {
    println!("{}", json!({ "hold": pieces }));
    let _ = std::io::stdin().read_line(&mut String::new());
}
