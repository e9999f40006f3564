//! What others make of the same kind of wire: a veth pair between two namespaces, MTU 9000, each end on a core of its own.

use super::wires::pinned;
use super::{bytes, case};
use crate::suite::case::{Case, Job, Sample, Trouble};
use crate::suite::child::{Finished, Line, is_installed, missing};
use crate::suite::context::Context;
use crate::suite::hosts::Cable;
use serde_json::Value;
use std::time::Duration;

/// How long a server may take to come up.
const COME_UP: Duration = Duration::from_secs(10);
/// Messages a second that `ucx_perftest` and `fi_pingpong` are given: they take a count, not a time.
const SMALL_A_SECOND: f64 = 100_000.0;
const LARGE_BYTES_A_SECOND: f64 = 1e9;
const TRIPS_A_SECOND: f64 = 20_000.0;

pub fn cases(duration: Duration) -> Vec<Case> {
    let mut all = vec![tcp(duration)];
    for size in [64u64, 4096] {
        let about =
            format!("kernel UDP, one flow, datagrams of {}, as many as go; what arrives", bytes(size));
        let job = Iperf { flags: format!("-u -b 0 -l {size}"), datagram: Some(size), duration };
        let metric = if size == 64 { "mmps" } else { "gbps" };
        all.push(
            case("peers", format!("udp/{size}"), about, metric, job)
                .drawn("wires", "kernel UDP", size as f64)
                .drawn("wires-rate", "kernel UDP", size as f64),
        );
    }
    for (test, told) in [("tag_bw", "tagged messages"), ("ucp_put_bw", "put")] {
        for size in [64u64, 4096, 65536, 1 << 20] {
            let messages =
                per_run(SMALL_A_SECOND.min(LARGE_BYTES_A_SECOND / size as f64), duration).max(1000);
            let about = format!("UCX over TCP, {told}, {}", bytes(size));
            let job = Ucx { flags: format!("-t {test} -s {size} -n {messages} -w 100"), latency: false };
            let metric = if size < 4096 { "mmps" } else { "gbps" };
            let series = format!("UCX/TCP {told}");
            all.push(
                case("peers", format!("ucx-{}/{size}", test.replace('_', "-")), about, metric, job)
                    .drawn("wires", series.clone(), size as f64)
                    .drawn("wires-rate", series, size as f64),
            );
        }
    }
    let trips = per_run(TRIPS_A_SECOND, duration);
    for size in [8u64, 64] {
        let about = format!("UCX over TCP, tagged messages, {}, half a round trip", bytes(size));
        let job = Ucx { flags: format!("-t tag_lat -s {size} -n {trips} -w 100"), latency: true };
        all.push(case("peers", format!("ucx-tag-lat/{size}"), about, "p50_us", job));
    }
    for (provider, endpoint) in [("tcp", "msg"), ("udp", "dgram")] {
        // A datagram is as long as the provider takes it at most.
        let sizes = if endpoint == "msg" { &[64u64, 1024, 65536, 1 << 20][..] } else { &[64, 1024] };
        for &size in sizes {
            let trips = trips.min(per_run(LARGE_BYTES_A_SECOND / size as f64, duration));
            let about = format!(
                "libfabric over {provider}, {}, half a round trip, mean; and what goes to and fro",
                bytes(size)
            );
            let flags = format!("-p {provider} -e {endpoint} -I {trips} -S {size}");
            let job = Fabric { flags };
            let metric = if size < 65536 { "mean_us" } else { "gbps" };
            all.push(case("peers", format!("fi-pingpong-{provider}/{size}"), about, metric, job));
        }
    }
    all
}

fn tcp(duration: Duration) -> Case {
    let job = Iperf { flags: String::new(), datagram: None, duration };
    // Drawn as a line from 64 KiB to 1 MiB: a stream has no messages; 128 KiB is what iperf3 writes at once.
    case("peers", "tcp", "kernel TCP, one flow (iperf3); what arrives", "gbps", job).drawn(
        "wires",
        "kernel TCP",
        131_072,
    )
}

fn per_run(a_second: f64, duration: Duration) -> u64 {
    (a_second * duration.as_secs_f64()).ceil().max(100.0) as u64
}

/// Runs a server on the second host and a client on the first: what the client left. `ready` is what the server prints when it can
/// be reached; without it the client is tried until the server is there.
fn meet(
    context: &mut Context,
    server: &Line,
    client: &Line,
    ready: Option<&str>,
) -> Result<Finished, Trouble> {
    for line in [server, client] {
        let program = line.0.iter().find(|word| !word.contains('=') && *word != "env");
        match program {
            Some(program) if !is_installed(program) => return Err(missing(program)),
            _ => {}
        }
    }
    if !is_installed("taskset") {
        return Err(missing("taskset"));
    }
    let (server, client) = (pinned(context, 1, server), pinned(context, 0, client));
    let hosts = &context.cable.get(Cable::new)?.hosts;
    let (server, client) = (hosts[1].run(&server), hosts[0].run(&client));
    let stop = context.stop.clone();
    let mut running = context.start(&server)?;
    match ready {
        Some(words) => running.wait_for(words, COME_UP, &stop)?,
        None => std::thread::sleep(Duration::from_millis(700)),
    }
    let finished = context.finish(&client)?;
    if finished.status.success() { Ok(finished) } else { Err(Trouble::Failed(finished.complaint())) }
}

/// Lines as people would type them on two hosts.
fn told(server: &Line, client: &Line) -> Vec<String> {
    vec![server.shown(), client.shown()]
}

/// `iperf3`.
struct Iperf {
    flags: String,
    datagram: Option<u64>,
    duration: Duration,
}

impl Iperf {
    fn lines(&self) -> (Line, Line) {
        // Whole seconds only.
        let seconds = self.duration.as_secs_f64().ceil().max(1.0);
        let client = format!("iperf3 -c {} -t {seconds} -J {}", Cable::FAR, self.flags);
        // Its output is a pipe's or a file's, so it would keep its first words to itself.
        (Line::new("iperf3 -s -1 --forceflush"), Line::new(&client))
    }
}

impl Job for Iperf {
    fn run(&self, context: &mut Context) -> Result<Sample, Trouble> {
        let (server, client) = self.lines();
        let finished = meet(context, &server, &client, Some("listening"))?;
        let value: Value = serde_json::from_str(&finished.out)
            .map_err(|why| Trouble::Failed(format!("iperf3's output is no JSON: {why}")))?;
        iperf_sample(&value, self.datagram)
            .ok_or_else(|| Trouble::Failed("iperf3 does not tell what arrived".into()))
    }

    fn commands(&self) -> Vec<String> {
        let (server, client) = self.lines();
        told(&server, &client)
    }
}

/// What arrived: a stream's bits, or datagrams less those that were lost.
fn iperf_sample(value: &Value, datagram: Option<u64>) -> Option<Sample> {
    let mut sample = Sample::default();
    match datagram {
        None => {
            sample.0.insert("gbps", value["end"]["sum_received"]["bits_per_second"].as_f64()? / 1e9);
        }
        Some(size) => {
            let sum = &value["end"]["sum"];
            let (packets, lost) = (sum["packets"].as_f64()?, sum["lost_packets"].as_f64()?);
            let rate = (packets - lost) / sum["seconds"].as_f64()?;
            sample.0.insert("gbps", rate * size as f64 * 8.0 / 1e9);
            sample.0.insert("mmps", rate / 1e6);
            sample.0.insert("lost_percent", lost / packets.max(1.0) * 100.0);
        }
    }
    Some(sample)
}

/// `ucx_perftest` over TCP.
struct Ucx {
    flags: String,
    latency: bool,
}

const UCX: &str = "env UCX_TLS=tcp UCX_NET_DEVICES=wire ucx_perftest";

impl Ucx {
    fn lines(&self) -> (Line, Line) {
        (Line::new(UCX), Line::new(&format!("{UCX} {} {}", Cable::FAR, self.flags)))
    }
}

impl Job for Ucx {
    fn run(&self, context: &mut Context) -> Result<Sample, Trouble> {
        let (server, client) = self.lines();
        let finished = meet(context, &server, &client, None)?;
        ucx_sample(&finished.out, self.latency)
            .ok_or_else(|| Trouble::Failed("ucx_perftest printed no line `Final:`".into()))
    }

    fn commands(&self) -> Vec<String> {
        let (server, client) = self.lines();
        told(&server, &client)
    }
}

/// From its last line: count; median, average, overall in microseconds; MB (2^20) a second, twice; messages a second, twice.
fn ucx_sample(text: &str, latency: bool) -> Option<Sample> {
    let line = text.lines().find_map(|line| line.strip_prefix("Final:"))?;
    let columns: Vec<f64> = line.split_whitespace().map(str::parse).collect::<Result<_, _>>().ok()?;
    let &[_, median, _, average, _, mib, _, rate] = &columns[..] else { return None };
    let mut sample = Sample::default();
    if latency {
        sample.0.extend([("p50_us", median), ("mean_us", average)]);
    } else {
        sample.0.extend([("gbps", mib * f64::from(1 << 20) * 8.0 / 1e9), ("mmps", rate / 1e6)]);
    }
    Some(sample)
}

/// `fi_pingpong`.
struct Fabric {
    flags: String,
}

impl Fabric {
    fn lines(&self) -> (Line, Line) {
        let line = |rest: &str| Line::new(&format!("fi_pingpong {} {rest}", self.flags));
        (line(""), line(Cable::FAR))
    }
}

impl Job for Fabric {
    fn run(&self, context: &mut Context) -> Result<Sample, Trouble> {
        let (server, client) = self.lines();
        let finished = meet(context, &server, &client, None)?;
        fabric_sample(&finished.out)
            .ok_or_else(|| Trouble::Failed("fi_pingpong printed no line of figures".into()))
    }

    fn commands(&self) -> Vec<String> {
        let (server, client) = self.lines();
        told(&server, &client)
    }
}

/// From its last line: bytes, sent, acknowledged, total, time, MB a second, microseconds a transfer, M transfers a second.
fn fabric_sample(text: &str) -> Option<Sample> {
    let line = text.lines().rev().find(|line| line.starts_with(|c: char| c.is_ascii_digit()))?;
    let column = |at: usize| line.split_whitespace().nth(at)?.parse::<f64>().ok();
    Some(Sample([("mean_us", column(6)?), ("gbps", column(5)? * 8.0 / 1e3)].into()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_arrived_is_told_by_iperf() {
        let stream = json!({ "end": { "sum_received": { "bits_per_second": 2e10 } } });
        assert_eq!(iperf_sample(&stream, None).unwrap().0["gbps"], 20.0);
        let datagrams = json!({ "end": { "sum": { "packets": 1000, "lost_packets": 250, "seconds": 1.0 } } });
        let sample = iperf_sample(&datagrams, Some(1000)).unwrap();
        assert_eq!((sample.0["gbps"], sample.0["lost_percent"]), (0.006, 25.0));
        assert_eq!(iperf_sample(&json!({ "error": "no" }), None), None);
    }

    #[test]
    fn columns_of_the_others_are_found() {
        let ucx = "+---+\nFinal:   5000   1.955   67.320   67.320   1000.00   1000.00   14854   14854\n";
        assert_eq!(ucx_sample(ucx, false).unwrap().0["gbps"], 8.388608);
        assert_eq!(ucx_sample(ucx, true).unwrap().0["p50_us"], 1.955);
        assert_eq!(ucx_sample("nothing", true), None);
        let fabric = "bytes   #sent   #ack     total       time     MB/sec    usec/xfer   Mxfers/sec\n\
                      64      1k      =1k      125k        0.02s      6.40      10.00       0.10\n";
        let sample = fabric_sample(fabric).unwrap();
        assert_eq!((sample.0["mean_us"], sample.0["gbps"]), (10.0, 0.0512));
    }
}
