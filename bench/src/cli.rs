//! The command line: perftest's flags where they mean the same.

use clap::{Args, Parser, ValueEnum};
use rockhopper::ImpairPlan;
use rockhopper::perf::{Op, PeerProgram, Transport};
use std::path::PathBuf;
use std::time::Duration;

/// Measures RDMA operations over RoCEv2: server without HOST, client with it, or both ends in one process.
#[derive(Debug, Parser)]
#[command(name = "rockhopper-perf", version, after_help = EXAMPLES)]
pub struct Cli {
    /// {send,write,read,atomic}-{bw,lat}
    pub op: Op,
    /// Name or address of the server; without it this is the server
    #[arg(conflicts_with = "loopback")]
    pub host: Option<String>,
    /// Both ends in this process, joined by a ring in memory
    #[arg(long, value_enum)]
    pub loopback: Option<Loopback>,
    #[command(flatten)]
    pub port: PortArgs,
    #[command(flatten)]
    pub run: RunArgs,
    /// Connect by rdma_cm, packets on the wire, instead of TCP: HOST is the peer's RDMA address. Linux' programs have -R for it
    #[arg(long, conflicts_with = "loopback")]
    pub cm: bool,
    /// Port of the exchange between client and server, of TCP or with --cm of rdma_cm [default: 18591; with --peer 18515]
    #[arg(long = "port", short = 'p', value_name = "N")]
    pub tcp_port: Option<u16>,
    /// The other end is a Linux program: perftest (ib_*_bw, ib_*_lat) or pingpong (ibv_*_pingpong)
    #[arg(long, value_name = "PROGRAM", conflicts_with = "loopback")]
    pub peer: Option<PeerProgram>,
    /// With --peer: print what has to be in the peer's memory, and wait for a line before the peer is told to end
    #[arg(long, requires = "peer")]
    pub hold: bool,
    /// With --peer: once messages flow take this end's address from the port for so long, and give it back
    #[arg(long, value_name = "TIME", requires = "peer", value_parser = parse_duration)]
    pub flap: Option<Duration>,
    /// As the server: end after one client
    #[arg(long, conflicts_with_all = ["host", "loopback"])]
    pub once: bool,
    /// Print one JSON object instead of a table
    #[arg(long)]
    pub json: bool,
}

const EXAMPLES: &str = "\
Examples:
  rockhopper-perf write-bw --loopback ring --size 65536 --duration 3s --verify
  rockhopper-perf send-lat -c configs/tap.toml                  the server
  rockhopper-perf send-lat 192.0.2.1 -c configs/tap.toml        its client
  rockhopper-perf read-bw 192.0.2.1 -c FILE --peer perftest -n 1000     with ib_read_bw -n 1000 there
  rockhopper-perf write-bw 192.0.2.1 -c FILE --cm               no TCP: with `rockhopper serve` there
  rockhopper-perf suite --list                                  all of it in one run, with a report: suite --help
  rockhopper-perf probe copy-crc                                limits of this machine: probe --help";

/// How both ends of one process are joined.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Loopback {
    /// net_ring: packets change hands in memory
    Ring,
}

/// How this end comes to its port.
#[derive(Debug, Args)]
#[command(next_help_heading = "Port")]
pub struct PortArgs {
    /// Configuration file; its first port is used
    #[arg(long, short = 'c', value_name = "FILE", conflicts_with_all = ["vdev", "loopback"])]
    pub config: Option<PathBuf>,
    /// A DPDK virtual device, like net_tap0,iface=rh0
    #[arg(long, value_name = "DEVICE", requires = "address", conflicts_with = "loopback")]
    pub vdev: Option<String>,
    /// An address of the port of --vdev with its prefix, like 192.0.2.1/24 (may be repeated)
    #[arg(long, value_name = "IP/LEN", requires = "vdev")]
    pub address: Vec<String>,
    /// The GID (by its index) of this end; by default the first of the wanted IP version, with --cm the one that leads to HOST
    #[arg(long, short = 'x', value_name = "N")]
    pub gid_index: Option<usize>,
    /// Use IPv6
    #[arg(long, short = '6')]
    pub ipv6: bool,
    /// CPUs: of the two ends for --loopback, else of the worker
    #[arg(long, value_name = "N,N", value_delimiter = ',')]
    pub cores: Vec<usize>,
    /// Spoil this end's link on purpose, as in "drop 1%; reorder 3 every 1000"; with --loopback, that of both ends
    #[arg(long, value_name = "PLAN")]
    pub impair: Option<ImpairPlan>,
}

/// What to run.
#[derive(Debug, Args)]
#[command(next_help_heading = "Run")]
pub struct RunArgs {
    /// Bytes of a message, or `all` for every power of two from 2 to 8388608 [default: 65536; latency 2; atomics 8]
    #[arg(long, short = 's', value_name = "N|all", value_parser = parse_sizes)]
    pub size: Option<Sizes>,
    /// Queue pairs
    #[arg(long, short = 'q', value_name = "N", default_value_t = 1)]
    pub qps: u32,
    /// Messages under way per QP [default: 128; latency 1]
    #[arg(long, short = 't', value_name = "N")]
    pub depth: Option<u32>,
    /// Path MTU: 256, 512, 1024, 2048 or 4096 [default: the largest that both ports carry]
    #[arg(long, short = 'm', value_name = "BYTES")]
    pub mtu: Option<u32>,
    /// Messages per QP [default for latency: 1000]
    #[arg(long, short = 'n', value_name = "N", conflicts_with = "duration")]
    pub iters: Option<u64>,
    /// How long to run: 3, 3s, 500ms, 2m [default for bandwidth: 5s]
    #[arg(long, short = 'D', value_name = "TIME", value_parser = parse_duration)]
    pub duration: Option<Duration>,
    /// Service of the queue pairs: RC, UC or UD
    #[arg(long, short = 'C', value_name = "SERVICE", default_value_t = Transport::Rc)]
    pub connection: Transport,
    /// Both ends send at once; the sum is reported
    #[arg(long, short = 'b')]
    pub bidirectional: bool,
    /// Check every byte; the checks are part of the time
    #[arg(long)]
    pub verify: bool,
    /// Send and write with immediate data
    #[arg(long)]
    pub imm: bool,
    /// Carry messages of up to N bytes in the request itself
    #[arg(long, short = 'I', value_name = "N", default_value_t = 0)]
    pub inline: u32,
    /// Post so many requests together, or more where there is room for more
    #[arg(long, short = 'l', value_name = "N", default_value_t = 1)]
    pub post_list: u32,
    /// Ask for one completion in so many messages [default: 32, fewer for long messages]
    #[arg(long, short = 'Q', value_name = "N")]
    pub cq_mod: Option<u32>,
    /// READs and atomics under way per QP [default: 128]
    #[arg(long, short = 'o', value_name = "N")]
    pub outs: Option<u8>,
    /// Type of service of the packets, 0 to 255 [default: the port's]
    #[arg(long, short = 'R', value_name = "N")]
    pub tos: Option<u8>,
    /// Spread messages over so many bytes at either end: more than caches hold measures memory, too [default: as perftest, 4096
    /// for each queue pair, or one message if that is longer]
    #[arg(long, value_name = "BYTES", conflicts_with_all = ["verify", "peer"])]
    pub area: Option<u64>,
    /// What the bytes of messages are derived from
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// Spoil a byte of this message, to see that --verify finds it
    #[arg(long, value_name = "N", requires = "verify")]
    pub tamper: Option<u64>,
}

/// Message sizes to measure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sizes {
    /// This one.
    One(u32),
    /// Powers of two from 2 to 8 MiB.
    All,
}

fn parse_sizes(text: &str) -> Result<Sizes, String> {
    if text == "all" {
        return Ok(Sizes::All);
    }
    text.parse().map(Sizes::One).map_err(|_| "a size is a number of bytes, or `all`".into())
}

/// `3`, `3s`, `500ms`, `2m`; fractions are fine. At least a millisecond.
pub fn parse_duration(text: &str) -> Result<Duration, String> {
    let number_ends = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(number_ends);
    let seconds_per_unit = match unit {
        "" | "s" => 1.0,
        "ms" => 0.001,
        "m" | "min" => 60.0,
        _ => return Err("a time is a number with s, ms or m behind it, like 3s".into()),
    };
    let number: f64 = number.parse().map_err(|_| "a time begins with a number, like 3s")?;
    Duration::try_from_secs_f64(number * seconds_per_unit)
        .ok()
        .filter(|time| *time >= Duration::from_millis(1))
        .ok_or_else(|| "a run takes at least 1ms".into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_flags_do_not_contradict_each_other() {
        Cli::command().debug_assert();
    }

    #[test]
    fn times_read_as_people_write_them() {
        let ms = |text| parse_duration(text).map(|time| time.as_millis());
        assert_eq!(ms("3"), Ok(3000));
        assert_eq!(ms("3s"), Ok(3000));
        assert_eq!(ms("500ms"), Ok(500));
        assert_eq!(ms("0.5"), Ok(500));
        assert_eq!(ms("2m"), Ok(120_000));
        for wrong in ["", "s", "3h", "0", "-1", "1e99999", "9999999999999999999999s", "0.1ms", "1.2.3"] {
            assert!(ms(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn sizes_are_one_or_all() {
        assert_eq!(parse_sizes("all"), Ok(Sizes::All));
        assert_eq!(parse_sizes("65537"), Ok(Sizes::One(65537)));
        assert!(parse_sizes("big").is_err());
        assert!(parse_sizes("-1").is_err());
    }
}
