//! From the command line to runs.

use crate::cli::{Cli, RunArgs, Sizes};
use rockhopper::Mtu;
use rockhopper::perf::{Params, Transport, Until, Verb};
use std::time::Duration;

/// Powers of two of `--size all`: 2 bytes to 8 MiB, as perftest has them.
const ALL_SHIFTS: std::ops::RangeInclusive<u32> = 1..=23;
/// How long each size of `--size all` runs unless told otherwise.
const ALL_DURATION: Duration = Duration::from_millis(500);
/// Most messages, and about how many bytes, between two completions unless told otherwise.
const CQ_MOD: u32 = 32;
const CQ_MOD_BYTES: u32 = 1 << 20;

/// The runs that were asked for, all sizes of them. `mtu` is what our port carries.
pub fn runs(cli: &Cli, mtu: Mtu) -> Vec<Params> {
    let one = params(cli);
    let sizes: Vec<u32> = match cli.run.size {
        None => vec![one.size],
        Some(Sizes::One(size)) => vec![size],
        // Atomics have one size.
        Some(Sizes::All) if cli.op.verb == Verb::Atomic => vec![one.size],
        Some(Sizes::All) => ALL_SHIFTS.map(|shift| 1 << shift).collect(),
    };
    let all = cli.run.size == Some(Sizes::All);
    let fits = |size: &u32| !all || one.transport != Transport::Ud || *size <= one.mtu.min(mtu.bytes());
    let cq_mod = |size: u32| cli.run.cq_mod.unwrap_or_else(|| usual_cq_mod(one.depth, size));
    sizes.into_iter().filter(fits).map(|size| Params { size, cq_mod: cq_mod(size), ..one.clone() }).collect()
}

fn params(cli: &Cli) -> Params {
    let usual = Params::new(cli.op);
    let RunArgs { size, duration, iters, .. } = cli.run;
    let depth = cli.run.depth.unwrap_or(usual.depth);
    let until = match (iters, duration) {
        (Some(iters), _) => Until::Iters(iters),
        (None, Some(duration)) => Until::Millis(duration.as_millis() as u64),
        (None, None) if size == Some(Sizes::All) && !cli.op.is_latency() => {
            Until::Millis(ALL_DURATION.as_millis() as u64)
        }
        (None, None) => usual.until,
    };
    // Without immediate data the target of unreliable WRITEs could not count them.
    let needs_imm = cli.op.verb == Verb::Write
        && cli.run.connection == Transport::Uc
        && !cli.op.is_latency()
        && cli.peer.is_none();
    Params {
        transport: cli.run.connection,
        qps: cli.run.qps,
        depth,
        mtu: cli.run.mtu.unwrap_or(usual.mtu),
        until,
        bidirectional: cli.run.bidirectional,
        verify: cli.run.verify,
        imm: cli.run.imm || needs_imm,
        post_list: cli.run.post_list,
        inline: cli.run.inline,
        outs: cli.run.outs.unwrap_or(usual.outs),
        tos: cli.run.tos,
        area: cli.run.area,
        seed: cli.run.seed,
        ..usual
    }
}

/// Few enough that a window holds two completions, and that none is long in coming.
fn usual_cq_mod(depth: u32, size: u32) -> u32 {
    (depth / 2).min(CQ_MOD_BYTES / size.max(1)).clamp(1, CQ_MOD)
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    fn plan(line: &str) -> Vec<Params> {
        runs(&Cli::try_parse_from(line.split(' ')).unwrap(), Mtu::Mtu1024)
    }

    #[test]
    fn all_sizes_are_the_powers_of_two() {
        let sizes: Vec<u32> =
            plan("perf write-bw --loopback ring --size all").iter().map(|p| p.size).collect();
        assert_eq!((sizes.len(), sizes[0], sizes[22]), (23, 2, 8 << 20));
        let datagrams = plan("perf send-bw -C UD --loopback ring --size all");
        assert_eq!(datagrams.last().map(|p| p.size), Some(1024), "a datagram is one packet");
        assert_eq!(plan("perf atomic-bw --loopback ring --size all").len(), 1);
    }

    #[test]
    fn usual_values_follow_the_test_and_the_depth() {
        let bandwidth = &plan("perf write-bw")[0];
        assert_eq!((bandwidth.size, bandwidth.depth, bandwidth.cq_mod), (65536, 128, 16));
        assert_eq!(plan("perf write-bw -s 64")[0].cq_mod, 32);
        assert_eq!(plan("perf write-bw -t 8")[0].cq_mod, 4);
        let latency = &plan("perf read-lat")[0];
        assert_eq!((latency.size, latency.depth, latency.until), (2, 1, Until::Iters(1000)));
        assert!(plan("perf write-bw -C UC")[0].imm);
        assert!(!plan("perf write-lat -C UC")[0].imm);
        assert_eq!(plan("perf write-bw -D 500ms")[0].until, Until::Millis(500));
    }
}
