//! The stage: a plan at work on the frames of one port.

use crate::plan::ETHERNET;
use crate::strike::{Strike, Subject};
use crate::{Action, Counters, Direction, Effect, Hold, MAX_CLAUSES, Nanos, Plan, Verdict};
use rand::RngExt;
use wire::{Frame, Ipv4Header, Network, OnesComplement};

/// A plan at work: decides what becomes of each frame, and counts.
#[derive(Debug)]
pub struct Stage {
    rx: Vec<Strike>,
    tx: Vec<Strike>,
    counters: Counters,
}

/// Congestion experienced, RFC 3168 5: both bits of the ECN field.
const CE: u8 = 3;

impl Stage {
    /// A stage at its beginning. `seed` tells the stages of one plan apart (ports, workers, runs of a simulator); the
    /// plan's own `seed N` is mixed with it.
    pub fn new(plan: &Plan, seed: u64) -> Stage {
        let mut dice = [0; 32];
        dice[..8].copy_from_slice(&plan.seed.unwrap_or(0).to_le_bytes());
        dice[8..16].copy_from_slice(&seed.to_le_bytes());
        let way = |direction, first: u64| {
            let clauses = plan.clauses.iter().take(MAX_CLAUSES).zip(0..);
            clauses.filter_map(|(clause, n)| Strike::new(clause, direction, dice, 2 * n + first)).collect()
        };
        Stage { rx: way(Direction::Rx, 0), tx: way(Direction::Tx, 1), counters: Counters::default() }
    }

    /// What becomes of a frame of `len` bytes (without FCS) that goes this way now. `head` is its beginning in one piece: all
    /// of it, or [`wire::HEAD_LEN`] bytes or more.
    ///
    /// The caller does what the verdict says, in this order: copies the frame, changes and cuts it, passes it or holds it.
    pub fn decide(&mut self, now: Nanos, direction: Direction, head: &[u8], len: usize) -> Verdict {
        let mut verdict = Verdict::default();
        let strikes = match direction {
            Direction::Rx => &mut self.rx,
            Direction::Tx => &mut self.tx,
        };
        if strikes.is_empty() {
            return verdict;
        }
        let subject = Subject::new(head, len);
        for strike in strikes {
            if strike.strikes(&subject) {
                if let Some(effect) = execute(strike, &mut verdict, &subject, now) {
                    self.counters.count(effect);
                }
                if verdict.dropped {
                    break;
                }
            }
        }
        verdict
    }

    /// Whether frames that go this way can be struck at all.
    pub fn acts_on(&self, direction: Direction) -> bool {
        match direction {
            Direction::Rx => !self.rx.is_empty(),
            Direction::Tx => !self.tx.is_empty(),
        }
    }

    /// What has been done.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Counts what the caller could not do: [`Effect::NotHeld`], [`Effect::NotCopied`].
    pub fn count(&mut self, effect: Effect) {
        self.counters.count(effect);
    }
}

/// Adds a clause's action to what becomes of the frame. `None` when there is nothing for it to do.
fn execute(strike: &mut Strike, verdict: &mut Verdict, subject: &Subject<'_>, now: Nanos) -> Option<Effect> {
    let dice = &mut strike.dice;
    let len = verdict.len().unwrap_or(subject.len);
    Some(match strike.clause.action {
        Action::Drop => {
            verdict.dropped = true;
            Effect::Dropped
        }
        Action::Duplicate => {
            verdict.copies += 1;
            Effect::Duplicated
        }
        Action::Reorder(frames) => {
            // A time is stronger: the frame would have to come when neither is over.
            verdict.hold.get_or_insert(Hold::Frames(frames));
            Effect::Reordered
        }
        Action::Delay(least, most) => {
            let from = match verdict.hold {
                Some(Hold::Until(time)) => time,
                _ => now,
            };
            verdict.hold = Some(Hold::Until(from + dice.random_range(least..=most)));
            Effect::Delayed
        }
        Action::Corrupt(bits) => {
            // No frame is longer than 16 bits can say.
            let bytes = ETHERNET..len.min(usize::from(u16::MAX));
            if bytes.is_empty() {
                return None;
            }
            let first = dice.random_range(0..bytes.len() * 8);
            let mut chosen = [first; 3];
            for n in 1..usize::from(bits).min(chosen.len()) {
                chosen[n] = dice.random_range(0..bytes.len() * 8);
                while chosen[..n].contains(&chosen[n]) {
                    chosen[n] = (chosen[n] + 1) % (bytes.len() * 8);
                }
            }
            for bit in &chosen[..usize::from(bits).min(chosen.len())] {
                verdict.flip(bytes.start + bit / 8, 1 << (bit % 8));
            }
            Effect::Corrupted
        }
        Action::Truncate(to) => {
            let to = match to {
                Some(to) => usize::from(to),
                None if len > ETHERNET => dice.random_range(ETHERNET..len),
                None => len,
            };
            if to >= len {
                return None;
            }
            verdict.cut(to);
            Effect::Truncated
        }
        Action::Ce => {
            let frame = subject.frame.as_ref().filter(|frame| frame.ecn() != CE)?;
            mark(frame, subject.head, verdict)?;
            Effect::CeMarked
        }
    })
}

/// Marks a frame "congestion experienced", whether its sender can do with that or not. The iCRC does not cover the field.
/// `None` when it is marked, or cut too short.
fn mark(frame: &Frame, head: &[u8], verdict: &mut Verdict) -> Option<()> {
    let l3 = frame.l3_offset();
    // Bits of the field in the header's second byte: IPv6 has its traffic class four bits further up.
    let shift = if frame.network == Network::V4 { 0 } else { 4 };
    let flip = (CE & !frame.ecn()) << shift;
    if verdict.marked || verdict.len().is_some_and(|len| len < l3 + frame.network.header_len()) {
        return None;
    }
    verdict.marked = true;
    verdict.flip(l3 + 1, flip);
    if frame.network == Network::V4 {
        let mut header = *head.get(l3..)?.first_chunk::<{ Ipv4Header::LEN }>()?;
        let [old_high, old_low] = [header[CHECKSUM], header[CHECKSUM + 1]];
        header[1] ^= flip;
        header[CHECKSUM..CHECKSUM + 2].fill(0);
        let mut sum = OnesComplement::default();
        sum.bytes(&header);
        let [high, low] = sum.checksum().to_be_bytes();
        verdict.flip(l3 + CHECKSUM, high ^ old_high);
        verdict.flip(l3 + CHECKSUM + 1, low ^ old_low);
    }
    Some(())
}

/// Where the IPv4 header has its checksum.
const CHECKSUM: usize = 10;
