//! Rockhopper between two processes: over shared memory, a veth pair, and two taps on a bridge. Each end is one thread on a core of
//! its own, which drives its worker itself.

use super::ours::{NAME, program, sample};
use super::ring::upper;
use super::{bytes, case, time};
use crate::suite::case::{Case, Job, Sample, Trouble};
use crate::suite::child::{Line, is_installed, missing};
use crate::suite::context::Context;
use crate::suite::hosts::{PortCable, TapBridge};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How long an end may take to come up, and a server to end after its client.
const COME_UP: Duration = Duration::from_secs(20);
const LEAVE: Duration = Duration::from_secs(5);
/// IP MTUs of the ports.
const JUMBO: u32 = 4200;
const ETHERNET: u32 = 1500;

/// What joins the two processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wire {
    /// `net_memif`: shared memory.
    Memif,
    /// `net_af_packet` on both ends of a veth pair.
    Veth,
    /// `net_tap`, both taps on one bridge.
    Tap,
}

impl Wire {
    fn group(self) -> &'static str {
        match self {
            Wire::Memif => "memif",
            Wire::Veth => "veth",
            Wire::Tap => "tap",
        }
    }

    fn told(self) -> &'static str {
        match self {
            Wire::Memif => "two processes over net_memif",
            Wire::Veth => "two processes over net_af_packet on a veth pair",
            Wire::Tap => "two processes over net_tap, two taps on a bridge",
        }
    }

    /// The keys of one end's port.
    fn port(self, end: usize, scratch: &Path) -> String {
        match self {
            Wire::Memif => format!(
                "driver = \"memif\"\nsocket = \"{}\"\nrole = \"{}\"\nmac = \"02:52:48:00:00:0{}\"\n",
                scratch.join("memif.sock").display(),
                ["client", "server"][end],
                end + 1
            ),
            // Their own addresses: the kernel then drops the frames at once after it has copied them.
            Wire::Veth => format!(
                "driver = \"af_packet\"\ninterface = \"{}\"\nmac = \"02:52:48:00:00:0{}\"\nmtu = {JUMBO}\n",
                ["left", "right"][end],
                end + 1
            ),
            Wire::Tap => format!(
                "driver = \"tap\"\ninterface = \"{}\"\nmac = \"02:52:48:00:00:0{}\"\nmtu = {ETHERNET}\n",
                TAPS[end],
                end + 1
            ),
        }
    }
}

/// Interfaces of the two ports on the bridge.
pub const TAPS: [&str; 2] = ["tap-a", "tap-b"];

pub fn cases(duration: Duration) -> Vec<Case> {
    let mut all = Vec::new();
    for wire in [Wire::Memif, Wire::Veth, Wire::Tap] {
        all.extend(on(wire, duration));
        if wire == Wire::Veth {
            all.extend(super::profile::cases(duration));
        }
    }
    all
}

fn on(wire: Wire, duration: Duration) -> Vec<Case> {
    let mut all = Vec::new();
    let mut push = |operation: &str, size: u64, metric: &str| {
        let about = format!("RC {}, {}, {}", upper(operation), bytes(size), wire.told());
        let job = Pair::new(wire, &format!("{operation}-bw"), &format!("--size {size}"), duration);
        let mut case = case(wire.group(), format!("{operation}/{size}"), about, metric, job);
        case.overhead_seconds = 3.0;
        if operation == "write" {
            let name = wire.series();
            case = case.drawn("wires", name, size as f64).drawn("wires-rate", name, size as f64);
        }
        all.push(case);
    };
    for size in [64, 1024, 4096, 65536, 1 << 20] {
        push("write", size, if size < 4096 { "mmps" } else { "gbps" });
    }
    for size in [64, 65536] {
        push("send", size, if size < 4096 { "mmps" } else { "gbps" });
    }
    push("read", 65536, "gbps");
    for (operation, size) in [("write", 8), ("send", 64)] {
        let about = format!("RC {}, {}, half a round trip, {}", upper(operation), bytes(size), wire.told());
        let job = Pair::new(wire, &format!("{operation}-lat"), &format!("--size {size}"), duration);
        let mut case = case(wire.group(), format!("{operation}-lat/{size}"), about, "p50_us", job);
        case.overhead_seconds = 3.0;
        all.push(case.drawn(
            "latency-wires",
            format!("{} {}, {}", upper(operation), bytes(size), wire.series()),
            1,
        ));
    }
    all
}

impl Wire {
    /// How its line is called in plots.
    fn series(self) -> &'static str {
        match self {
            Wire::Memif => "net_memif",
            Wire::Veth => "af_packet on veth",
            Wire::Tap => "net_tap",
        }
    }
}

/// A client and a server of our own.
pub struct Pair {
    wire: Wire,
    operation: String,
    flags: String,
    duration: Duration,
}

impl Pair {
    /// `operation` as on the command line; `flags` are the client's.
    pub fn new(wire: Wire, operation: &str, flags: &str, duration: Duration) -> Pair {
        Pair { wire, operation: operation.into(), flags: flags.into(), duration }
    }

    fn server(&self, config: &str, port: u16) -> Line {
        Line::new(&format!("{} -c {config} --port {port} --once", self.operation))
    }

    fn client(&self, config: &str, port: u16) -> Line {
        let (operation, flags, time) = (&self.operation, &self.flags, time(self.duration));
        Line::new(&format!("{operation} 127.0.0.1 -c {config} --port {port} {flags} --duration {time}"))
    }
}

impl Job for Pair {
    fn run(&self, context: &mut Context) -> Result<Sample, Trouble> {
        if !is_installed("taskset") {
            return Err(missing("taskset"));
        }
        let scratch = context.scratch();
        let _ = std::fs::remove_file(scratch.join("memif.sock"));
        let configs = [0, 1].map(|end| write_config(self.wire, end, &scratch));
        let [near, far] = configs;
        let (near, far) = (near?, far?);
        let port = free_port()?;
        let server = pinned(context, 1, &program_without_json(context, &self.server(&shown(&far), port)));
        let client = pinned(context, 0, &program(context, &self.client(&shown(&near), port)));
        let (server, client) = match self.wire {
            Wire::Memif => (server, client),
            Wire::Veth => {
                let host = &context.port_cable.get(PortCable::new)?.host;
                (host.run(&server), host.run(&client))
            }
            Wire::Tap => {
                let host = &context.taps.get(TapBridge::new)?.host;
                (host.run(&server), host.run(&client))
            }
        };
        let mut server = context.start(&server)?;
        server.wait_for("waiting for a client", COME_UP, &context.stop.clone())?;
        if self.wire == Wire::Tap {
            context.taps.get(TapBridge::new)?.join(TAPS[1], 2)?;
        }
        let client = context.start(&client)?;
        if self.wire == Wire::Tap {
            context.taps.get(TapBridge::new)?.join(TAPS[0], 1)?;
        }
        let finished = client.wait(context.limit(), &context.stop)?;
        // Its figures are the client's, too; that it ends in time spares the next one its port.
        let _ = server.wait(LEAVE, &context.stop);
        sample(&finished)
    }

    fn commands(&self) -> Vec<String> {
        let shown = |line: Line| Line::new(NAME).with(line.0).shown();
        vec![shown(self.server("b.toml", 18591)), shown(self.client("a.toml", 18591))]
    }
}

fn program_without_json(context: &Context, arguments: &Line) -> Line {
    Line(vec![context.program.display().to_string()]).with(arguments.0.clone())
}

/// On the core of that end.
pub fn pinned(context: &Context, end: usize, line: &Line) -> Line {
    Line::new(&format!("taskset -c {}", context.cores[end])).with(line.0.clone())
}

fn write_config(wire: Wire, end: usize, scratch: &Path) -> Result<PathBuf, Trouble> {
    let file = scratch.join(format!("{}-{}.toml", wire.group(), ["a", "b"][end]));
    let text = format!(
        "[[port]]\nname = \"port{end}\"\naddresses = [\"10.77.0.{}/24\"]\n{}[workers]\ndrive = \"caller\"\n",
        end + 1,
        wire.port(end, scratch)
    );
    std::fs::write(&file, text).map_err(|why| Trouble::Failed(format!("{}: {why}", file.display())))?;
    Ok(file)
}

fn shown(path: &Path) -> String {
    path.display().to_string()
}

/// A TCP port that nobody uses now.
pub fn free_port() -> Result<u16, Trouble> {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
    listener.map(|address| address.port()).map_err(|why| Trouble::Failed(format!("no TCP port: {why}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn configurations_are_what_our_program_reads() {
        let scratch = tempfile::tempdir().unwrap();
        for wire in [Wire::Memif, Wire::Veth, Wire::Tap] {
            for end in [0, 1] {
                let file = write_config(wire, end, scratch.path()).unwrap();
                let config = rockhopper::Config::load(&file).unwrap_or_else(|why| panic!("{why}"));
                assert_eq!(config.ports.len(), 1);
            }
        }
    }
}
