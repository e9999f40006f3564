//! A hashed timing wheel: one timer per QP, armed and moved without allocation.
//!
//! Deadlines are lazy: a timer that fires before its QP's real deadline (which moved on with each ACK) is simply put
//! back. So the packet path only stores a number.

use crate::Nanos;

/// A turn of the wheel takes 34 ms: of thousands of timers that wait for some turns, most of the time goes into passing them by.
const BUCKETS: usize = 4096;
const WORDS: usize = BUCKETS / 64;
/// Width of a bucket: 8.192 µs. The shortest RNR delay is 10 µs, the shortest ACK timeout 4.096 µs; firing up to one
/// bucket late is within what both allow.
const TICK_SHIFT: u32 = 13;
const NONE: u32 = u32::MAX;

#[derive(Clone, Copy, Debug)]
struct Node {
    next: u32,
    prev: u32,
    deadline: Nanos,
    armed: bool,
}

const IDLE: Node = Node { next: NONE, prev: NONE, deadline: 0, armed: false };

/// Timers by slot number.
#[derive(Debug)]
pub struct TimerWheel {
    heads: Box<[u32; BUCKETS]>,
    occupied: [u64; WORDS],
    nodes: Vec<Node>,
    /// All ticks up to here (exclusive) have been looked at.
    tick: u64,
    armed: usize,
}

impl TimerWheel {
    /// A wheel for slots below `slots`.
    pub fn new(slots: usize) -> Self {
        TimerWheel {
            heads: Box::new([NONE; BUCKETS]),
            occupied: [0; WORDS],
            nodes: vec![IDLE; slots],
            tick: 0,
            armed: 0,
        }
    }

    /// Makes room for one slot more: the next number. Nothing else allocates.
    pub fn add_slot(&mut self) {
        self.nodes.push(IDLE);
    }

    /// Makes sure that `slot` fires at `deadline` or earlier. A timer that is armed for earlier stays.
    pub fn arm(&mut self, slot: u32, deadline: Nanos) {
        let node = self.nodes[slot as usize];
        if node.armed {
            if node.deadline <= deadline {
                return;
            }
            self.unlink(slot);
        }
        self.link(slot, deadline);
    }

    /// Asks for what arming the timer of `slot` needs.
    #[inline]
    pub fn fetch(&self, slot: u32) {
        ring::fetch(&self.nodes[slot as usize]);
    }

    /// Forgets the timer of `slot`.
    pub fn disarm(&mut self, slot: u32) {
        if self.nodes[slot as usize].armed {
            self.unlink(slot);
        }
    }

    /// Takes one slot whose deadline has passed.
    pub fn pop_expired(&mut self, now: Nanos) -> Option<u32> {
        if self.armed == 0 {
            self.tick = now >> TICK_SHIFT;
            return None;
        }
        let now_tick = now >> TICK_SHIFT;
        // After a pause longer than a turn, one turn sees every bucket.
        self.tick = self.tick.max(now_tick.saturating_sub(BUCKETS as u64 - 1));
        while self.tick <= now_tick {
            let bucket = self.tick as usize % BUCKETS;
            if self.occupied[bucket / 64] & (1 << (bucket % 64)) != 0 {
                let mut slot = self.heads[bucket];
                while slot != NONE {
                    if self.nodes[slot as usize].deadline <= now {
                        self.unlink(slot);
                        return Some(slot);
                    }
                    slot = self.nodes[slot as usize].next;
                }
            }
            if self.tick == now_tick {
                break;
            }
            self.tick += 1;
        }
        None
    }

    /// The earliest time at which a timer may fire.
    pub fn next_deadline(&self) -> Option<Nanos> {
        if self.armed == 0 {
            return None;
        }
        // Buckets in the order of time; a timer of a later turn in an early bucket only makes the answer earlier.
        let mut best: Option<Nanos> = None;
        let mut step = 0;
        while step < BUCKETS as u64 {
            let bucket = (self.tick + step) as usize % BUCKETS;
            let ahead = self.occupied[bucket / 64] >> (bucket % 64);
            if ahead & 1 == 0 {
                // To the next bucket of the word that has a timer, or to the next word.
                step += u64::from(ahead.trailing_zeros()).min(64 - bucket as u64 % 64);
                continue;
            }
            let mut slot = self.heads[bucket];
            while slot != NONE {
                let deadline = self.nodes[slot as usize].deadline;
                best = Some(best.map_or(deadline, |b| b.min(deadline)));
                slot = self.nodes[slot as usize].next;
            }
            if best.is_some_and(|b| b >> TICK_SHIFT <= self.tick + step) {
                break;
            }
            step += 1;
        }
        best
    }

    fn bucket_of(&self, deadline: Nanos) -> usize {
        // A deadline in the past goes where the wheel looks next.
        (deadline >> TICK_SHIFT).max(self.tick) as usize % BUCKETS
    }

    fn link(&mut self, slot: u32, deadline: Nanos) {
        let bucket = self.bucket_of(deadline);
        let head = self.heads[bucket];
        // The bucket of a past deadline is not the deadline's own, so the node remembers a deadline that leads back to it.
        let deadline = deadline.max(self.tick << TICK_SHIFT);
        self.nodes[slot as usize] = Node { next: head, prev: NONE, deadline, armed: true };
        if head != NONE {
            self.nodes[head as usize].prev = slot;
        }
        self.heads[bucket] = slot;
        self.occupied[bucket / 64] |= 1 << (bucket % 64);
        self.armed += 1;
    }

    fn unlink(&mut self, slot: u32) {
        let node = self.nodes[slot as usize];
        let bucket = (node.deadline >> TICK_SHIFT) as usize % BUCKETS;
        if node.prev == NONE {
            self.heads[bucket] = node.next;
        } else {
            self.nodes[node.prev as usize].next = node.next;
        }
        if node.next != NONE {
            self.nodes[node.next as usize].prev = node.prev;
        }
        if self.heads[bucket] == NONE {
            self.occupied[bucket / 64] &= !(1 << (bucket % 64));
        }
        self.nodes[slot as usize].armed = false;
        self.armed -= 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    #[test]
    fn a_timer_fires_once_at_its_deadline() {
        let mut wheel = TimerWheel::new(2);
        wheel.arm(1, 100_000);
        assert_eq!(wheel.next_deadline(), Some(100_000));
        assert_eq!(wheel.pop_expired(99_999), None);
        assert_eq!(wheel.pop_expired(100_000), Some(1));
        assert_eq!(wheel.pop_expired(200_000), None);
        assert_eq!(wheel.next_deadline(), None);
    }

    #[test]
    fn an_armed_timer_moves_only_earlier() {
        let mut wheel = TimerWheel::new(1);
        wheel.arm(0, 1_000_000);
        wheel.arm(0, 2_000_000);
        assert_eq!(wheel.next_deadline(), Some(1_000_000));
        wheel.arm(0, 500_000);
        assert_eq!(wheel.pop_expired(600_000), Some(0));
    }

    #[test]
    fn a_timer_beyond_one_turn_waits_its_turns() {
        let mut wheel = TimerWheel::new(1);
        let turn = (BUCKETS as u64) << TICK_SHIFT;
        wheel.arm(0, 3 * turn + 5);
        let mut now = 0;
        while now < 3 * turn {
            assert_eq!(wheel.pop_expired(now), None, "at {now}");
            now += turn / 3;
        }
        assert_eq!(wheel.pop_expired(3 * turn + 5), Some(0));
    }

    proptest! {
        /// The wheel agrees with a sorted map, whatever is armed, disarmed and waited for.
        #[test]
        fn agrees_with_a_sorted_map(steps in proptest::collection::vec((0u32..8, 0u64..40_000_000, 0u8..4), 1..200)) {
            let mut wheel = TimerWheel::new(8);
            let mut model: BTreeMap<u32, Nanos> = BTreeMap::new();
            let mut now = 0;
            for (slot, delay, what) in steps {
                match what {
                    0 | 1 => {
                        let deadline = now + delay;
                        wheel.arm(slot, deadline);
                        let kept = model.entry(slot).or_insert(deadline);
                        *kept = (*kept).min(deadline);
                    }
                    2 => {
                        wheel.disarm(slot);
                        model.remove(&slot);
                    }
                    _ => {
                        now += delay;
                        let mut fired = Vec::new();
                        while let Some(slot) = wheel.pop_expired(now) {
                            fired.push(slot);
                        }
                        fired.sort_unstable();
                        let due: Vec<u32> = model.iter().filter(|(_, d)| **d <= now).map(|(s, _)| *s).collect();
                        model.retain(|_, d| *d > now);
                        prop_assert_eq!(fired, due);
                    }
                }
                prop_assert_eq!(wheel.next_deadline(), model.values().min().copied());
            }
        }
    }
}
