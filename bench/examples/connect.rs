//! How many connections a second two endpoints of this process make, use and close, and whether the last of many are as quick and
//! take as much memory as the first: `cargo run --release -p rockhopper-perf --example connect -- [ROUNDS] [AT-ONCE] [threads]`.
//!
//! Without `threads` this thread drives the workers of both ends; with it each end has a worker thread and a control thread.

use rockhopper::config::Drive;
use rockhopper::perf::{ConnectPlan, Tenth, connect_rounds};
use rockhopper::{Endpoint, RingPair};
use std::error::Error;
use std::time::Instant;

fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let number = |at: usize, default: u64| words.get(at).map_or(Ok(default), |word| word.parse());
    let (rounds, at_once) = (number(0, 100_000)?, number(1, 1)?);
    let drive = if words.iter().any(|word| word == "threads") { Drive::Threads } else { Drive::Caller };
    let (client, server) = Endpoint::ring_pair(&RingPair { drive, ..RingPair::default() })?;
    let plan = ConnectPlan { rounds, at_once: at_once.max(1) as usize, server: "10.82.72.2:0".parse()? };
    println!(
        "{:>8} {:>10} {:>10} {:>10} {:>10} {:>10}",
        "rounds", "a second", "p50 us", "p99 us", "max us", "RSS KiB"
    );
    let begin = Instant::now();
    connect_rounds(&client, &server, &plan, |tenth| println!("{}", row(tenth)))?;
    println!("{:.0} a second in all", rounds as f64 / begin.elapsed().as_secs_f64());
    Ok(())
}

fn row(tenth: &Tenth) -> String {
    let us = |ns: u64| ns as f64 / 1000.0;
    let latency = &tenth.latency_ns;
    format!(
        "{:>8} {:>10.0} {:>10.1} {:>10.1} {:>10.1} {:>10}",
        tenth.rounds,
        tenth.rounds as f64 / tenth.took.as_secs_f64(),
        us(latency.value_at_quantile(0.5)),
        us(latency.value_at_quantile(0.99)),
        us(latency.max()),
        rss_kib().unwrap_or(0),
    )
}

/// Memory of this process that is there, in KiB.
fn rss_kib() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmRSS:"))?;
    line.split_whitespace().nth(1)?.parse().ok()
}
