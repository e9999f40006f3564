//! The table of speed and latency: perf sessions between the two ends, each on a core of its own.

use crate::cli::failure::Failure;
use crate::cli::out::print;
use rockhopper::Device;
use rockhopper::perf::{
    Client, ClientOptions, Link, Measure, Op, Outcome, Params, RunError, ServerOptions, Shared, Until, Verb,
    serve,
};
use serde::Serialize;
use std::sync::Arc;

/// Message lengths of the bandwidth table.
const SIZES: [u32; 5] = [64, 1024, 4096, 65_536, 1 << 20];
/// Message lengths of the latency table.
const SHORT: [u32; 3] = [8, 64, 4096];
const VERBS: [(Verb, &str); 3] = [(Verb::Write, "WRITE"), (Verb::Send, "SEND"), (Verb::Read, "READ")];
/// Time of a latency line, as a part of that of a bandwidth line.
const LATENCY_PART: u64 = 2;

/// What was measured.
#[derive(Default, Serialize)]
pub struct Table {
    bandwidth: Vec<Bandwidth>,
    latency: Vec<Latency>,
}

#[derive(Serialize)]
struct Bandwidth {
    op: String,
    size_bytes: u32,
    bandwidth_gbps: f64,
    message_rate_mps: f64,
}

#[derive(Serialize)]
struct Latency {
    op: String,
    size_bytes: u32,
    p50_us: f64,
    p99_us: f64,
}

/// Measures into `table` until done or stopped.
pub fn measure(
    near: &Device,
    far: &Device,
    stop: &Arc<Shared>,
    each_ms: u64,
    quiet: bool,
    table: &mut Table,
) -> Result<(), Failure> {
    let (link, far_link) = Link::pair().map_err(Failure::setup)?;
    let cores: Vec<_> = core_affinity::get_core_ids().unwrap_or_default();
    std::thread::scope(|scope| {
        let other = cores.get(1).copied();
        scope.spawn(move || {
            pin(other);
            // What goes wrong is told to the client, which tells.
            let _ = serve(far_link, far, &ServerOptions::default(), &Shared::default(), |_| ());
        });
        // A thread too: pinning is not to outlast the table.
        let client = scope.spawn(|| {
            pin(cores.first().copied());
            let client = Client::new(link, near, ClientOptions::default(), stop)?;
            Runs { client, stop, each_ms, quiet, table }.all()
        });
        client.join().unwrap_or_else(|_| Err(Failure::Run("the measuring thread died".into())))
    })
}

/// On machines that do not allow it, the system places the thread.
fn pin(core: Option<core_affinity::CoreId>) {
    core.map(core_affinity::set_for_current);
}

struct Runs<'a> {
    client: Client,
    stop: &'a Shared,
    each_ms: u64,
    quiet: bool,
    table: &'a mut Table,
}

impl Runs<'_> {
    fn all(mut self) -> Result<(), Failure> {
        self.bandwidths()?;
        self.latencies()?;
        self.client.finish();
        Ok(())
    }

    fn bandwidths(&mut self) -> Result<(), Failure> {
        self.show(&format!("\nOne RC queue pair, one core for each end, MTU 4096:\n{:>10}", "bytes"));
        VERBS.iter().for_each(|(_, name)| self.show(&format!("{name:>14}         ")));
        self.show("\n");
        for size in SIZES {
            self.show(&format!("{size:>10}"));
            for (verb, _) in VERBS {
                let outcome = self.run(Op { verb, measure: Measure::Bandwidth }, size, self.each_ms)?;
                let (gbps, mps) = (outcome.bandwidth_gbps(), outcome.message_rate() / 1e6);
                self.show(&format!("{gbps:>8.2} Gb/s{mps:>6.2} M/s"));
                self.table.bandwidth.push(Bandwidth {
                    op: outcome.params.op.to_string(),
                    size_bytes: size,
                    bandwidth_gbps: gbps,
                    message_rate_mps: mps,
                });
            }
            self.show("\n");
        }
        Ok(())
    }

    fn latencies(&mut self) -> Result<(), Failure> {
        self.show(&format!(
            "\nLatency in µs, median and 99th percentile (half a round trip; READ a whole one):\n{:>10}",
            "bytes"
        ));
        VERBS.iter().for_each(|(_, name)| self.show(&format!("{name:>12} p50    p99")));
        self.show("\n");
        for size in SHORT {
            self.show(&format!("{size:>10}"));
            for (verb, _) in VERBS {
                let outcome =
                    self.run(Op { verb, measure: Measure::Latency }, size, self.each_ms / LATENCY_PART)?;
                let Some(histogram) = &outcome.latency else { continue };
                let at = |quantile| histogram.value_at_quantile(quantile) as f64 / 1e3;
                let (p50, p99) = (at(0.5), at(0.99));
                self.show(&format!("{p50:>16.2}{p99:>7.2}"));
                let op = outcome.params.op.to_string();
                self.table.latency.push(Latency { op, size_bytes: size, p50_us: p50, p99_us: p99 });
            }
            self.show("\n");
        }
        Ok(())
    }

    fn run(&mut self, op: Op, size: u32, millis: u64) -> Result<Outcome, Failure> {
        let params = Params { size, until: Until::Millis(millis.max(1)), ..Params::new(op) };
        let outcome = self.client.run(&params)?;
        if self.stop.is_stopped() {
            return Err(RunError::Stopped.into());
        }
        Ok(outcome)
    }

    /// Text appears as soon as it is known: a line takes its time.
    fn show(&self, text: &str) {
        if !self.quiet {
            print(text);
        }
    }
}
