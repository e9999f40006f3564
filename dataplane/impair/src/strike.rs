//! One clause on one way: which frames it strikes.

use crate::{Clause, Direction, Times, When};
use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};
use wire::Frame;

/// A frame as clauses see it.
pub(crate) struct Subject<'a> {
    /// Its first bytes.
    pub head: &'a [u8],
    /// All of its bytes.
    pub len: usize,
    /// It is a RoCE packet, or a broken one.
    pub is_roce: bool,
    /// What the parser makes of it.
    pub frame: Option<Frame>,
}

impl<'a> Subject<'a> {
    pub fn new(head: &'a [u8], len: usize) -> Self {
        let parsed = Frame::parse(head, len);
        let is_roce = parsed.as_ref().map_or_else(|error| error.is_roce(), |_| true);
        Subject { head, len, is_roce, frame: parsed.ok() }
    }
}

#[derive(Debug)]
pub(crate) struct Strike {
    pub clause: Clause,
    pub dice: ChaCha8Rng,
    /// Frames that passed the filter.
    seen: u64,
    /// Frames that were struck.
    struck: u64,
}

impl Strike {
    /// `None` when the clause is about the other way.
    pub fn new(clause: &Clause, direction: Direction, seed: [u8; 32], stream: u64) -> Option<Strike> {
        if clause.filter.direction.is_some_and(|only| only != direction) {
            return None;
        }
        let mut dice = ChaCha8Rng::from_seed(seed);
        dice.set_stream(stream);
        Some(Strike { clause: *clause, dice, seen: 0, struck: 0 })
    }

    pub fn strikes(&mut self, subject: &Subject<'_>) -> bool {
        if !self.passes_filter(subject) {
            return false;
        }
        self.seen += 1;
        let strikes = match self.clause.when {
            When::Always => true,
            When::Chance(rate) => self.dice.random_range(0..1_000_000) < rate.parts(),
            When::Every(count) => self.seen.is_multiple_of(count.get()),
            When::Packet(count) => self.seen == count.get(),
        };
        let ended = matches!(self.clause.times, Times::Most(most) if self.struck >= most.get());
        if strikes && !ended {
            self.struck += 1;
        }
        strikes && !ended
    }

    fn passes_filter(&self, subject: &Subject<'_>) -> bool {
        let filter = &self.clause.filter;
        if !filter.asks_bth() {
            return subject.is_roce || filter.any;
        }
        subject.frame.as_ref().is_some_and(|frame| {
            filter.psn.is_none_or(|psn| psn == frame.bth().psn)
                && filter.qp.is_none_or(|qp| qp == frame.bth().dest_qpn)
                && filter.opcode.is_none_or(|opcode| opcode == frame.bth().opcode)
        })
    }
}
