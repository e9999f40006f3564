//! Connections that `serve` had, counted: a client may make thousands, and each a line would say nothing and fill a disk.

use rockhopper::programs::Served;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How often is told what was counted, if anything was.
const INTERVAL: Duration = Duration::from_secs(5);

/// Connections that ended since the last time that somebody was told, by port and program: no more entries than there are of both.
pub struct Tally(Mutex<Inner>);

struct Inner {
    told: Instant,
    counts: BTreeMap<(String, String), Counts>,
}

#[derive(Default)]
struct Counts {
    connections: u64,
    exchanges: u64,
    broken: u64,
    /// Why the last of the broken ones broke.
    why: Option<String>,
}

impl Tally {
    pub fn new() -> Tally {
        Tally(Mutex::new(Inner { told: Instant::now(), counts: BTreeMap::new() }))
    }

    /// Counts a connection that has ended.
    pub fn add(&self, served: &Served) {
        let mut inner = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let counts = inner.counts.entry((served.port.clone(), served.program.to_string())).or_default();
        counts.connections += 1;
        counts.exchanges += served.count;
        if let Some(why) = &served.broken {
            counts.broken += 1;
            counts.why = Some(why.clone());
        }
    }

    /// What to tell, as JSON and as text, if it is time, or the end.
    pub fn due(&self, now: Instant, is_end: bool) -> Vec<(Value, String)> {
        let mut inner = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if !is_end && now.saturating_duration_since(inner.told) < INTERVAL {
            return Vec::new();
        }
        inner.told = now;
        std::mem::take(&mut inner.counts).into_iter().map(|(of, counts)| counts.told(&of)).collect()
    }
}

impl Counts {
    fn told(&self, (port, program): &(String, String)) -> (Value, String) {
        let Counts { connections, exchanges, broken, why } = self;
        let broke =
            why.as_ref().map_or(String::new(), |why| format!(", {broken} broken, the last one: {why}"));
        let json = json!({
            "event": "served", "port": port, "program": program, "connections": connections, "count": exchanges,
            "broken": broken, "why": why,
        });
        (json, format!("{port}: {program}: {connections} connections ended, {exchanges} exchanges{broke}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rockhopper::programs::Program;

    fn served(program: Program, broken: Option<&str>) -> Served {
        let peer = ([192, 0, 2, 1], 1).into();
        Served { program, port: "rdma0".into(), peer, count: 2, broken: broken.map(Into::into) }
    }

    #[test]
    fn a_thousand_connections_are_a_line() {
        let tally = Tally::new();
        let begin = Instant::now();
        (0..1000).for_each(|_| tally.add(&served(Program::Cmtime, None)));
        tally.add(&served(Program::Rping, Some("it fell silent")));
        assert!(tally.due(begin, false).is_empty(), "too early");
        let told: Vec<String> =
            tally.due(begin + 2 * INTERVAL, false).into_iter().map(|(_, text)| text).collect();
        assert_eq!(
            told,
            [
                "rdma0: cmtime: 1000 connections ended, 2000 exchanges",
                "rdma0: rping: 1 connections ended, 2 exchanges, 1 broken, the last one: it fell silent",
            ]
        );
        assert!(tally.due(begin + 4 * INTERVAL, false).is_empty(), "told already");
        tally.add(&served(Program::Rping, None));
        assert_eq!(tally.due(begin + 4 * INTERVAL, true).len(), 1, "at the end all is told");
    }
}
