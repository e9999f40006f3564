//! Where the time of both cores goes while WRITEs cross a wire of the kernel's: `perf` looks at each core a thousand times a second,
//! and what it finds is put into groups by library and symbol.

use super::wires::{Pair, Wire};
use super::{bytes, case};
use crate::suite::case::{Case, Job, Sample, Trouble};
use crate::suite::child::{Line, is_installed, missing};
use crate::suite::context::Context;
use std::time::Duration;

const SIZE: u64 = 1 << 20;
/// Looks a second at each core.
const RATE: u32 = 997;
/// Samples of the driver that a run has at least, or it was none.
const LEAST: usize = 20;

/// What a core does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Doing {
    Kernel,
    Driver,
    Payload,
    Transport,
    Idle,
    Other,
}

/// Figures of the sender's core and of the receiver's.
const FIGURES: [(Doing, [&str; 2]); 6] = [
    (Doing::Kernel, ["sender_kernel_percent", "receiver_kernel_percent"]),
    (Doing::Driver, ["sender_driver_percent", "receiver_driver_percent"]),
    (Doing::Payload, ["sender_payload_percent", "receiver_payload_percent"]),
    (Doing::Transport, ["sender_transport_percent", "receiver_transport_percent"]),
    (Doing::Idle, ["sender_idle_percent", "receiver_idle_percent"]),
    (Doing::Other, ["sender_other_percent", "receiver_other_percent"]),
];

pub fn cases(duration: Duration) -> Vec<Case> {
    let about = format!(
        "RC WRITE, {}, two processes over net_af_packet on a veth pair: what the sender's core is busy with, and the receiver's, \
         of its time while frames pass. Kernel: its packet sockets, veth, copies between them. Driver: its library, and the copies \
         that it has libc make. Payload: our copies and iCRC. Transport: the rest of ours, looking in vain included",
        bytes(SIZE)
    );
    // What starting takes is looked at as well, and left out.
    let pair = Pair::new(Wire::Veth, "write-bw", &format!("--size {SIZE}"), duration);
    let mut case = case("veth", "profile", about, "sender_kernel_percent", Profile { pair });
    case.overhead_seconds = 4.0;
    vec![case]
}

struct Profile {
    pair: Pair,
}

impl Profile {
    fn record(cores: &str, file: &str) -> Line {
        Line::new(&format!("perf record -q -e cpu-clock -F {RATE} -C {cores} -o {file}"))
    }

    fn script(file: &str) -> Line {
        Line::new(&format!("perf script -F comm,cpu,time,ip,sym,dso -i {file}"))
    }
}

impl Job for Profile {
    fn run(&self, context: &mut Context) -> Result<Sample, Trouble> {
        if !is_installed("perf") {
            return Err(missing("perf"));
        }
        let file = context.scratch().join("perf.data").display().to_string();
        let [sender, receiver] = context.cores;
        // It ends, and writes what it saw, when it is told to; the files of a while take it along.
        let perf = context.start(&Profile::record(&format!("{sender},{receiver}"), &file))?;
        let run = self.pair.run(context);
        perf.end(context.limit())?;
        let mut sample = run?;
        let script = context.finish(&Profile::script(&file))?;
        let _ = std::fs::remove_file(&file);
        if !script.status.success() {
            return Err(Trouble::NotRun(format!("perf sees nothing here: {}", script.complaint())));
        }
        let name = context.program.file_name().unwrap_or_default().to_string_lossy().into_owned();
        sample.0.extend(shares(&script.out, [sender, receiver], &name)?.0);
        Ok(sample)
    }

    fn commands(&self) -> Vec<String> {
        let record = Profile::record("0,1", "perf.data").shown();
        let mut all = self.pair.commands();
        all.push(format!("{record}  # beside them; then: {}", Profile::script("perf.data").shown()));
        all
    }
}

/// A look at a core.
struct Look {
    core: usize,
    seconds: f64,
    doing: Doing,
}

/// From perf's line `COMM [CPU] TIME: IP SYMBOL (LIBRARY)`; a name may have blanks.
fn look(line: &str, ours: &str) -> Option<Look> {
    let (comm, rest) = line.split_once(" [")?;
    let (core, rest) = rest.split_once(']')?;
    let (seconds, rest) = rest.trim_start().split_once(':')?;
    let (_, what) = rest.trim_start().split_once(' ')?;
    let (symbol, library) = what.rsplit_once('(')?;
    let library = library.trim_end().trim_end_matches(')');
    let library = library.rsplit('/').next().unwrap_or(library);
    let doing = if comm.trim() == "swapper" {
        Doing::Idle
    } else if !comm.trim().starts_with(short(ours)) {
        Doing::Other
    } else {
        doing(symbol.trim(), library, ours)
    };
    Some(Look { core: core.parse().ok()?, seconds: seconds.parse().ok()?, doing })
}

/// Linux keeps 15 bytes of a thread's name.
fn short(name: &str) -> &str {
    name.get(..15).unwrap_or(name)
}

/// Ours that read or write payload: the rest of headers and iCRC are among them where they are one function.
const PAYLOAD: [&str; 3] = ["memory::", "crc", "PacketSink"];

fn doing(symbol: &str, library: &str, ours: &str) -> Doing {
    if library.starts_with("[kernel") || library.starts_with("[guest.kernel") {
        Doing::Kernel
    } else if library.starts_with("librte_net_") || library.starts_with("libc.") {
        Doing::Driver
    } else if library != ours {
        Doing::Other
    } else if PAYLOAD.iter().any(|part| symbol.contains(part)) {
        Doing::Payload
    } else {
        Doing::Transport
    }
}

/// Shares of each core's time while frames passed: between the first and the last look that found the driver at the sender's, less a
/// twentieth of those at both ends.
fn shares(text: &str, cores: [usize; 2], ours: &str) -> Result<Sample, Trouble> {
    let looks: Vec<Look> = text.lines().filter_map(|line| look(line, ours)).collect();
    let driver = looks.iter().filter(|look| look.core == cores[0] && look.doing == Doing::Driver);
    let times: Vec<f64> = driver.map(|look| look.seconds).collect();
    if times.len() < LEAST {
        return Err(Trouble::Failed(format!("perf found the driver {} times only", times.len())));
    }
    let (begin, end) = (times[times.len() / 20], times[times.len() - 1 - times.len() / 20]);
    let mut sample = Sample::default();
    for (end_of_wire, core) in cores.into_iter().enumerate() {
        let within: Vec<&Look> =
            looks.iter().filter(|look| look.core == core && (begin..=end).contains(&look.seconds)).collect();
        for (doing, names) in FIGURES {
            let count = within.iter().filter(|look| look.doing == doing).count();
            sample.0.insert(names[end_of_wire], count as f64 * 100.0 / within.len().max(1) as f64);
        }
    }
    Ok(sample)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::suite::metric::find;

    #[test]
    fn lines_of_perf_are_put_into_groups() {
        let of = |line: &str| look(line, "rockhopper-perf").map(|look| (look.core, look.doing));
        let found = [
            (
                "swapper [000]  2980.759592:  ffffffff821f2c2b pv_native_safe_halt ([kernel.kallsyms])",
                Doing::Idle,
            ),
            (
                "rockhopper-perf [001]  1.5:  ffffffff8214f079 packet_sendmsg ([kernel.kallsyms])",
                Doing::Kernel,
            ),
            (
                "rockhopper-perf [000]  1.5:  3a31 [unknown] (/usr/lib/dpdk/librte_net_af_packet.so.23.0)",
                Doing::Driver,
            ),
            (
                "rockhopper-perf [000]  1.5:  11 __memmove_avx_unaligned_erms (/usr/lib/libc.so.6)",
                Doing::Driver,
            ),
            (
                "rockhopper-perf [000]  1.5:  11 memory::copy::x86::copy_tail_last (/x/rockhopper-perf)",
                Doing::Payload,
            ),
            (
                "rockhopper-perf [000] 1.5: 11 <worker::sink::BurstSink as engine::packet::PacketSink>::emit (/x/rockhopper-perf)",
                Doing::Payload,
            ),
            (
                "rockhopper-perf [000]  1.5:  11 worker::worker::Worker::poll_once (/x/rockhopper-perf)",
                Doing::Transport,
            ),
            ("kworker/1:1H kb [001] 1.5: 11 x ([kernel.kallsyms])", Doing::Other),
        ];
        for (line, doing) in found {
            assert_eq!(of(line).map(|found| found.1), Some(doing), "{line}");
        }
        assert_eq!(of("rockhopper-perf [017]  1.5:  11 x (y)").map(|found| found.0), Some(17));
        assert_eq!(of("# a comment"), None);
    }

    #[test]
    fn shares_are_those_while_frames_pass() {
        let line =
            |core: u32, at: f64, what: &str| format!("rockhopper-perf [{core:03}] {at:.3}: 11 {what}\n");
        // Before and after: the kernel alone, which starting and ending are.
        let mut text =
            (0..50).map(|n| line(0, f64::from(n) * 0.01, "x ([kernel.kallsyms])")).collect::<String>();
        for n in 0..100 {
            let at = 1.0 + f64::from(n) * 0.01;
            text += &line(0, at, "x (librte_net_af_packet.so.23.0)");
            text += &line(0, at + 0.001, "y ([kernel.kallsyms])");
            text += &line(0, at + 0.002, "y ([kernel.kallsyms])");
            text += &line(0, at + 0.003, "worker::poll (rockhopper-perf)");
            text += &line(1, at, "memory::copy (rockhopper-perf)");
        }
        text +=
            &(0..50).map(|n| line(1, 3.0 + f64::from(n) * 0.01, "x ([kernel.kallsyms])")).collect::<String>();
        let sample = shares(&text, [0, 1], "rockhopper-perf").unwrap().0;
        let near =
            |name: &str, percent: f64| assert!((sample[name] - percent).abs() < 1.0, "{name}: {sample:?}");
        near("sender_kernel_percent", 50.0);
        near("sender_driver_percent", 25.0);
        near("sender_transport_percent", 25.0);
        near("receiver_payload_percent", 100.0);
        near("receiver_kernel_percent", 0.0);
        let whole: f64 = FIGURES.iter().map(|(_, names)| sample[names[0]]).sum();
        assert!((whole - 100.0).abs() < 1e-6, "{sample:?}");
        assert!(shares("", [0, 1], "rockhopper-perf").is_err());
    }

    #[test]
    fn figures_are_known() {
        assert!(FIGURES.iter().flat_map(|(_, names)| names).all(|name| find(name).is_some()));
    }
}
