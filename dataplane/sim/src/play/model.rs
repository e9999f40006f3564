//! What a request does to memory, as the model has it: one after the other, in the order of posting.

use super::flow::{Area, Flow, Pieces, flushed, gather, operands};
use crate::plan::{Kind, Place};
use engine::{FlushLevel, Placement};
use std::collections::{BTreeMap, BTreeSet};

/// Bytes that a request puts somewhere.
pub(super) type Effect = (Area, u64, Vec<u8>);

/// What bytes may be where it is not known how far requests got.
pub(super) type Maybe = BTreeMap<(Area, u64), BTreeSet<u8>>;

/// What request `at` does to memory that is `shadow` before. `actual` gives bytes of the real memory, for what only it can
/// tell: results of a counter that several share.
pub(super) fn effects(
    flow: &Flow,
    seed: u64,
    at: usize,
    shadow: &BTreeMap<Area, Vec<u8>>,
    actual: impl Fn(Area, &Pieces) -> Vec<u8>,
) -> Vec<Effect> {
    let (op, spot) = (&flow.ops[at], &flow.spots[at]);
    let bytes_of = |area: Area| shadow.get(&area).map_or(&[][..], Vec::as_slice);
    let (area, offset) = spot.remote;
    match op.kind {
        Kind::LocalInv | Kind::RegMr | Kind::BindMw1 | Kind::BindMw2 => Vec::new(),
        // The receives of a shared queue are looked at one by one.
        Kind::Send | Kind::SendImm | Kind::SendInv if !flow.pools.is_empty() => Vec::new(),
        Kind::Send | Kind::SendImm | Kind::SendInv => {
            spread(Area::Inbox, &spot.receive, &gather(bytes_of(spot.local.0), &spot.local.1))
        }
        Kind::Write | Kind::WriteImm | Kind::AtomicWrite => {
            vec![(area, offset, gather(bytes_of(spot.local.0), &spot.local.1))]
        }
        Kind::Read => spread(spot.local.0, &spot.local.1, &gather(bytes_of(area), &vec![(offset, op.len)])),
        // Nobody can see what else a FLUSH does.
        Kind::Flush if area == Area::Target => match flushed(seed, op) {
            (placement, _) if !placement.contains(Placement::PERSISTENT) => Vec::new(),
            (_, FlushLevel::Region) => changed(bytes_of(area), bytes_of(Area::Kept)),
            (_, FlushLevel::Range) => {
                vec![(Area::Kept, offset, gather(bytes_of(area), &vec![(offset, op.len)]))]
            }
        },
        Kind::Flush => Vec::new(),
        Kind::CompareSwap | Kind::FetchAdd if op.place == Place::Shared => {
            spread(spot.local.0, &spot.local.1, &actual(spot.local.0, &spot.local.1))
        }
        Kind::CompareSwap | Kind::FetchAdd => {
            let cell = gather(bytes_of(area), &vec![(offset, 8)]);
            let old = u64::from_ne_bytes(cell.try_into().unwrap_or_default());
            let new = match (op.kind, operands(seed, op)) {
                (Kind::FetchAdd, (add, _)) => old.wrapping_add(add),
                (_, (compare, swap)) if old == compare => swap,
                _ => old,
            };
            let mut all = spread(spot.local.0, &spot.local.1, &old.to_ne_bytes());
            all.push((area, offset, new.to_ne_bytes().to_vec()));
            all
        }
    }
}

/// What persists when a whole region is to: what had not.
fn changed(now: &[u8], kept: &[u8]) -> Vec<Effect> {
    let mut all: Vec<Effect> = Vec::new();
    for (at, (&new, _)) in (0..).zip(now.iter().zip(kept)).filter(|(_, (new, old))| new != old) {
        match all.last_mut() {
            Some((_, from, bytes)) if *from + bytes.len() as u64 == at => bytes.push(new),
            _ => all.push((Area::Kept, at, vec![new])),
        }
    }
    all
}

/// Puts effects into the shadow.
pub(super) fn apply(shadow: &mut BTreeMap<Area, Vec<u8>>, effects: &[Effect]) {
    for (area, offset, bytes) in effects {
        let place = shadow.get_mut(area).and_then(|content| content.get_mut(*offset as usize..));
        if let Some(place) = place {
            for (byte, new) in place.iter_mut().zip(bytes) {
                *byte = *new;
            }
        }
    }
}

/// Notes that effects may have happened, whole or in part.
pub(super) fn allow(maybe: &mut Maybe, effects: &[Effect]) {
    for (area, offset, bytes) in effects {
        for (at, byte) in (*offset..).zip(bytes) {
            maybe.entry((*area, at)).or_default().insert(*byte);
        }
    }
}

/// Bytes over pieces, in order; the pieces may have room for more.
pub(super) fn spread(area: Area, pieces: &Pieces, bytes: &[u8]) -> Vec<Effect> {
    let mut rest = bytes;
    let mut all = Vec::new();
    for &(at, len) in pieces {
        let (now, later) = rest.split_at(rest.len().min(len as usize));
        if !now.is_empty() {
            all.push((area, at, now.to_vec()));
        }
        rest = later;
    }
    all
}
