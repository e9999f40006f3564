//! What the machine gives at most.

use super::ours::Ours;
use super::wires::{TAPS, Wire};
use super::{bytes, case, time};
use crate::suite::case::{Case, Job, Sample, Trouble};
use crate::suite::child::Line;
use crate::suite::context::Context;
use crate::suite::hosts::{PortCable, TapBridge};
use rockhopper_perf::limits::Work;
use std::time::Duration;

const SIZES: [u32; 6] = [64, 256, 1024, 2048, 4096, 65536];
/// Bytes of a frame with 64 bytes of payload, and with 4096: Ethernet, IPv4, UDP, BTH, RETH, iCRC.
const FRAMES: [u32; 2] = [138, 4170];
/// The same on a wire with an MTU of 1500, hence a path MTU of 1024: 64 and 1024 bytes of payload, and the longest there is.
const TAP_FRAMES: [u32; 3] = [138, 1098, 1514];

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
        all.push(
            case(
                "limits",
                format!("forward/{frame}"),
                format!("frames of {frame} bytes received from net_ring and sent back on one core"),
                "mpps",
                Ours::new(&format!("probe forward --size {frame} --duration {time}")),
            )
            .on_one_core(),
        );
        all.push(case(
            "limits",
            format!("veth-hop/{frame}"),
            format!("frames of {frame} bytes from one core to another through net_af_packet and a veth pair"),
            "mpps",
            Hop { wire: Wire::Veth, frame, duration },
        ));
    }
    let about = "frames of 138 bytes from one core to another through net_ring, each with a payload of 64: copied in and summed, checked and \
                 copied out, and no transport";
    let job = Ours::new(&format!("probe hop --carry --size 138 --duration {time}"));
    all.push(case("limits", "carry/138", about, "mpps", job));
    for frame in TAP_FRAMES {
        let about = format!(
            "frames of {frame} bytes from one core to another through net_tap, two taps and a bridge"
        );
        let mut case = case(
            "limits",
            format!("tap-hop/{frame}"),
            about,
            "mpps",
            Hop { wire: Wire::Tap, frame, duration },
        );
        case.overhead_seconds = 3.0;
        all.push(case);
    }
    all.extend(super::testpmd::cases(duration));
    all.push(case(
        "limits",
        "round-trip",
        "a cache line's way to the other core and back",
        "p50_us",
        Ours::new(&format!("probe round-trip --duration {time}")),
    ));
    let about = "half a round trip of a cache line between cores that work in between, so that it takes as long as a WRITE of 8 bytes: \
                 the machine's own noise, as a message meets it";
    all.push(case("limits", "ping-pong", about, "p999_us", PingPong { duration }).drawn(
        "latency",
        "cache line, each end at work",
        1,
    ));
    all.push(
        case(
            "limits",
            "spin-jitter",
            "gaps in the time of a thread that only looks at the clock: the machine's own noise",
            "p999_us",
            Ours::new(&format!("probe jitter --duration {time}")),
        )
        .on_one_core(),
    );
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
                .on_one_core()
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

/// As long as the median of our own latency, which is measured first.
struct PingPong {
    duration: Duration,
}

impl PingPong {
    /// How long our own is measured.
    const FIRST: Duration = Duration::from_millis(200);

    fn first() -> Line {
        Line::new(&format!("write-lat --loopback ring --size 8 --duration {}", time(Self::FIRST)))
    }

    fn line(&self, half_ns: &str) -> Line {
        Line::new(&format!("probe ping-pong --half-ns {half_ns} --duration {}", time(self.duration)))
    }
}

impl Job for PingPong {
    fn run(&self, context: &mut Context) -> Result<Sample, Trouble> {
        let first = super::ours::program(context, &Self::first());
        let first = super::ours::sample(&context.finish(&first)?)?;
        let half_us = first.0.get("p50_us").copied().unwrap_or(0.0);
        let line = super::ours::program(context, &self.line(&format!("{:.0}", half_us * 1e3)));
        super::ours::sample(&context.finish(&line)?)
    }

    fn commands(&self) -> Vec<String> {
        let shown = |line: Line| Line::new(super::ours::NAME).with(line.0).shown();
        vec![shown(Self::first()), shown(self.line("P50"))]
    }
}

/// Frames over the wire that our cases use, too.
struct Hop {
    wire: Wire,
    frame: u32,
    duration: Duration,
}

impl Hop {
    fn line(&self) -> Line {
        let (frame, time) = (self.frame, time(self.duration));
        let ends = match self.wire {
            Wire::Tap => format!("--taps {},{}", TAPS[0], TAPS[1]),
            _ => "--interfaces left,right".into(),
        };
        Line::new(&format!("probe hop {ends} --size {frame} --duration {time}"))
    }
}

impl Job for Hop {
    fn run(&self, context: &mut Context) -> Result<Sample, Trouble> {
        let line = super::ours::program(context, &self.line());
        if self.wire != Wire::Tap {
            let line = context.port_cable.get(PortCable::new)?.host.run(&line);
            return super::ours::sample(&context.finish(&line)?);
        }
        let line = context.taps.get(TapBridge::new)?.host.run(&line);
        let child = context.start(&line)?;
        for (tap, number) in TAPS.into_iter().zip(1..) {
            context.taps.get(TapBridge::new)?.join(tap, number)?;
        }
        super::ours::sample(&child.wait(context.limit(), &context.stop)?)
    }

    fn commands(&self) -> Vec<String> {
        vec![Line::new(super::ours::NAME).with(self.line().0).shown()]
    }
}
