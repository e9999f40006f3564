//! Which two directions are one connection. An RC packet does not name the QP that it comes from, so this is inferred: from
//! connection management, from equal UDP source ports (Linux takes the same in both directions, made from both QP numbers), from
//! an answer whose PSN was asked for. Where several fit, none is taken.

use crate::half::{Half, Key};
use std::collections::HashMap;
use wire::{Gid, Psn, Service, udp_sport};

/// A direction whose other side was looked for so often in vain is left alone.
const TRIES: u8 = 200;

/// Directions that are looked through for one answer.
const CANDIDATES: usize = 4096;

/// The directions, by what names them.
#[derive(Default)]
pub struct Halves {
    pub all: Vec<Half>,
    by_key: HashMap<Key, usize>,
    by_pair: HashMap<(Gid, Gid), Vec<usize>>,
}

impl Halves {
    pub fn find(&self, key: &Key) -> Option<usize> {
        self.by_key.get(key).copied()
    }

    pub fn insert(&mut self, half: Half) -> usize {
        let index = self.all.len();
        self.by_key.insert(half.key, index);
        self.by_pair.entry((half.key.src, half.key.dst)).or_default().push(index);
        self.all.push(half);
        index
    }

    /// Makes two directions one connection; what they were part of before is over.
    pub fn join(&mut self, one: usize, other: usize) {
        for index in [one, other] {
            if let Some(old) = self.all[index].peer.take() {
                self.all[old].peer = None;
            }
        }
        self.all[one].peer = Some(other);
        self.all[other].peer = Some(one);
    }

    /// Connections whose two directions are known.
    pub fn joined(&self) -> u64 {
        let ends = |(index, half): (usize, &Half)| u64::from(half.peer.is_some_and(|peer| peer >= index));
        self.all.iter().enumerate().map(ends).sum()
    }

    /// The direction whose requests an answer in direction `index` belongs to.
    pub fn asked_by(&mut self, index: usize, psn: Psn, service: Service) -> Option<usize> {
        if let Some(peer) = self.all[index].peer {
            return Some(peer);
        }
        if self.all[index].tries >= TRIES {
            return None;
        }
        let found = self.search(index, psn, service);
        match found {
            Some(other) => self.join(index, other),
            None => self.all[index].tries += 1,
        }
        found
    }

    fn search(&self, index: usize, psn: Psn, service: Service) -> Option<usize> {
        let half = &self.all[index];
        let others = self.by_pair.get(&(half.key.dst, half.key.src))?;
        if others.len() > CANDIDATES {
            return None;
        }
        let asks = |&&other: &&usize| {
            let other = &self.all[other];
            let matches = other.service == Some(service) || other.service == Some(Service::Uc);
            matches && other.requests.started && other.key.dest.value() > 1
        };
        let same_port = |&&other: &&usize| half.sport != 0 && self.all[other].sport == half.sport;
        let knows = |&&other: &&usize| {
            let other = &self.all[other];
            other.requests.holder(other.requests.place(psn), other.mtu).is_some()
        };
        let free = |&&other: &&usize| self.all[other].peer.is_none();
        // Linux makes the port from both numbers.
        let by_numbers = |other: &&usize| {
            same_port(other) && udp_sport(0, half.key.dest, self.all[**other].key.dest) == half.sport
        };
        single(others.iter().filter(asks).filter(free).filter(by_numbers))
            .or_else(|| single(others.iter().filter(asks).filter(free).filter(same_port).filter(knows)))
            .or_else(|| single(others.iter().filter(asks).filter(free).filter(knows)))
            .or_else(|| single(others.iter().filter(asks).filter(same_port).filter(knows)))
    }
}

/// The only one, if it is that.
fn single<'a>(mut of: impl Iterator<Item = &'a usize>) -> Option<usize> {
    let first = of.next()?;
    of.next().is_none().then_some(*first)
}
