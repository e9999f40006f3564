//! Linux Soft-RoCE (`rdma_rxe`) between two guests whose taps lie on the bridge of the `tap` cases, at the same MTU: perftest's
//! programs at both ends.
//!
//! The guests are User Mode Linux: a kernel that runs as a process here, with one CPU, no hardware virtualisation, and a system call
//! of this machine for most of what it does. So they are slower than rxe on bare metal, and the report says so.

use super::{bytes, case};
use crate::suite::case::{Case, Job, Sample, Trouble};
use crate::suite::context::Context;
use crate::suite::hosts::{Guests, TapBridge};
use std::time::Duration;

/// Messages from here on are long.
const LONG: u64 = 65536;
/// How often a failed run is tried, at most.
const TRIES: u32 = 3;

pub fn cases(duration: Duration) -> Vec<Case> {
    let mut all = Vec::new();
    for (operation, sizes) in
        [("write", &[64u64, 4096, 65536, 1 << 20][..]), ("send", &[64, 65536]), ("read", &[65536])]
    {
        for &size in sizes {
            let metric = if size < 4096 { "mmps" } else { "gbps" };
            let about = format!(
                "RC {}, {}, Linux rxe between two guests, path MTU 1024",
                operation.to_uppercase(),
                bytes(size)
            );
            let job = Perftest { operation, size, latency: false, duration };
            let mut case = case("rxe", format!("{operation}/{size}"), about, metric, job);
            case.overhead_seconds = 3.0;
            if operation == "write" {
                case = case.drawn("wires", "Linux rxe in guests", size as f64).drawn(
                    "wires-rate",
                    "Linux rxe in guests",
                    size as f64,
                );
            }
            all.push(case);
        }
    }
    for (operation, size) in [("write", 8u64), ("send", 64)] {
        let about = format!(
            "RC {}, {}, half a round trip, Linux rxe between two guests",
            operation.to_uppercase(),
            bytes(size)
        );
        let job = Perftest { operation, size, latency: true, duration };
        let series = format!("{} {}, Linux rxe in guests", operation.to_uppercase(), bytes(size));
        let case = case("rxe", format!("{operation}-lat/{size}"), about, "p50_us", job);
        all.push(case.drawn("latency-wires", series, 1));
    }
    all
}

struct Perftest {
    operation: &'static str,
    size: u64,
    latency: bool,
    duration: Duration,
}

impl Perftest {
    /// The program and the flags that both ends share. Latency is counted, so that its percentiles are printed.
    fn words(&self) -> String {
        let kind = if self.latency { "lat" } else { "bw" };
        let until = if self.latency {
            format!("-n {}", (self.duration.as_secs_f64() * 2000.0).ceil().max(100.0))
        } else {
            format!("-D {}", self.duration.as_secs_f64().ceil().max(2.0))
        };
        // Long messages take so long that of 100, perftest's usual number to a completion, none would be complete in time.
        let completions = if self.size >= LONG && !self.latency { " -Q 1 -t 16" } else { "" };
        format!("ib_{}_{kind} -d rxe0 -x 1 -F -m 1024 -s {} {until}{completions}", self.operation, self.size)
    }

    fn client(&self) -> String {
        format!("{} {}", self.words(), Guests::ADDRESSES[0])
    }
}

impl Job for Perftest {
    fn run(&self, context: &mut Context) -> Result<Sample, Trouble> {
        // A guest that gets no processor for a while lets its connections die, which says nothing of rxe.
        let mut last = self.run_once(context);
        for _ in 1..TRIES {
            if !matches!(last, Err(Trouble::Failed(_))) {
                break;
            }
            last = self.run_once(context);
        }
        last
    }

    fn commands(&self) -> Vec<String> {
        vec![format!("(guest) {}", self.words()), format!("(guest) {}", self.client())]
    }
}

impl Perftest {
    fn run_once(&self, context: &mut Context) -> Result<Sample, Trouble> {
        let cores = context.cores;
        let bridge = context.taps.get(TapBridge::new)?;
        let guests = context.guests.get(|| Guests::new(bridge, cores))?;
        let server = format!(
            "background peer {}; listens 18515 peer || {{ cat /tmp/peer.log; exit 1; }}",
            self.words()
        );
        guests.execute(0, &server)?;
        let seconds = self.duration.as_secs() * 3 + 30;
        let client = guests.line(1, seconds, &self.client());
        let after = guests.line(0, 15, "end peer; ended peer 5 >/dev/null; true");
        let finished = context.finish(&client);
        // Whatever came of it, the next one finds the port free.
        let _ = crate::suite::hosts::output(&after);
        let finished = finished?;
        if !finished.status.success() {
            return Err(Trouble::Failed(finished.complaint()));
        }
        perftest_sample(&finished.out, self.size, self.latency)
            .ok_or_else(|| Trouble::Failed("perftest measured no message in its time".into()))
    }
}

/// From the row that begins with the size. Bandwidth: bytes, iterations, peak and average MB (2^20) a second, M messages a second.
/// Latency: bytes, iterations, least, most, typical (the median), mean, deviation, p99, p99.9 in microseconds.
fn perftest_sample(text: &str, size: u64, latency: bool) -> Option<Sample> {
    let row = text.lines().find_map(|line| {
        let columns: Vec<f64> = line.split_whitespace().map(str::parse).collect::<Result<_, _>>().ok()?;
        (columns.len() >= 5 && columns[0] == size as f64).then_some(columns)
    })?;
    // No message was complete in time: that is no rate, and no latency.
    if row[1] == 0.0 || row[3] == 0.0 || row.iter().any(|figure| !figure.is_finite()) {
        return None;
    }
    let mut sample = Sample::default();
    if latency {
        let &[_, _, min, max, typical, mean, _, p99, p999] = &row[..] else { return None };
        let figures = [
            ("min_us", min),
            ("max_us", max),
            ("p50_us", typical),
            ("mean_us", mean),
            ("p99_us", p99),
            ("p999_us", p999),
        ];
        sample.0.extend(figures);
    } else {
        sample.0.insert("gbps", row[3] * f64::from(1 << 20) * 8.0 / 1e9);
        sample.0.insert("mmps", row[4]);
    }
    Some(sample)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_perftest_are_found() {
        let bandwidth = " #bytes     #iterations    BW peak[MB/sec]    BW average[MB/sec]   MsgRate[Mpps]\n \
                         65536      1000             0.00               100.00             0.001600\n";
        let sample = perftest_sample(bandwidth, 65536, false).unwrap();
        assert_eq!((sample.0["gbps"], sample.0["mmps"]), (0.8388608, 0.0016));
        assert_eq!(perftest_sample(bandwidth, 64, false), None);
        let nothing = " 65536      0                0.00               0.00               0.000000\n";
        assert_eq!(perftest_sample(nothing, 65536, false), None);
        let latency = " 8       1000          20.00   90.00   21.50   22.00   1.00   30.00   80.00\n";
        let sample = perftest_sample(latency, 8, true).unwrap();
        assert_eq!((sample.0["p50_us"], sample.0["p999_us"]), (21.5, 80.0));
    }
}
