//! DPDK's own program that forwards frames, beside our `limits/forward`: one core takes bursts from a port and gives them to one,
//! and looks into no frame. What nobody can be faster than by the same driver.

use super::case;
use crate::suite::case::{Case, Job, Sample, Trouble};
use crate::suite::child::{Line, is_installed};
use crate::suite::context::Context;
use crate::suite::hosts::PortCable;
use std::time::Duration;

const NAME: &str = "dpdk-testpmd";
/// Seconds that it takes to start on a busy machine, and to look back on one.
const BESIDES: u64 = 3;
/// Bytes of a frame: Ethernet to iCRC around 64 bytes of payload.
const FRAME: u32 = 138;

pub fn cases(duration: Duration) -> Vec<Case> {
    let on = |wire: Wire, about: &str| {
        let about = format!("{about} on one core by DPDK's testpmd, which looks into no frame");
        let job = Testpmd { wire, seconds: duration.as_secs_f64().ceil().max(1.0) as u64 + BESIDES };
        let mut case = case("limits", format!("testpmd/{}", wire.name()), about, "mpps", job);
        case.overhead_seconds = BESIDES as f64 + 1.0;
        case
    };
    vec![
        on(Wire::Ring, "frames received from net_ring and sent back"),
        on(
            Wire::Veth,
            "frames received from either end of a veth pair, by net_af_packet, and sent from the other",
        ),
    ]
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wire {
    /// A port that receives what it sends.
    Ring,
    /// Both ends of a veth pair: what the one sends comes in at the other.
    Veth,
}

impl Wire {
    fn name(self) -> &'static str {
        match self {
            Wire::Ring => "ring",
            Wire::Veth => "veth",
        }
    }

    fn devices(self) -> &'static str {
        match self {
            Wire::Ring => "--vdev net_ring0",
            Wire::Veth => "--vdev net_af_packet0,iface=left --vdev net_af_packet1,iface=right",
        }
    }

    fn topology(self) -> &'static str {
        match self {
            Wire::Ring => "loop",
            Wire::Veth => "paired",
        }
    }
}

struct Testpmd {
    wire: Wire,
    seconds: u64,
}

impl Testpmd {
    /// The first core forwards; the second is the program's own, which does next to nothing.
    fn line(&self, [forwards, main]: [usize; 2]) -> Line {
        Line::new(&format!(
            "timeout -s INT {} {NAME} -l {forwards},{main} --main-lcore {main} --no-huge -m 512 --no-pci --no-telemetry --no-shconf {} \
             -- --forward-mode=io --port-topology={} --nb-cores=1 --burst=32 --total-num-mbufs=4096 --txpkts={FRAME} \
             --auto-start --tx-first --stats-period=1",
            self.seconds,
            self.wire.devices(),
            self.wire.topology()
        ))
    }
}

impl Job for Testpmd {
    fn run(&self, context: &mut Context) -> Result<Sample, Trouble> {
        if !is_installed(NAME) {
            let why = format!(
                "there is no {NAME} here; Debian's package dpdk-dev has it, `make setup-bench` installs it"
            );
            return Err(Trouble::NotRun(why));
        }
        if context.cores[0] == context.cores[1] {
            return Err(Trouble::NotRun(format!("{NAME} takes two cores, and there is one")));
        }
        let line = self.line(context.cores);
        let line = match self.wire {
            Wire::Ring => line,
            Wire::Veth => context.port_cable.get(PortCable::new)?.host.run(&line),
        };
        let finished = context.finish(&line)?;
        let rate = rate(&finished.out).ok_or_else(|| Trouble::Failed(finished.complaint()))?;
        Ok(Sample([("mpps", rate / 1e6), ("ns", 1e9 / rate)].into()))
    }

    fn commands(&self) -> Vec<String> {
        vec![self.line([0, 1]).shown()]
    }
}

/// Frames a second of all ports in the last second that it tells of. The first such line is of no time at all.
fn rate(text: &str) -> Option<f64> {
    let mut last = Vec::<(&str, f64)>::new();
    let mut port = "";
    for line in text.lines().map(str::trim) {
        if let Some((_, rest)) = line.split_once("NIC statistics for port ") {
            port = rest.split_whitespace().next()?;
        }
        let Some(rest) = line.strip_prefix("Rx-pps:") else { continue };
        let frames = rest.split_whitespace().next()?.parse::<f64>().ok()?;
        match last.iter_mut().find(|(known, _)| *known == port) {
            Some((_, known)) => *known = frames,
            None => last.push((port, frames)),
        }
    }
    let sum: f64 = last.iter().map(|(_, frames)| frames).sum();
    (sum > 0.0).then_some(sum)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_second_of_all_ports_counts() {
        let port = |number: u32, frames: u32| {
            format!(
                "  ######## NIC statistics for port {number}  ########\n  RX-packets: 9\n  Rx-pps:        {frames}          Rx-bps:   0\n"
            )
        };
        let text =
            [port(0, 0), port(1, 0), port(0, 1000), port(1, 1100), port(0, 2000), port(1, 2500)].concat();
        assert_eq!(rate(&text), Some(4500.0));
        assert_eq!(rate(&port(0, 0)), None);
        assert_eq!(rate("EAL: Error - exiting with code: 1"), None);
    }

    #[test]
    fn it_forwards_on_the_first_core() {
        let line = Testpmd { wire: Wire::Veth, seconds: 3 }.line([4, 7]).shown();
        assert!(line.starts_with("timeout -s INT 3 dpdk-testpmd -l 4,7 --main-lcore 7 "), "{line}");
        assert!(line.contains("iface=right -- --forward-mode=io --port-topology=paired"), "{line}");
    }
}
