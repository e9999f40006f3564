//! Rockhopper with both ends in one process, joined by `net_ring`, one core for each.

use super::ours::Ours;
use super::{bytes, case, time};
use crate::suite::case::Case;
use std::time::Duration;

const SIZES: [u32; 11] = [1, 8, 64, 256, 1024, 4096, 16384, 65536, 262_144, 1 << 20, 8 << 20];
/// What no core's caches hold; registered at either end, within what a run may register.
const COLD_AREA: u64 = 512 << 20;
const QPS: [u32; 5] = [1, 16, 256, 1024, 10_000];

pub fn cases(duration: Duration) -> Vec<Case> {
    let mut all = sizes(duration);
    all.extend(mtus(duration));
    all.extend(queue_pairs(duration));
    all.extend(latencies(duration));
    all.extend(setup(duration));
    all.extend(workers(duration));
    all
}

fn line(operation: &str, rest: &str, duration: Duration) -> Ours {
    Ours::new(&format!("{operation} --loopback ring {rest} --duration {}", time(duration)))
}

fn sizes(duration: Duration) -> Vec<Case> {
    let mut all = Vec::new();
    for operation in ["write", "send", "read"] {
        for size in SIZES {
            let job = line(&format!("{operation}-bw"), &format!("--size {size}"), duration);
            let about = format!("RC {}, {}, one queue pair, MTU 4096", upper(operation), bytes(size.into()));
            let metric = if size < 4096 { "mmps" } else { "gbps" };
            let mut case = case("ring", format!("{operation}/{size}"), about, metric, job)
                .drawn("rc", format!("RC {}", upper(operation)), size)
                .drawn("rc-rate", format!("RC {}", upper(operation)), size);
            if operation == "write" {
                case = case.drawn("wires", "net_ring", size).drawn("wires-rate", "net_ring", size);
            }
            all.push(case);
        }
    }
    for operation in ["write", "read"] {
        for size in [65536u32, 262_144, 1 << 20] {
            let rest = format!("--size {size} --area {COLD_AREA}");
            let job = line(&format!("{operation}-bw"), &rest, duration);
            let told = bytes(COLD_AREA);
            let about =
                format!("RC {}, {}, buffers of {told} at either end", upper(operation), bytes(size.into()));
            let case = case("ring", format!("{operation}-cold/{size}"), about, "gbps", job);
            all.push(case.drawn("rc", format!("RC {}, cold", upper(operation)), size));
        }
    }
    let job = line("atomic-bw", "", duration);
    all.push(case("ring", "atomic/8", "RC fetch-and-add, one queue pair", "mmps", job));
    for (service, operation, sizes) in [
        ("UC", "write", &[64, 4096, 65536, 1 << 20][..]),
        ("UC", "send", &[64, 4096, 65536, 1 << 20]),
        ("UD", "send", &[1, 64, 1024, 4096]),
    ] {
        for &size in sizes {
            let job =
                line(&format!("{operation}-bw"), &format!("--connection {service} --size {size}"), duration);
            let about = format!("{service} {}, {}, one queue pair", upper(operation), bytes(size));
            let name = format!("{}-{operation}/{size}", service.to_lowercase());
            let metric = if size < 4096 { "mmps" } else { "gbps" };
            let series = format!("{service} {}", upper(operation));
            all.push(case("ring", name, about, metric, job).drawn("unreliable", series, size as f64));
        }
    }
    all
}

fn mtus(duration: Duration) -> Vec<Case> {
    let mut all = Vec::new();
    for operation in ["write", "send", "read"] {
        for mtu in [1024u32, 2048, 4096] {
            let job = line(&format!("{operation}-bw"), &format!("--size 65536 --mtu {mtu}"), duration);
            let about = format!("RC {}, 64 KiB, path MTU {mtu}", upper(operation));
            let case = case("mtu", format!("{operation}/{mtu}"), about, "gbps", job);
            all.push(case.drawn("mtu", format!("RC {}", upper(operation)), mtu));
        }
    }
    all
}

/// By the number of queue pairs alone: on each as many messages are under way. With few on each, a queue pair's turn, its acknowledgement
/// and its doorbell are for those few.
fn queue_pairs(duration: Duration) -> Vec<Case> {
    let mut all = Vec::new();
    for (group, depth, numbers) in [("qps", 64, &QPS[..]), ("few", 4, &QPS[1..])] {
        for operation in ["write", "send"] {
            for &qps in numbers {
                let rest = format!("--size 64 --qps {qps} --depth {depth}");
                let about = format!(
                    "RC {}, 64 B, {qps} queue pair{}, {depth} under way on each",
                    upper(operation),
                    if qps == 1 { "" } else { "s" }
                );
                let job = line(&format!("{operation}-bw"), &rest, duration);
                let series = format!("RC {}, {depth} under way on each", upper(operation));
                let name = format!("{operation}/{qps}");
                let mut case = case(group, name, about, "mmps", job).drawn("qps", series, qps);
                case.overhead_seconds = 1.0 + f64::from(qps) / 1000.0;
                all.push(case);
            }
        }
    }
    all
}

fn latencies(duration: Duration) -> Vec<Case> {
    let mut all = Vec::new();
    for (service, operation, sizes) in [
        ("RC", "write", &[8, 64][..]),
        ("RC", "send", &[8, 64]),
        ("RC", "read", &[8, 64]),
        ("RC", "atomic", &[8]),
        ("UC", "write", &[8, 64]),
        ("UD", "send", &[8, 64]),
    ] {
        for &size in sizes {
            let trip = if matches!(operation, "read" | "atomic") { "a whole" } else { "half a" };
            let job =
                line(&format!("{operation}-lat"), &format!("--connection {service} --size {size}"), duration);
            let about = format!("{service} {}, {}, {trip} round trip", upper(operation), bytes(size));
            let name = format!("{}-{operation}/{size}", service.to_lowercase());
            let case = case("latency", name, about, "p50_us", job);
            let series = format!("{service} {}, {}", upper(operation), bytes(size));
            all.push(if size == 8 { case.drawn("latency", series, 1) } else { case });
        }
    }
    all
}

fn setup(duration: Duration) -> Vec<Case> {
    let mut all = vec![case(
        "setup",
        "connect",
        "connections by rdma_cm, made, used and closed, one at a time, one thread for both ends",
        "per_second",
        Ours::new("probe connect"),
    )];
    for size in [4096u32, 65536, 1 << 20, 64 << 20] {
        all.push(
            case(
                "setup",
                format!("register/{size}"),
                format!("memory of {} allocated and registered, and given back", bytes(size.into())),
                "register_us",
                Ours::new(&format!("probe register --size {size} --duration {}", time(duration))),
            )
            .on_one_core(),
        );
    }
    for depth in [1u32, 128] {
        all.push(
            case(
                "setup",
                format!("qp-memory/{depth}"),
                format!("resident memory of an idle queue pair with queues of {depth}"),
                "bytes_per_qp",
                Ours::new(&format!("probe qp-memory --depth {depth}")),
            )
            .on_one_core(),
        );
    }
    all
}

fn workers(duration: Duration) -> Vec<Case> {
    let mut all = Vec::new();
    let probe = |rest: String| Ours::new(&format!("probe {rest} --duration {}", time(duration)));
    for size in [64u32, 4096] {
        for workers in [1, 2] {
            let about = format!(
                "RC WRITE, {}, received by {workers} of a port's workers, 16 queue pairs each; the time of the workers alone",
                bytes(size.into())
            );
            let job = probe(format!("workers --workers {workers} --size {size}"));
            all.push(case("workers", format!("{workers}/{size}"), about, "mmps", job));
        }
    }
    for (arrive, told) in [
        ("right", "at the queue of their queue pair's worker"),
        ("wrong", "at another worker's queue, which hands them over"),
        ("moving", "at another worker's queue, to which their queue pairs move"),
    ] {
        let about = format!("RC WRITE, 64 B, two workers on one core; frames arrive {told}");
        let job = probe(format!("steering --arrive {arrive}"));
        all.push(case("workers", format!("steering/{arrive}"), about, "mmps", job));
    }
    all.extend(super::steering::cases(duration));
    all
}

/// `WRITE`, and `fetch-and-add` for atomics.
pub fn upper(operation: &str) -> String {
    if operation == "atomic" { "fetch-and-add".into() } else { operation.to_uppercase() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::Cli;
    use clap::Parser;

    #[test]
    fn our_own_command_line_takes_every_line() {
        for case in cases(Duration::from_millis(1500)) {
            for line in case.job.commands() {
                if line.contains(" probe ") {
                    continue;
                }
                let cli = Cli::try_parse_from(line.split(' ')).unwrap_or_else(|why| panic!("{line}: {why}"));
                let runs = crate::plan::runs(&cli, rockhopper::Mtu::Mtu4096);
                runs.iter().for_each(|run| run.check().unwrap_or_else(|why| panic!("{line}: {why}")));
            }
        }
    }
}
