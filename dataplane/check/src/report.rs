//! What was found.

use crate::{Note, Rule};
use std::fmt;
use wire::{Gid, Psn, Qpn};

/// A broken rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// Which rule.
    pub rule: Rule,
    /// The frame that shows it, counted from 1 as capture programs do.
    pub frame: u64,
    /// Its time, nanoseconds.
    pub time_ns: u64,
    /// Source address; unspecified when the frame could not be read so far.
    pub src: Gid,
    /// Destination address.
    pub dst: Gid,
    /// Destination QP.
    pub qpn: Qpn,
    /// PSN.
    pub psn: Psn,
    /// What is wrong.
    pub words: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Violation { rule, frame, src, dst, qpn, psn, words, .. } = self;
        write!(f, "frame {frame}: {rule}: {words}")?;
        if *src != Gid::UNSPECIFIED {
            write!(f, " ({} > {}, QP {qpn}, PSN {psn})", src.ip(), dst.ip())?;
        }
        Ok(())
    }
}

/// Everything that was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// Frames of any kind.
    pub frames: u64,
    /// RoCE frames, broken ones among them.
    pub roce_frames: u64,
    /// RoCE frames that the capture does not hold whole: their headers were judged, not their iCRC, pad and payload.
    pub cut_frames: u64,
    /// Directions: an address pair and a destination QP.
    pub directions: u64,
    /// Connections whose two QP numbers are known.
    pub connections: u64,
    /// Broken rules, the first ones with words; see [`violations_by_rule`](Self::violations_by_rule) for all.
    pub violations: Vec<Violation>,
    by_rule: [u64; Rule::COUNT],
    by_note: [u64; Note::COUNT],
    max_violations: usize,
}

impl Report {
    pub(crate) fn new(max_violations: usize) -> Report {
        Report {
            frames: 0,
            roce_frames: 0,
            cut_frames: 0,
            directions: 0,
            connections: 0,
            violations: Vec::new(),
            by_rule: [0; Rule::COUNT],
            by_note: [0; Note::COUNT],
            max_violations,
        }
    }

    /// No rule was broken.
    pub fn passed(&self) -> bool {
        self.by_rule.iter().all(|&count| count == 0)
    }

    /// How often a rule was broken.
    pub fn violations_by_rule(&self, rule: Rule) -> u64 {
        self.by_rule[rule as usize]
    }

    /// How often something was noted.
    pub fn notes(&self, note: Note) -> u64 {
        self.by_note[note as usize]
    }

    pub(crate) fn note(&mut self, note: Note) {
        self.by_note[note as usize] += 1;
    }

    pub(crate) fn broken(&mut self, rule: Rule, violation: impl FnOnce() -> Violation) {
        self.by_rule[rule as usize] += 1;
        if self.violations.len() < self.max_violations {
            self.violations.push(violation());
        }
    }
}
