//! Medians set against each other, and against what this project aims at.

use crate::suite::case::CaseResult;
use crate::suite::metric::find;
use serde_json::{Value, json};

/// What a median is set against.
enum Against {
    /// Another median.
    Case(String, &'static str),
    /// A number, in the metric's unit.
    Number(f64),
}

/// A median, set against something.
pub struct Ratio {
    /// In words.
    pub about: String,
    of: String,
    metric: &'static str,
    against: Against,
    /// The ratio that is aimed at: at least, or with `at_most` at most.
    pub aim: Option<f64>,
    /// Less is better.
    pub at_most: bool,
    /// The median.
    pub value: f64,
    /// What it is set against.
    pub other: f64,
}

impl Ratio {
    /// The unit of the median.
    pub fn unit(&self) -> &'static str {
        find(self.metric).map_or("", |metric| metric.unit)
    }

    /// One by the other.
    pub fn ratio(&self) -> f64 {
        self.value / self.other
    }

    /// Whether the aim is reached; `None` where there is none.
    pub fn is_reached(&self) -> Option<bool> {
        self.aim.map(|aim| if self.at_most { self.ratio() <= aim } else { self.ratio() >= aim })
    }

    /// As an object.
    pub fn json(&self) -> Value {
        let against = match &self.against {
            Against::Case(id, metric) => json!({ "id": id, "metric": metric }),
            Against::Number(_) => Value::Null,
        };
        json!({
            "about": self.about,
            "id": self.of,
            "metric": self.metric,
            "value": self.value,
            "against": against,
            "against_value": self.other,
            "ratio": self.ratio(),
            "aim": self.aim,
            "aim_is_at_most": self.at_most,
            "reached": self.is_reached(),
        })
    }
}

/// Every ratio whose two sides were measured.
pub fn all(results: &[CaseResult]) -> Vec<Ratio> {
    let median = |id: &str, metric: &str| {
        results.iter().find(|result| result.case.id() == id)?.summary(metric).map(|summary| summary.median)
    };
    let measured = |mut ratio: Ratio| {
        ratio.value = median(&ratio.of, ratio.metric)?;
        ratio.other = match &ratio.against {
            Against::Case(id, metric) => median(id, metric)?,
            Against::Number(number) => *number,
        };
        (ratio.other > 0.0).then_some(ratio)
    };
    wanted().into_iter().filter_map(measured).collect()
}

fn wanted() -> Vec<Ratio> {
    let mut all = against_bounds();
    all.extend(against_aims());
    all.extend(against_peers());
    all
}

fn ratio(about: String, of: String, metric: &'static str, against: Against, aim: Option<f64>) -> Ratio {
    Ratio { about, of, metric, against, aim, at_most: false, value: 0.0, other: 0.0 }
}

fn case(id: &str, metric: &'static str) -> Against {
    Against::Case(id.into(), metric)
}

fn against_bounds() -> Vec<Ratio> {
    let mut all = Vec::new();
    for operation in ["write", "read", "send"] {
        for (size, told) in [("65536", "64 KiB"), ("262144", "256 KiB"), ("1048576", "1 MiB")] {
            let about = format!(
                "RC {} {told} over net_ring, of the copy+CRC bound (hot, 4 KiB)",
                operation.to_uppercase()
            );
            // The project's aim is for the two that move data by address.
            let aim = (operation != "send").then_some(0.85);
            all.push(ratio(
                about,
                format!("ring/{operation}/{size}"),
                "gbps",
                case("limits/copy-crc-hot/4096", "gbps"),
                aim,
            ));
        }
    }
    for operation in ["write", "read"] {
        for (size, told) in [("65536", "64 KiB"), ("1048576", "1 MiB")] {
            let about = format!(
                "RC {} {told} with cold buffers, of the cold copy+CRC bound",
                operation.to_uppercase()
            );
            let of = format!("ring/{operation}-cold/{size}");
            all.push(ratio(about, of, "gbps", case("limits/copy-crc-cold/4096", "gbps"), Some(0.85)));
        }
    }
    for (of, told) in [("ring/write/64", "one queue pair"), ("qps/write/256", "256 queue pairs")] {
        let about =
            format!("64-byte WRITEs on {told} over net_ring, of such frames carried without a transport");
        all.push(ratio(about, of.into(), "mmps", case("limits/carry/138", "mpps"), None));
    }
    all.extend(against_drivers());
    all.extend(against_fewer());
    let trip = "8-byte WRITE, half a round trip, p50, in round trips of a cache line between the cores";
    all.push(ratio(
        trip.into(),
        "latency/rc-write/8".into(),
        "p50_us",
        case("limits/round-trip", "p50_us"),
        None,
    ));
    for (metric, told) in [("p99_us", "p99"), ("p999_us", "p99.9")] {
        let about = format!("8-byte WRITE latency {told}, of the same of a cache line between cores at work");
        let mut ratio =
            ratio(about, "latency/rc-write/8".into(), metric, case("limits/ping-pong", metric), None);
        ratio.at_most = true;
        all.push(ratio);
    }
    all
}

/// What is left of the rate of each driver by itself.
fn against_drivers() -> Vec<Ratio> {
    let frames = |of: &str, hop: &str, about: &str| {
        let about = format!("{about}, of the frames that the driver carries");
        ratio(about, of.into(), "mmps", case(hop, "mpps"), None)
    };
    let bits = |of: &str, hop: &str, about: &str| {
        let about = format!("{about}, of the bits of frames that the driver carries");
        ratio(about, of.into(), "gbps", case(hop, "gbps"), None)
    };
    vec![
        frames("qps/write/256", "limits/ring-hop/138", "64-byte WRITEs on 256 queue pairs over net_ring"),
        frames("veth/write/64", "limits/veth-hop/138", "64-byte WRITEs over veth"),
        bits("veth/write/4096", "limits/veth-hop/4170", "4-KiB WRITEs over veth"),
        bits("veth/write/1048576", "limits/veth-hop/4170", "RC WRITE 1 MiB over veth"),
        frames("tap/write/64", "limits/tap-hop/138", "64-byte WRITEs over taps"),
        frames("tap/write/1024", "limits/tap-hop/1098", "1-KiB WRITEs over taps"),
        bits("tap/write/65536", "limits/tap-hop/1098", "RC WRITE 64 KiB over taps"),
    ]
}

/// More workers, wrong queues, and more queue pairs.
fn against_fewer() -> Vec<Ratio> {
    let mut all = Vec::new();
    for load in ["64", "4096"] {
        all.push(ratio(
            format!("{load}-byte WRITEs received by two workers on two cores, of those by one"),
            format!("workers/2/{load}"),
            "mmps",
            case(&format!("workers/1/{load}"), "mmps"),
            Some(1.8),
        ));
    }
    for (arrive, told) in [("wrong", "are handed over"), ("moving", "have their queue pairs move")] {
        all.push(ratio(
            format!("64-byte WRITEs that arrive at the wrong queue and {told}, of those at the right one"),
            format!("workers/steering/{arrive}"),
            "mmps",
            case("workers/steering/right", "mmps"),
            None,
        ));
    }
    for (arrive, told) in [("moving", "queue pairs move"), ("followed", "the kernel learns their queue")] {
        all.push(ratio(
            format!("64-byte WRITEs that a tap's kernel spreads over two workers, where {told}, of those handed over"),
            format!("workers/tap/{arrive}"),
            "mmps",
            case("workers/tap/wrong", "mmps"),
            None,
        ));
    }
    for (group, depth, least, more) in
        [("qps", 64, 1, &[16, 256, 1024, 10_000][..]), ("few", 4, 16, &[256, 1024, 10_000])]
    {
        for operation in ["write", "send"] {
            for qps in more {
                all.push(ratio(
                    format!(
                        "64-byte {}s on {qps} queue pairs, of those on {least}, {depth} under way on each",
                        operation.to_uppercase()
                    ),
                    format!("{group}/{operation}/{qps}"),
                    "mmps",
                    case(&format!("{group}/{operation}/{least}"), "mmps"),
                    Some(0.8),
                ));
            }
        }
    }
    all
}

fn against_aims() -> Vec<Ratio> {
    let number = |about: &str, of: &str, metric, aim, at_most| Ratio {
        at_most,
        ..ratio(about.into(), of.into(), metric, Against::Number(aim), Some(1.0))
    };
    vec![
        number("RC WRITE 1 MiB over net_ring, of 100 Gb/s", "ring/write/1048576", "gbps", 100.0, false),
        number("64-byte WRITEs, one queue pair, of 8 M/s", "ring/write/64", "mmps", 8.0, false),
        number("64-byte SENDs, one queue pair, of 8 M/s", "ring/send/64", "mmps", 8.0, false),
        number("64-byte WRITEs, 256 queue pairs, of 12 M/s", "qps/write/256", "mmps", 12.0, false),
        number("64-byte SENDs, 256 queue pairs, of 12 M/s", "qps/send/256", "mmps", 12.0, false),
        number("8-byte WRITE latency p50, of 1.2 µs", "latency/rc-write/8", "p50_us", 1.2, true),
        number("8-byte WRITE latency p99.9, of 10 µs", "latency/rc-write/8", "p999_us", 10.0, true),
        number(
            "memory of an idle QP besides its rings, of 4 KiB",
            "setup/qp-memory/1",
            "besides_rings_bytes",
            4096.0,
            true,
        ),
    ]
}

fn against_peers() -> Vec<Ratio> {
    let mut all = Vec::new();
    for (wire, told) in [("veth", "af_packet on veth"), ("tap", "net_tap"), ("memif", "net_memif")] {
        let about = format!("RC WRITE 1 MiB over {told}, of kernel TCP over veth");
        let aim = (wire == "veth").then_some(1.0);
        all.push(ratio(about, format!("{wire}/write/1048576"), "gbps", case("peers/tcp", "gbps"), aim));
        let about = format!("RC WRITE 64 KiB over {told}, of UCX's put over TCP over veth");
        let ucx = case("peers/ucx-ucp-put-bw/65536", "gbps");
        all.push(ratio(about, format!("{wire}/write/65536"), "gbps", ucx, None));
    }
    for (of, told) in
        [("limits/veth-hop/4170", "net_af_packet on veth"), ("limits/tap-hop/1514", "net_tap on a bridge")]
    {
        let about =
            format!("the driver alone, {told}, frames that nobody looks into, of kernel TCP over veth");
        all.push(ratio(about, of.into(), "gbps", case("peers/tcp", "gbps"), None));
    }
    for (operation, size, metric, aim) in [
        ("write", "64", "mmps", 5.0),
        ("send", "64", "mmps", 5.0),
        ("write", "65536", "gbps", 3.0),
        ("send", "65536", "gbps", 3.0),
        ("read", "65536", "gbps", 3.0),
    ] {
        let about = format!(
            "RC {} {size} B over taps on the bridge, of Linux rxe in guests on the same bridge",
            operation.to_uppercase()
        );
        let rxe = case(&format!("rxe/{operation}/{size}"), metric);
        all.push(ratio(about, format!("tap/{operation}/{size}"), metric, rxe, Some(aim)));
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::suite::cases;
    use std::time::Duration;

    #[test]
    fn what_is_compared_is_measured_somewhere() {
        let ids: Vec<String> = cases::all(Duration::from_secs(1)).iter().map(|case| case.id()).collect();
        let is_there = |id: &String, metric| {
            assert!(ids.contains(id), "{id}");
            assert!(find(metric).is_some(), "{metric}");
        };
        for ratio in wanted() {
            is_there(&ratio.of, ratio.metric);
            if let Against::Case(id, metric) = &ratio.against {
                is_there(id, metric);
            }
        }
    }

    #[test]
    fn aims_are_reached_from_the_right_side() {
        let with = |value, other, at_most| Ratio {
            value,
            other,
            at_most,
            ..ratio(String::new(), String::new(), "gbps", Against::Number(1.0), Some(1.0))
        };
        assert_eq!(with(2.0, 1.0, false).is_reached(), Some(true));
        assert_eq!(with(2.0, 1.0, true).is_reached(), Some(false));
        assert_eq!(Ratio { aim: None, ..with(2.0, 1.0, false) }.is_reached(), None);
    }
}
