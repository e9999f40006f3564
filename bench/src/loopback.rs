//! Both ends in one process, joined by a ring pair. Each has one thread on a core of its own that runs
//! everything of its end to completion: program, worker and engine.

use crate::cli::Cli;
use crate::failure::Failure;
use crate::report::{Place, Report};
use crate::{plan, progress::Progress, stop};
use rockhopper::perf::{Client, ClientOptions, Link, Params, RunError, ServerOptions, Shared, serve};
use rockhopper::{Device, Endpoint, RingPair};
use std::sync::Arc;
use std::thread::{Scope, ScopedJoinHandle};

/// Runs the client's end here and the server's beside it.
pub fn run(cli: &Cli) -> Result<(), Failure> {
    // The ring carries the largest path MTU.
    let runs = plan::runs(cli, rockhopper::Mtu::Mtu4096);
    // What cannot be is refused before anything comes up.
    runs.iter().try_for_each(Params::check).map_err(Failure::setup)?;
    let cores = choose_cores(&cli.port.cores)?;
    let shared = Arc::new(Shared::default());
    stop::on_signal(&shared)?;
    let (near, far) =
        Endpoint::ring_pair(&RingPair { impair: cli.port.impair.clone(), ..RingPair::default() })?;
    let (near, far) = (first_device(&near)?, first_device(&far)?);
    let (link, far_link) = Link::pair().map_err(|why| Failure::setup(format!("no socket pair: {why}")))?;
    let place = Place { cores: cores.to_vec(), polling: "caller", driver: near.driver().into() };
    let mut report = Report::new(cli, place);
    std::thread::scope(|scope| {
        let [near_core, far_core] = cores;
        let server = spawn(scope, "perf-server", move || {
            pin(far_core)?;
            // The client learns why, and tells.
            let _ = serve(far_link, &far, &ServerOptions::default(), &Shared::default(), |_| ());
            Ok(())
        })?;
        let report = &mut report;
        let client = spawn(scope, "perf-client", move || {
            pin(near_core)?;
            measure(cli, link, &near, &shared, (&runs, cli.port.gid_index), report)
        })?;
        let client = client.join().unwrap_or_else(|_| Err(Failure::Run("the client's thread died".into())));
        let server = server.join().unwrap_or_else(|_| Err(Failure::Run("the server's thread died".into())));
        server.and(client)
    })?;
    report.finish()
}

/// A thread with a name, for those who profile.
fn spawn<'scope>(
    scope: &'scope Scope<'scope, '_>,
    name: &str,
    work: impl FnOnce() -> Result<(), Failure> + Send + 'scope,
) -> Result<ScopedJoinHandle<'scope, Result<(), Failure>>, Failure> {
    let thread = std::thread::Builder::new().name(name.into());
    thread.spawn_scoped(scope, work).map_err(|why| Failure::setup(format!("no thread: {why}")))
}

/// The client's part: every run, from a GID or the first of the wanted family, reported as it ends.
pub fn measure(
    cli: &Cli,
    link: Link,
    device: &Device,
    shared: &Arc<Shared>,
    (runs, gid_index): (&[Params], Option<usize>),
    report: &mut Report<'_>,
) -> Result<(), Failure> {
    let options = ClientOptions {
        gid_index,
        ipv6: cli.port.ipv6,
        exact_mtu: cli.run.mtu.is_some(),
        tamper: cli.run.tamper,
    };
    let mut client = Client::new(link, device, options, shared)?;
    for params in runs {
        let progress = Progress::show(shared, format!("{} {} bytes", params.op, params.size));
        let outcome = client.run(params);
        drop(progress);
        match outcome {
            Ok(outcome) => report.add(outcome),
            // Between two runs there is nothing to lose: what was measured is printed.
            Err(RunError::Stopped) => return Err(Failure::Interrupted),
            Err(why) => return Err(why.into()),
        }
        if shared.is_stopped() {
            break;
        }
    }
    client.finish();
    Ok(())
}

fn first_device(endpoint: &Endpoint) -> Result<Device, Failure> {
    endpoint.device(0).ok_or_else(|| Failure::setup("the ring pair has no port"))
}

/// The cores of client and server: the first two that this process may use, unless told.
pub fn choose_cores(asked: &[usize]) -> Result<[usize; 2], Failure> {
    let allowed: Vec<usize> =
        core_affinity::get_core_ids().unwrap_or_default().iter().map(|core| core.id).collect();
    if let Some(missing) = asked.iter().find(|core| !allowed.contains(core)) {
        return Err(Failure::setup(format!(
            "core {missing} is not there for this process; there are {allowed:?}"
        )));
    }
    match (asked, &allowed[..]) {
        ([], []) => {
            Err(Failure::setup("the system does not tell which cores there are; name two with --cores"))
        }
        ([], [only]) => Ok([*only, *only]),
        ([], [first, second, ..]) => Ok([*first, *second]),
        ([first, second], _) => Ok([*first, *second]),
        _ => Err(Failure::setup("it takes two cores, of client and server, like --cores 0,1")),
    }
}

fn pin(core: usize) -> Result<(), Failure> {
    if core_affinity::set_for_current(core_affinity::CoreId { id: core }) {
        return Ok(());
    }
    Err(Failure::setup(format!(
        "the system does not let this process run on core {core}; choose others with --cores"
    )))
}
