//! What a packet takes of the processor, where `perf` can count it.

use super::ours::{Ours, program};
use super::{case, time};
use crate::suite::case::{Case, Job, Sample, Trouble};
use crate::suite::child::{Line, is_installed, missing};
use crate::suite::context::Context;
use serde_json::Value;
use std::time::Duration;

/// Events, and the figures that they become.
const EVENTS: [(&str, &str); 3] = [
    ("cycles", "cycles_per_packet"),
    ("instructions", "instructions_per_packet"),
    ("cache-misses", "cache_misses_per_packet"),
];

pub fn cases(duration: Duration) -> Vec<Case> {
    [("write", 64u32), ("send", 64), ("write", 65536), ("read", 65536)]
        .into_iter()
        .map(|(operation, size)| {
            let words = format!(
                "{operation}-bw --loopback ring --size {size} --duration {} --json",
                time(duration * 2)
            );
            let about = format!(
                "RC {}, {} bytes over net_ring: both ends, start and end of the program among it, of each packet received",
                super::ring::upper(operation),
                size
            );
            case(
                "counters",
                format!("{operation}/{size}"),
                about,
                "cycles_per_packet",
                Counted { ours: Line::new(&words) },
            )
        })
        .collect()
}

struct Counted {
    ours: Line,
}

impl Counted {
    fn events() -> String {
        EVENTS.map(|(event, _)| event).join(",")
    }
}

impl Job for Counted {
    fn run(&self, context: &mut Context) -> Result<Sample, Trouble> {
        if !is_installed("perf") {
            return Err(missing("perf"));
        }
        let words = Line(self.ours.0.iter().filter(|word| *word != "--json").cloned().collect());
        let line = Line::new(&format!("perf stat -x , -e {}", Counted::events()))
            .with(["--"])
            .with(program(context, &words).0);
        let finished = context.finish(&line)?;
        if !finished.status.success() {
            return Err(Trouble::Failed(finished.complaint()));
        }
        let value: Value = serde_json::from_str(&finished.out)
            .map_err(|why| Trouble::Failed(format!("what it printed is no JSON: {why}")))?;
        let sample = counted(&finished.err, packets(&value));
        if sample.0.is_empty() {
            return Err(Trouble::NotRun(
                "cycles and instructions cannot be counted here: perf finds no counters of the processor, as in many virtual machines"
                    .into(),
            ));
        }
        Ok(sample)
    }

    fn commands(&self) -> Vec<String> {
        let ours = Ours::new(&self.ours.shown()).commands().concat();
        vec![format!("perf stat -e {} -- {ours}", Counted::events())]
    }
}

/// Packets that either end received.
fn packets(value: &Value) -> f64 {
    ["client", "server"].iter().filter_map(|end| value[*end]["counters"]["rx_roce_packets"].as_f64()).sum()
}

/// From perf's lines `COUNT,UNIT,EVENT,…`; `<not supported>` is no count.
fn counted(text: &str, packets: f64) -> Sample {
    let mut sample = Sample::default();
    for line in text.lines() {
        let mut fields = line.split(',');
        let (count, event) = (fields.next(), fields.nth(1));
        let figure = EVENTS.iter().find(|(name, _)| event.is_some_and(|event| event.starts_with(name)));
        if let (Some((_, figure)), Some(Ok(count))) = (figure, count.map(str::parse::<f64>)) {
            *sample.0.entry(figure).or_insert(0.0) += count / packets.max(1.0);
        }
    }
    sample
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_divided_and_what_is_not_counted_is_left_out() {
        let text = "<not supported>,,cache-misses,0,100.00,,\n5000,,cycles:u,1,100.00,,\n9000,,instructions,1,100.00,1.8,insn per cycle\n";
        let sample = counted(text, 10.0);
        assert_eq!((sample.0["cycles_per_packet"], sample.0["instructions_per_packet"]), (500.0, 900.0));
        assert!(!sample.0.contains_key("cache_misses_per_packet"));
        assert!(counted("<not supported>,,cycles,0,100.00,,\n", 10.0).0.is_empty());
    }
}
