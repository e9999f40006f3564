//! What happened in worlds, counted by name.

use crate::plan::Kind;
use std::collections::BTreeMap;

/// Counts over one world or many.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Frames that left an endpoint.
    pub packets: u64,
    /// Requests that completed with success, by kind.
    pub operations: BTreeMap<&'static str, u64>,
    /// What else was met, by name: mistakes and errors, events, retries, impairments.
    pub met: BTreeMap<String, u64>,
}

impl Stats {
    /// Counts one completed request.
    pub fn done(&mut self, kind: Kind) {
        *self.operations.entry(kind.word()).or_default() += 1;
    }

    /// Counts something.
    pub fn meet(&mut self, what: impl Into<String>, times: u64) {
        if times > 0 {
            *self.met.entry(what.into()).or_default() += times;
        }
    }

    /// How often something was met.
    pub fn times(&self, what: &str) -> u64 {
        self.met.get(what).copied().unwrap_or(0)
    }

    /// Adds others.
    pub fn merge(&mut self, other: &Stats) {
        self.packets += other.packets;
        for (kind, count) in &other.operations {
            *self.operations.entry(kind).or_default() += count;
        }
        for (what, count) in &other.met {
            self.meet(what.clone(), *count);
        }
    }
}
