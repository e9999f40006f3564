//! Who transmits next: deficit round robin between QPs, by bytes.

use crate::limits::QUANTUM_BYTES;
use std::collections::VecDeque;

/// What a packet without payload counts, about its headers on the wire.
const FRAME_BYTES: i64 = 64;

/// A QP's turn: the bytes that it may still send.
#[derive(Debug)]
pub struct Turn {
    left: i64,
    /// Nobody else waits: a turn that is over is followed by its next one.
    alone: bool,
}

impl Turn {
    /// Notes a packet of so many bytes of payload; false when the turn is over.
    #[inline(always)]
    pub fn spend(&mut self, payload: usize) -> bool {
        self.left -= payload as i64 + FRAME_BYTES;
        if self.left <= 0 && self.alone {
            self.left += i64::from(QUANTUM_BYTES);
            return true;
        }
        self.left > 0
    }

    /// The same if the turn goes on after that; otherwise nothing is noted.
    #[inline(always)]
    pub fn spend_and_go_on(&mut self, payload: usize) -> bool {
        let mut left = self.left - (payload as i64 + FRAME_BYTES);
        if left <= 0 && self.alone {
            left += i64::from(QUANTUM_BYTES);
        } else if left <= 0 {
            return false;
        }
        self.left = left;
        true
    }
}

/// QPs with something to send, each at most once.
#[derive(Debug)]
pub struct Scheduler {
    ready: VecDeque<u32>,
    lanes: Vec<Lane>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Lane {
    queued: bool,
    /// Bytes that the QP may still send in this turn; below zero when its last packet was larger than what was left.
    deficit: i64,
}

impl Scheduler {
    /// A scheduler for slots below `slots`.
    pub fn new(slots: usize) -> Self {
        Scheduler { ready: VecDeque::with_capacity(slots), lanes: vec![Lane::default(); slots] }
    }

    /// Makes room for one slot more: the next number. Nothing else allocates.
    pub fn add_slot(&mut self) {
        self.lanes.push(Lane::default());
        // All of them may be ready. What is reserved grows by doubling.
        self.ready.reserve(self.lanes.len() - self.ready.len());
    }

    /// Puts a QP in the round, at the end, if it is not there.
    pub fn enqueue(&mut self, slot: u32) {
        let lane = &mut self.lanes[slot as usize];
        if !lane.queued {
            lane.queued = true;
            lane.deficit = lane.deficit.min(0) + i64::from(QUANTUM_BYTES);
            self.ready.push_back(slot);
        }
    }

    /// The QP whose turn it is. It stays in front until [`rotate`](Self::rotate) or [`leave`](Self::leave)
    /// says otherwise, so a full TX ring costs it nothing.
    pub fn front(&self) -> Option<u32> {
        self.ready.front().copied()
    }

    /// The QP whose turn comes after `ahead` others.
    #[inline]
    pub fn later(&self, ahead: usize) -> Option<u32> {
        self.ready.get(ahead).copied()
    }

    /// Asks for what a turn of a QP needs of it here.
    #[inline]
    pub fn fetch(&self, slot: u32) {
        ring::fetch(&self.lanes[slot as usize]);
    }

    /// What the QP in front, which has this slot, may spend in its turn. If it is the only one, [`rotate`](Self::rotate) would have it go on
    /// with a new quantum at once, turn for turn: so its turn has no end.
    #[inline]
    pub fn begin_turn(&self, slot: u32) -> Turn {
        debug_assert_eq!(self.front(), Some(slot));
        Turn { left: self.lanes[slot as usize].deficit, alone: self.ready.len() == 1 }
    }

    /// Notes what it has spent: before [`rotate`](Self::rotate) or [`leave`](Self::leave).
    #[inline]
    pub fn end_turn(&mut self, slot: u32, turn: Turn) {
        self.lanes[slot as usize].deficit = turn.left;
    }

    /// The QP in front goes to the end with a new quantum.
    pub fn rotate(&mut self) {
        if let Some(slot) = self.ready.pop_front() {
            self.lanes[slot as usize].deficit += i64::from(QUANTUM_BYTES);
            self.ready.push_back(slot);
        }
    }

    /// The QP in front has nothing more to send.
    pub fn leave(&mut self) {
        if let Some(slot) = self.ready.pop_front() {
            self.lanes[slot as usize].queued = false;
        }
    }

    /// Takes a QP out of the round, wherever it is (it is being destroyed or moved).
    pub fn remove(&mut self, slot: u32) {
        self.ready.retain(|&other| other != slot);
        self.lanes[slot as usize] = Lane::default();
    }

    /// True when nobody has anything to send.
    pub fn is_empty(&self) -> bool {
        self.ready.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_shared_equally_whatever_the_packet_size() {
        let mut sched = Scheduler::new(2);
        let size = [4096usize, 300];
        let mut sent = [0usize; 2];
        sched.enqueue(0);
        sched.enqueue(1);
        while sent.iter().sum::<usize>() < 10_000_000 {
            let slot = sched.front().unwrap();
            let bytes = size[slot as usize];
            sent[slot as usize] += bytes + FRAME_BYTES as usize;
            let mut turn = sched.begin_turn(slot);
            let goes_on = turn.spend(bytes);
            sched.end_turn(slot, turn);
            if !goes_on {
                sched.rotate();
            }
        }
        let difference = sent[0].abs_diff(sent[1]);
        assert!(difference <= QUANTUM_BYTES as usize + 4096, "{sent:?}");
    }

    /// The turn of one that is alone has no end, and leaves it what turn after turn would have left.
    #[test]
    fn one_that_is_alone_spends_as_by_turns() {
        let mut sched = Scheduler::new(2);
        sched.enqueue(0);
        sched.enqueue(1);
        let mut by_turns = sched.begin_turn(0);
        sched.leave();
        let mut alone = sched.begin_turn(1);
        for (step, bytes) in
            [4096, 4096, 300, 4096, 4096, 0, 4096, 4096, 4096].into_iter().cycle().take(99).enumerate()
        {
            if !by_turns.spend(bytes) {
                by_turns.left += i64::from(QUANTUM_BYTES);
            }
            let goes_on = if step % 2 == 0 { alone.spend(bytes) } else { alone.spend_and_go_on(bytes) };
            assert!(goes_on);
            assert_eq!(alone.left, by_turns.left, "{step}");
        }
    }

    #[test]
    fn whose_turn_comes_later_can_be_seen() {
        let mut sched = Scheduler::new(4);
        [2, 0, 3].into_iter().for_each(|slot| sched.enqueue(slot));
        assert_eq!([0, 1, 2, 3].map(|ahead| sched.later(ahead)), [Some(2), Some(0), Some(3), None]);
        sched.rotate();
        assert_eq!((sched.front(), sched.later(2)), (Some(0), Some(2)));
    }

    #[test]
    fn a_qp_is_in_the_round_once() {
        let mut sched = Scheduler::new(2);
        sched.enqueue(1);
        sched.enqueue(1);
        sched.leave();
        assert!(sched.is_empty());
        sched.enqueue(1);
        sched.remove(1);
        assert!(sched.is_empty());
    }
}
