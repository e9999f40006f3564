//! Numbers that peers must not guess: queue pair numbers, memory keys, starting PSNs.
//!
//! All come from the operating system's random source by way of `rand`'s CSPRNG.

use crate::verbs::SrqRecord;
use engine::QpType;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};
use wire::{Psn, Qpn, Srqn};

/// The numbers in use on one port.
#[derive(Default)]
pub(crate) struct Names {
    /// Upper 24 bits of the keys of living regions.
    keys: BTreeSet<u32>,
    /// Those of living memory windows: keys of one space.
    windows: BTreeSet<u32>,
    /// Living QPs.
    pub qps: BTreeMap<u32, QpType>,
    /// Numbers of QPs that are gone, and until when they rest.
    resting: Resting,
    /// Living shared receive queues, by id.
    pub srqs: BTreeMap<u32, Arc<SrqRecord>>,
    /// Protection domains, completion queues and shared receive queues made so far.
    last_id: u32,
}

/// How long the number of a QP rests: what is under way to it is gone by then, and so is its connection, for which a silent peer
/// is asked to disconnect for a second before a timewait of up to two (rocev2 facts, CM 10 and 14).
const REST: Duration = Duration::from_secs(4);
/// Numbers that rest at a time, of sixteen million. When there are more, the one that has rested longest is free.
const MOST_RESTING: usize = 1 << 18;

/// Numbers that are not given out yet.
#[derive(Default)]
struct Resting {
    numbers: BTreeSet<u32>,
    until: VecDeque<(Instant, u32)>,
}

impl Resting {
    fn add(&mut self, now: Instant, number: u32) {
        self.wake(now);
        let oldest = if self.until.len() == MOST_RESTING { self.until.pop_front() } else { None };
        if let Some((_, oldest)) = oldest {
            self.numbers.remove(&oldest);
        }
        self.numbers.insert(number);
        self.until.push_back((now + REST, number));
    }

    fn wake(&mut self, now: Instant) {
        while self.until.front().is_some_and(|(until, _)| *until <= now) {
            if let Some((_, number)) = self.until.pop_front() {
                self.numbers.remove(&number);
            }
        }
    }

    fn has(&self, number: u32) -> bool {
        self.numbers.contains(&number)
    }
}

impl Names {
    /// The next number of a protection domain, completion queue or shared receive queue: these never leave the machine.
    pub fn id(&mut self) -> u32 {
        self.last_id += 1;
        self.last_id
    }

    /// An unused memory key.
    pub fn key(&mut self) -> u32 {
        loop {
            let key: u32 = rand::random();
            if key >> 8 != 0 && !self.windows.contains(&(key >> 8)) && self.keys.insert(key >> 8) {
                return key;
            }
        }
    }

    /// An unused memory key, for a window.
    pub fn window_key(&mut self) -> u32 {
        let key = self.key();
        self.keys.remove(&(key >> 8));
        self.windows.insert(key >> 8);
        key
    }

    /// A key's region or window is gone.
    pub fn free_key(&mut self, key: u32) {
        self.keys.remove(&(key >> 8));
        self.windows.remove(&(key >> 8));
    }

    /// Living windows.
    pub fn windows(&self) -> usize {
        self.windows.len()
    }

    /// Living regions.
    pub fn keys(&self) -> usize {
        self.keys.len()
    }

    /// An unused queue pair number: not 0 and 1, which are for management, nor the one of multicast. `None` when `most` queue pairs
    /// live.
    pub fn qpn(&mut self, qp_type: QpType, most: usize) -> Option<Qpn> {
        if self.qps.len() >= most {
            return None;
        }
        self.resting.wake(Instant::now());
        loop {
            let qpn = Qpn::new(rand::random());
            if self.is_free(qpn) {
                self.qps.insert(qpn.value(), qp_type);
                return Some(qpn);
            }
        }
    }

    fn is_free(&self, qpn: Qpn) -> bool {
        !is_special(qpn) && !self.qps.contains_key(&qpn.value()) && !self.resting.has(qpn.value())
    }

    /// An unused XRC SRQ number, as unpredictable as a queue pair's.
    pub fn srqn(&self) -> Srqn {
        loop {
            let srqn = Srqn::new(rand::random());
            let used = self.srqs.values().any(|record| record.queue.srqn() == Some(srqn));
            if srqn.value() != 0 && !used {
                return srqn;
            }
        }
    }

    /// A queue pair is gone. Its number rests.
    pub fn free_qpn(&mut self, qpn: Qpn) {
        self.qps.remove(&qpn.value());
        self.resting.add(Instant::now(), qpn.value());
    }
}

/// Numbers with a meaning of their own.
fn is_special(qpn: Qpn) -> bool {
    qpn == Qpn::SMI || qpn == Qpn::GSI || qpn == Qpn::MULTICAST
}

/// Where a queue pair begins to count its packets.
pub(crate) fn starting_psn() -> Psn {
    Psn::new(rand::random())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_free_when_it_has_rested() {
        let mut names = Names::default();
        let qpn = names.qpn(QpType::Rc, 1).expect("there is none");
        assert!(!names.is_free(qpn) && !names.is_free(Qpn::GSI));
        names.free_qpn(qpn);
        assert!(!names.is_free(qpn), "it rests");
        names.resting.wake(Instant::now() + REST);
        assert!(names.is_free(qpn));
    }

    /// rocev2 facts, CM 14.8: a queue pair that is destroyed with its connection leaves a peer that does not answer the DREQ, and
    /// then timewait.
    #[test]
    fn a_number_rests_longer_than_its_connection() {
        let config = ::cm::Config::new(1, [0; 32]);
        let longest = config.timing.patience_ns() + config.timewait_ns.1;
        assert!(REST >= Duration::from_nanos(longest), "{REST:?} of {longest} ns");
    }

    #[test]
    fn there_are_no_more_queue_pairs_than_the_device_says() {
        let mut names = Names::default();
        let first = names.qpn(QpType::Rc, 2).expect("there is none");
        assert!(names.qpn(QpType::Ud, 2).is_some());
        assert_eq!(names.qpn(QpType::Rc, 2), None);
        names.free_qpn(first);
        assert!(names.qpn(QpType::Rc, 2).is_some());
    }

    #[test]
    fn numbers_are_unused_unpredictable_and_not_special() {
        let mut names = Names::default();
        let qpns: Vec<u32> =
            (0..2000).map(|_| names.qpn(QpType::Rc, 2000).expect("there are fewer").value()).collect();
        assert_eq!(names.qps.len(), 2000, "no number twice");
        assert!([0, 1, 0xFF_FFFF].into_iter().all(|qpn| is_special(Qpn::new(qpn))));
        assert!(![2, 0xFF_FFFE].into_iter().any(|qpn| is_special(Qpn::new(qpn))));
        let rising = qpns.windows(2).filter(|pair| pair[0] < pair[1]).count();
        assert!((800..1200).contains(&rising), "{rising} of 1999: they count");
        let keys: Vec<u32> = (0..2000).map(|_| names.key()).collect();
        assert_eq!(names.keys(), 2000);
        assert!(keys.iter().all(|key| key >> 8 != 0));
        let window = names.window_key();
        assert!(!keys.iter().any(|key| key >> 8 == window >> 8), "regions and windows share the numbers");
        assert_eq!((names.keys(), names.windows()), (2000, 1));
        names.free_key(window);
        assert_eq!((names.keys(), names.windows()), (2000, 0));
        names.free_key(keys[0]);
        names.free_qpn(Qpn::new(qpns[0]));
        assert_eq!((names.keys(), names.qps.len()), (1999, 1999));
        assert!(names.resting.has(qpns[0]) && !names.resting.has(qpns[1]));
    }

    #[test]
    fn a_number_rests_for_its_time() {
        let mut resting = Resting::default();
        let begin = Instant::now();
        resting.add(begin, 7);
        resting.add(begin + REST / 2, 8);
        resting.wake(begin + REST - Duration::from_millis(1));
        assert!(resting.has(7) && resting.has(8));
        resting.wake(begin + REST);
        assert!(!resting.has(7) && resting.has(8));
        for number in 0..MOST_RESTING as u32 + 5 {
            resting.add(begin, 100 + number);
        }
        assert!(resting.numbers.len() <= MOST_RESTING && !resting.has(100));
    }
}
