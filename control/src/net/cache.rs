//! The neighbour cache: address to MAC, for ARP and neighbour discovery alike.
//!
//! Pure state: it says which questions to ask and never sees a frame. It serves unverified RFC 4861 7.2 and
//! 7.3 in the form that fits us: an entry is pending, ready or failed; a ready one that is asked for after
//! `fresh_ns` is probed again while it stays in use. One that was in use and fell silent is asked for until it is back or nobody uses it. A peer can neither grow it past its capacity nor push
//! out what we resolved ourselves.

use std::collections::{BTreeMap, VecDeque};
use std::net::IpAddr;

use wire::Mac;

use super::SECOND_NS;

/// Sizes and times of the cache, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CacheLimits {
    /// Most entries at once.
    pub capacity: usize,
    /// Questions before a neighbour counts as dead.
    pub tries: u32,
    /// Time from one question to the next, and from the last to giving up.
    pub interval_ns: u64,
    /// How long an entry is used before it is probed again.
    pub fresh_ns: u64,
    /// How long an entry is kept after the neighbour was last heard of; more than `fresh_ns`.
    pub forget_ns: u64,
    /// How long a failure is remembered before the next resolution asks again.
    pub failed_hold_ns: u64,
    /// After a neighbour was confirmed, an answer or announcement with another MAC is refused for so long: the first one
    /// counts.
    pub settle_ns: u64,
}

impl Default for CacheLimits {
    /// A dead neighbour is reported within a second, the time that verbs callers wait.
    fn default() -> Self {
        CacheLimits {
            capacity: 1024,
            tries: 3,
            interval_ns: 3 * SECOND_NS / 10,
            fresh_ns: 30 * SECOND_NS,
            forget_ns: 60 * SECOND_NS,
            failed_hold_ns: 3 * SECOND_NS,
            settle_ns: SECOND_NS,
        }
    }
}

impl CacheLimits {
    /// The default, with another time after which a neighbour that does not answer is dead.
    pub fn giving_up_after(timeout_ns: u64) -> CacheLimits {
        let default = CacheLimits::default();
        CacheLimits { interval_ns: timeout_ns.div_ceil(default.tries.into()), ..default }
    }
}

/// The answer to a request for a MAC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resolution {
    /// Send to this MAC.
    Ready(Mac),
    /// Asked; an event tells the outcome.
    Pending,
    /// No route, or the neighbour does not answer.
    Failed,
}

/// What became of a neighbour. Addresses are next hops: for a destination beyond the link, the gateway's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// A pending or failed neighbour answered.
    Resolved {
        /// The neighbour.
        address: IpAddr,
        /// Its MAC.
        mac: Mac,
    },
    /// A neighbour moved to another MAC, perhaps after it was silent; then `Resolved` comes first.
    Changed {
        /// The neighbour.
        address: IpAddr,
        /// The MAC until now.
        old: Mac,
        /// The MAC from now on.
        new: Mac,
    },
    /// A neighbour did not answer, whether it was ever known or not.
    Failed {
        /// The neighbour.
        address: IpAddr,
    },
}

/// How we came to know of a neighbour's MAC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Evidence {
    /// It asked for one of our addresses, so we will answer and soon need it.
    AskedUs,
    /// It answered or announced. Without `overrides` it does not displace another MAC (unverified RFC 4861
    /// 7.2.5).
    Told { overrides: bool },
}

/// A question to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Question {
    pub address: IpAddr,
    /// The station to ask; `None` asks everybody.
    pub to: Option<Mac>,
}

#[derive(Clone, Copy, Debug)]
struct Probing {
    sent: u32,
    next_ns: u64,
}

#[derive(Clone, Copy, Debug)]
enum State {
    Pending(Probing),
    Ready { mac: Mac, confirmed_ns: u64, probing: Option<Probing> },
    Failed { since_ns: u64 },
}

#[derive(Clone, Debug)]
struct Entry {
    state: State,
    /// Where it was before it fell silent: whoever sends there has to hear if it comes back elsewhere.
    last: Option<Mac>,
    /// When it was last resolved; `None` if it was only ever learned.
    used_ns: Option<u64>,
}

/// The cache of one interface.
#[derive(Clone, Debug)]
pub(super) struct Cache {
    limits: CacheLimits,
    entries: BTreeMap<IpAddr, Entry>,
    /// To be drained by the owner after every call.
    pub questions: VecDeque<Question>,
    /// To be drained by the owner after every call.
    pub events: VecDeque<Event>,
}

impl Cache {
    pub fn new(limits: CacheLimits) -> Self {
        Cache { limits, entries: BTreeMap::new(), questions: VecDeque::new(), events: VecDeque::new() }
    }

    /// The MAC of a station on the link, asking for it if need be.
    pub fn resolve(&mut self, now: u64, address: IpAddr) -> Resolution {
        let limits = self.limits;
        let Some(entry) = self.entries.get_mut(&address) else {
            if !self.make_room(true) {
                return Resolution::Failed;
            }
            self.start(now, address);
            return Resolution::Pending;
        };
        entry.used_ns = Some(now);
        match &mut entry.state {
            State::Pending(_) => Resolution::Pending,
            State::Ready { mac, confirmed_ns, probing } => {
                let mac = *mac;
                if probing.is_none() && now >= *confirmed_ns + limits.fresh_ns {
                    *probing = Some(Probing { sent: 1, next_ns: now + limits.interval_ns });
                    let to = (limits.tries > 1).then_some(mac);
                    self.questions.push_back(Question { address, to });
                }
                Resolution::Ready(mac)
            }
            State::Failed { since_ns } if now < *since_ns + limits.failed_hold_ns => Resolution::Failed,
            State::Failed { .. } => {
                self.start(now, address);
                Resolution::Pending
            }
        }
    }

    /// Takes in that `address` is at `mac`. Returns whether that was of use.
    pub fn learn(&mut self, now: u64, address: IpAddr, mac: Mac, evidence: Evidence) -> bool {
        let settle_ns = self.limits.settle_ns;
        let Some(entry) = self.entries.get_mut(&address) else {
            if evidence != Evidence::AskedUs || !self.make_room(false) {
                return false;
            }
            self.entries.insert(address, Entry { state: ready(now, mac), last: None, used_ns: None });
            return true;
        };
        if let State::Ready { mac: old, confirmed_ns, .. } = entry.state {
            if old != mac {
                let kept = evidence == Evidence::Told { overrides: false };
                // Who asks needs our answer where it is now: a program that was started again, with another MAC.
                let early = evidence != Evidence::AskedUs && now < confirmed_ns + settle_ns;
                if kept || early {
                    return false;
                }
                self.events.push_back(Event::Changed { address, old, new: mac });
            }
        } else {
            self.events.push_back(Event::Resolved { address, mac });
            if let Some(old) = entry.last.take().filter(|old| *old != mac) {
                self.events.push_back(Event::Changed { address, old, new: mac });
            }
        }
        entry.state = ready(now, mac);
        true
    }

    /// Keeps an entry in use: what was forgotten is asked for again, if there is room.
    pub fn look_after(&mut self, now: u64, address: IpAddr) {
        if self.entries.contains_key(&address) || self.entries.len() < self.limits.capacity {
            self.resolve(now, address);
        }
    }

    /// The MAC of a neighbour that answers.
    pub fn known(&self, address: IpAddr) -> Option<Mac> {
        match self.entries.get(&address)?.state {
            State::Ready { mac, .. } => Some(mac),
            State::Pending(_) | State::Failed { .. } => None,
        }
    }

    /// The time at which [`Cache::on_timeout`] has something to do.
    pub fn next_timeout(&self) -> Option<u64> {
        self.entries.values().map(|entry| self.due(entry)).min()
    }

    /// Repeats questions, gives up on the dead and forgets the old.
    pub fn on_timeout(&mut self, now: u64) {
        let due: Vec<IpAddr> = self
            .entries
            .iter()
            .filter(|(_, entry)| self.due(entry) <= now)
            .map(|(address, _)| *address)
            .collect();
        for address in due {
            self.advance(now, address);
        }
    }

    fn due(&self, entry: &Entry) -> u64 {
        match entry.state {
            State::Pending(probing) | State::Ready { probing: Some(probing), .. } => probing.next_ns,
            State::Ready { confirmed_ns, probing: None, .. } => confirmed_ns + self.limits.forget_ns,
            State::Failed { since_ns } => since_ns + self.limits.failed_hold_ns,
        }
    }

    fn advance(&mut self, now: u64, address: IpAddr) {
        let CacheLimits { tries, interval_ns, .. } = self.limits;
        let Some(entry) = self.entries.get_mut(&address) else { return };
        let is_missed = entry.is_missed(now, self.limits.forget_ns);
        let (probing, known) = match &mut entry.state {
            State::Pending(probing) => (probing, None),
            State::Ready { probing: Some(probing), mac, .. } => (probing, Some(*mac)),
            State::Failed { .. } if is_missed => {
                let used_ns = entry.used_ns;
                self.start(now, address);
                if let Some(entry) = self.entries.get_mut(&address) {
                    entry.used_ns = used_ns;
                }
                return;
            }
            State::Ready { probing: None, .. } | State::Failed { .. } => {
                self.entries.remove(&address);
                return;
            }
        };
        if probing.sent >= tries {
            entry.last = known.or(entry.last);
            entry.state = State::Failed { since_ns: now };
            self.events.push_back(Event::Failed { address });
            return;
        }
        probing.sent += 1;
        probing.next_ns = now + interval_ns;
        // The last question goes to everybody: the neighbour may have moved.
        let to = known.filter(|_| probing.sent < tries);
        self.questions.push_back(Question { address, to });
    }

    fn start(&mut self, now: u64, address: IpAddr) {
        let probing = Probing { sent: 1, next_ns: now + self.limits.interval_ns };
        let last = self.entries.get(&address).and_then(|entry| entry.last);
        self.entries.insert(address, Entry { state: State::Pending(probing), last, used_ns: Some(now) });
        self.questions.push_back(Question { address, to: None });
    }

    /// Makes room for one entry. What we never used goes first; what we use goes only for what we need
    /// (`for_us`).
    fn make_room(&mut self, for_us: bool) -> bool {
        if self.entries.len() < self.limits.capacity {
            return true;
        }
        let idle = |entry: &Entry| !matches!(entry.state, State::Pending(_));
        let evictable = |entry: &Entry| idle(entry) && (for_us || entry.used_ns.is_none());
        let victim = self
            .entries
            .iter()
            .filter(|(_, entry)| evictable(entry))
            .min_by_key(|(_, entry)| (entry.used_ns, self.due(entry)))
            .map(|(address, _)| *address);
        victim.is_some_and(|address| self.entries.remove(&address).is_some())
    }
}

impl Entry {
    /// Somebody who used it while it answered still does: it is asked for until it is back.
    fn is_missed(&self, now: u64, forget_ns: u64) -> bool {
        self.last.is_some() && self.used_ns.is_some_and(|used| now < used + forget_ns)
    }
}

fn ready(now: u64, mac: Mac) -> State {
    State::Ready { mac, confirmed_ns: now, probing: None }
}
