//! How packets get to the peers of connections: headers by the ends of a path, as they were when the connection began, but for
//! next hops that have moved since.
//!
//! A peer that asked us may not be in the neighbour cache, and is not asked for: it is answered where it came from.

use ::cm::Path;
use std::collections::HashMap;
use wire::{Addressing, Gid, Mac, Qpn};
use worker::Whom;

/// Peers that are remembered. Beyond these the neighbour cache is asked.
const MOST: usize = 4096;
/// One that nobody connected to for so long may be forgotten, when there are too many.
const OLD_NS: u64 = 60_000_000_000;

type Ends = (Gid, Gid, u32);

/// Headers, and when they were learned.
#[derive(Debug, Default)]
pub(super) struct Ways(HashMap<Ends, (Addressing, u64)>);

fn ends(path: &Path) -> Ends {
    (path.local, path.remote, path.scope)
}

impl Ways {
    /// Remembers the way of a connection that begins.
    pub fn learn(&mut self, now: u64, path: &Path, way: &Addressing) {
        if self.0.len() >= MOST && !self.0.contains_key(&ends(path)) {
            self.0.retain(|_, (_, learned)| now.saturating_sub(*learned) < OLD_NS);
            if self.0.len() >= MOST {
                return;
            }
        }
        let way = Addressing { udp_sport: wire::udp_sport_of_qpn(Qpn::GSI), ..*way };
        self.0.insert(ends(path), (way, now));
    }

    /// A next hop has moved to another MAC: those who are reached by it are reached there.
    pub fn redirect(&mut self, whom: &Whom, from: Mac, to: Mac) {
        for (way, _) in self.0.values_mut() {
            turn(way, whom, from, to);
        }
    }

    /// The way of a path.
    pub fn get(&self, path: &Path) -> Option<Addressing> {
        self.0.get(&ends(path)).map(|(way, _)| *way)
    }
}

/// A next hop has moved: headers that lead there by its old MAC do so by the new one.
pub(super) fn turn(way: &mut Addressing, whom: &Whom, from: Mac, to: Mac) {
    let vid = way.vlan.map_or(0, |tag| tag.vid);
    if way.dmac == from && whom.leads_to(vid, way.dst) {
        way.dmac = to;
    }
}
