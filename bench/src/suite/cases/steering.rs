//! Two workers of a port on a tap, where the kernel chooses the queue of a frame and tells no hash.

use super::ours::{NAME, program, sample};
use super::wires::TAPS;
use super::{case, time};
use crate::suite::case::{Case, Job, Sample, Trouble};
use crate::suite::child::Line;
use crate::suite::context::Context;
use crate::suite::hosts::TapBridge;
use std::time::Duration;

pub fn cases(duration: Duration) -> Vec<Case> {
    let told = [
        ("wrong", "queue pairs stay, and frames at the other worker's queue are handed over"),
        ("moving", "queue pairs move to where their frames arrive"),
        ("followed", "the kernel brings frames to the queue that their answers came from"),
    ];
    let one = |(arrive, told)| {
        let about = format!(
            "RC WRITE, 64 B, two workers of a tap on one core, 16 queue pairs each; the kernel chooses the queue by a frame's flow; \
             {told}; the time of the workers, with their system calls"
        );
        let mut case = case("workers", format!("tap/{arrive}"), about, "mmps", OnTaps { arrive, duration });
        case.overhead_seconds = 3.0;
        case
    };
    told.into_iter().map(one).collect()
}

struct OnTaps {
    arrive: &'static str,
    duration: Duration,
}

impl OnTaps {
    fn line(&self) -> Line {
        let (arrive, [a, b], time) = (self.arrive, TAPS, time(self.duration));
        Line::new(&format!("probe steering --taps {a},{b} --arrive {arrive} --duration {time}"))
    }
}

impl Job for OnTaps {
    fn run(&self, context: &mut Context) -> Result<Sample, Trouble> {
        let line = program(context, &self.line());
        let line = context.taps.get(TapBridge::new)?.host.run(&line);
        let child = context.start(&line)?;
        for (tap, number) in TAPS.into_iter().zip(1..) {
            context.taps.get(TapBridge::new)?.join(tap, number)?;
        }
        sample(&child.wait(context.limit(), &context.stop)?)
    }

    fn commands(&self) -> Vec<String> {
        vec![Line::new(NAME).with(self.line().0).shown()]
    }
}
