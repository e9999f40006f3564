//! What a request does to memory, as the model has it: one after the other, in the order of posting.

use super::flow::{Area, Flow, Pieces, gather, operands};
use crate::plan::{Kind, Place};
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
        Kind::LocalInv | Kind::RegMr => Vec::new(),
        Kind::Send | Kind::SendImm | Kind::SendInv => {
            spread(Area::Inbox, &spot.receive, &gather(bytes_of(spot.local.0), &spot.local.1))
        }
        Kind::Write | Kind::WriteImm => {
            vec![(area, offset, gather(bytes_of(spot.local.0), &spot.local.1))]
        }
        Kind::Read => spread(spot.local.0, &spot.local.1, &gather(bytes_of(area), &vec![(offset, op.len)])),
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
