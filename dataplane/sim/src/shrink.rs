//! Cutting a failing plan down: what can be left out while it still fails, is.

use crate::plan::{Happening, Plan};
use crate::play::play;
use std::collections::BTreeSet;

/// The smallest plan that was found to fail in the same way, with at most `tries` plays.
pub fn shrink(plan: &Plan, tries: usize) -> Plan {
    let Some(why) = play(plan, false).failure else { return plan.clone() };
    let mut shrinker = Shrinker { best: plan.clone(), tries, way: way(&why) };
    // Each way of cutting may make room for the others.
    loop {
        let before = shrinker.best.clone();
        shrinker.clauses();
        shrinker.events();
        shrinker.requests();
        shrinker.lengths();
        if shrinker.best == before || shrinker.tries == 0 {
            return shrinker.best;
        }
    }
}

struct Shrinker {
    best: Plan,
    tries: usize,
    way: String,
}

/// A failure without its numbers, and only its beginning: what tells one kind from another.
fn way(why: &str) -> String {
    let behind = why.rsplit_once(": ").map_or(why, |(_, behind)| behind);
    behind.chars().filter(|c| c.is_alphabetic()).take(24).collect()
}

impl Shrinker {
    /// Keeps a smaller plan if it still fails.
    fn attempt(&mut self, plan: Plan) -> bool {
        if self.tries == 0 || plan == self.best || plan.check().is_err() {
            return false;
        }
        self.tries -= 1;
        let fails = play(&plan, false).failure.is_some_and(|why| way(&why) == self.way);
        if fails {
            self.best = plan;
        }
        fails
    }

    /// Impairments, one clause after the other.
    fn clauses(&mut self) {
        let mut at = 0;
        loop {
            let clauses: Vec<String> =
                self.best.impair.split(';').map(|clause| clause.trim().to_owned()).collect();
            if at >= clauses.len() || self.best.impair.is_empty() {
                return;
            }
            let mut fewer = clauses;
            fewer.remove(at);
            if !self.attempt(Plan { impair: fewer.join("; "), ..self.best.clone() }) {
                at += 1;
            }
        }
    }

    fn events(&mut self) {
        let mut at = 0;
        while at < self.best.events.len() {
            let mut plan = self.best.clone();
            plan.events.remove(at);
            if !self.attempt(plan) {
                at += 1;
            }
        }
    }

    /// Requests, first in large pieces, then one by one; what needs one that is gone goes, too.
    fn requests(&mut self) {
        let mut piece = self.best.ops.len().div_ceil(2);
        while piece > 0 {
            let mut at = 0;
            while at < self.best.ops.len() {
                let end = (at + piece).min(self.best.ops.len());
                if !self.attempt(without(&self.best, at, end)) {
                    at = end;
                }
            }
            piece = if piece == 1 { 0 } else { piece.div_ceil(2) };
        }
    }

    /// Shorter messages, one receive less late, a quiet world.
    fn lengths(&mut self) {
        for at in 0..self.best.ops.len() {
            let op = self.best.ops[at];
            let mtu = self.best.connections[op.connection as usize].mtu;
            for len in [0, 1, mtu, mtu + 1] {
                let mut plan = self.best.clone();
                plan.ops[at].len = len;
                if len < op.len && !op.kind.is_of_eight() && !op.kind.is_bind() && self.attempt(plan) {
                    break;
                }
            }
        }
        for at in 0..self.best.connections.len() {
            let mut plan = self.best.clone();
            plan.connections[at].receive_delay_ns = 0;
            self.attempt(plan);
        }
        // With receives of their own where they were shared.
        for at in 0..self.best.connections.len() {
            let mut plan = self.best.clone();
            plan.connections[at].shared.clear();
            self.attempt(plan);
        }
        let mut plan = self.best.clone();
        plan.srq = None;
        self.attempt(plan);
        // The more frames are forged, the fewer it takes.
        for forge in 1..self.best.forge {
            if self.attempt(Plan { forge, ..self.best.clone() }) {
                break;
            }
        }
        let mut plan = self.best.clone();
        plan.events.retain(|event| !matches!(event.what, Happening::Move));
        self.attempt(plan);
    }
}

/// A plan without these requests and without those that need them.
fn without(plan: &Plan, from: usize, to: usize) -> Plan {
    let mut plan = plan.clone();
    let mut gone: BTreeSet<u32> = plan.ops.drain(from..to).map(|op| op.id).collect();
    loop {
        let more: Vec<u32> =
            plan.ops.iter().filter(|op| op.needs().any(|id| gone.contains(&id))).map(|op| op.id).collect();
        if more.is_empty() {
            return plan;
        }
        plan.ops.retain(|op| !more.contains(&op.id));
        gone.extend(more);
    }
}
