//! Every case, group by group.
//!
//! | group | what | file |
//! | --- | --- | --- |
//! | `limits` | what the machine gives at most | `limits.rs`, `testpmd.rs` |
//! | `ring`, `mtu`, `qps`, `latency` | Rockhopper over `net_ring`: sizes; path MTUs; numbers of queue pairs; percentiles | `ring.rs` |
//! | `setup` | connections, registration, memory of queue pairs | `ring.rs` |
//! | `memif`, `veth`, `tap` | Rockhopper between two processes | `wires.rs`; what both cores do meanwhile: `profile.rs` |
//! | `peers` | kernel TCP and UDP, UCX, libfabric over veth | `peers.rs` |
//! | `rxe` | Linux Soft-RoCE between two guests | `rxe.rs` |
//! | `counters` | cycles, instructions, cache misses | `counters.rs` |

mod counters;
mod limits;
mod ours;
mod peers;
mod profile;
mod ring;
mod rxe;
mod steering;
mod testpmd;
mod wires;

use super::case::{Case, Job};
use super::metric::{METRICS, find};
use std::time::Duration;

/// All of them, in the order in which they are measured. `duration` is what each is told to take.
pub fn all(duration: Duration) -> Vec<Case> {
    let mut all = limits::cases(duration);
    all.extend(ring::cases(duration));
    all.extend(wires::cases(duration));
    all.extend(peers::cases(duration));
    all.extend(rxe::cases(duration));
    all.extend(counters::cases(duration));
    all
}

/// A case of a group; `metric` stands for it.
fn case(
    group: &'static str,
    name: impl Into<String>,
    about: impl Into<String>,
    metric: &str,
    job: impl Job + 'static,
) -> Case {
    Case {
        group,
        name: name.into(),
        about: about.into(),
        // A name that is none shows at once, in the test below.
        primary: find(metric).unwrap_or(&METRICS[0]),
        points: Vec::new(),
        job: Box::new(job),
        overhead_seconds: 1.0,
        one_core: false,
    }
}

/// Bytes as people say them: `64 B`, `4 KiB`.
pub fn bytes(count: u64) -> String {
    match count {
        count if count >= 1 << 20 && count % (1 << 20) == 0 => format!("{} MiB", count >> 20),
        count if count >= 1 << 10 && count % (1 << 10) == 0 => format!("{} KiB", count >> 10),
        count => format!("{count} B"),
    }
}

/// A time as our programs read it.
fn time(duration: Duration) -> String {
    format!("{}ms", duration.as_millis())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::suite::report::plots::PLOTS;
    use std::collections::BTreeSet;

    #[test]
    fn names_are_words_once_each_and_groups_stay_together() {
        let all = all(Duration::from_secs(1));
        let ids: BTreeSet<String> = all.iter().map(Case::id).collect();
        assert_eq!(ids.len(), all.len());
        assert!(ids.iter().all(|id| id.bytes().all(|b| b.is_ascii_alphanumeric() || b"-/".contains(&b))));
        let mut groups: Vec<&str> = all.iter().map(|case| case.group).collect();
        groups.dedup();
        assert_eq!(groups.len(), groups.iter().collect::<BTreeSet<_>>().len(), "{groups:?}");
    }

    #[test]
    fn every_case_tells_its_commands_and_is_drawn_in_plots_that_there_are() {
        for case in all(Duration::from_secs(1)) {
            assert!(!case.job.commands().is_empty(), "{}", case.id());
            for point in &case.points {
                let plot = PLOTS.iter().find(|plot| plot.name == point.plot);
                assert!(plot.is_some(), "{}: {}", case.id(), point.plot);
                assert!(point.x > 0.0, "{}: log axes begin above 0", case.id());
            }
        }
    }

    #[test]
    fn sizes_are_said_in_the_largest_unit_that_fits() {
        assert_eq!([bytes(1), bytes(1500), bytes(4096), bytes(8 << 20)], ["1 B", "1500 B", "4 KiB", "8 MiB"]);
    }
}
