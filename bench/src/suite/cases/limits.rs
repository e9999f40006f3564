//! What the machine gives at most.

use super::ours::Ours;
use super::{bytes, case, time};
use crate::suite::case::{Case, Job, Sample, Trouble};
use crate::suite::child::Line;
use crate::suite::context::Context;
use crate::suite::hosts::PortCable;
use rockhopper_perf::limits::Work;
use std::time::Duration;

const SIZES: [u32; 6] = [64, 256, 1024, 2048, 4096, 65536];
/// Bytes of a frame with 64 bytes of payload, and with 4096: Ethernet, IPv4, UDP, BTH, RETH, iCRC.
const FRAMES: [u32; 2] = [138, 4170];

pub fn cases(duration: Duration) -> Vec<Case> {
    let mut all = memory(duration);
    let time = time(duration);
    for frame in FRAMES {
        all.push(case(
            "limits",
            format!("ring-hop/{frame}"),
            format!(
                "frames of {frame} bytes from one core to another through net_ring, nobody looks into them"
            ),
            "mpps",
            Ours::new(&format!("probe hop --size {frame} --duration {time}")),
        ));
        all.push(case(
            "limits",
            format!("forward/{frame}"),
            format!("frames of {frame} bytes received from net_ring and sent back on one core"),
            "mpps",
            Ours::new(&format!("probe forward --size {frame} --duration {time}")),
        ));
        all.push(case(
            "limits",
            format!("veth-hop/{frame}"),
            format!("frames of {frame} bytes from one core to another through net_af_packet and a veth pair"),
            "mpps",
            VethHop { frame, duration },
        ));
    }
    all.push(case(
        "limits",
        "round-trip",
        "a cache line's way to the other core and back",
        "p50_us",
        Ours::new(&format!("probe round-trip --duration {time}")),
    ));
    all.push(case(
        "limits",
        "spin-jitter",
        "gaps in the time of a thread that only looks at the clock: the machine's own noise",
        "p999_us",
        Ours::new(&format!("probe jitter --duration {time}")),
    ));
    all
}

fn memory(duration: Duration) -> Vec<Case> {
    let mut all = Vec::new();
    for (heat, told) in [("hot", "in caches"), ("cold", "out of 1 GiB")] {
        for work in Work::ALL {
            for size in SIZES {
                let what = match work {
                    Work::Copy => "a copy",
                    Work::Crc => "a CRC-32",
                    Work::CopyCrc => "a copy and a CRC-32",
                };
                let line = format!(
                    "probe {} --size {size} --area {heat} --duration {}",
                    work.name(),
                    time(duration)
                );
                let mut case = case(
                    "limits",
                    format!("{}-{heat}/{size}", work.name()),
                    format!(
                        "{what} of each payload byte, {} at a time, {told}, one core",
                        bytes(size.into())
                    ),
                    "gbps",
                    Ours::new(&line),
                )
                .drawn("limits", format!("{}, {heat}", work.name()), size);
                if work == Work::CopyCrc {
                    case = case.drawn("rc", format!("bound: copy and CRC, {heat}"), size);
                }
                all.push(case);
            }
        }
    }
    all
}

/// Frames over the veth pair that the `veth` cases use.
struct VethHop {
    frame: u32,
    duration: Duration,
}

impl VethHop {
    fn line(&self) -> Line {
        let (frame, time) = (self.frame, time(self.duration));
        Line::new(&format!("probe hop --interfaces left,right --size {frame} --duration {time}"))
    }
}

impl Job for VethHop {
    fn run(&self, context: &mut Context) -> Result<Sample, Trouble> {
        let line = super::ours::program(context, &self.line());
        let line = context.port_cable.get(PortCable::new)?.host.run(&line);
        super::ours::sample(&context.finish(&line)?)
    }

    fn commands(&self) -> Vec<String> {
        vec![Line::new(super::ours::NAME).with(self.line().0).shown()]
    }
}
