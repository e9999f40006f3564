//! Which bytes have arrived, and which the peer has to have.
//!
//! Our messages differ from each other in every word ([`Pattern`]). The peer's are what its program makes them:
//!
//! | program | its messages | checked here |
//! | --- | --- | --- |
//! | pingpong | 0x7b; from then on what it received, which is what we sent | every byte |
//! | pingpong with a shared receive queue | zeros; from then on 0x7b, which is what we sent | every byte |
//! | perftest, SEND and READ | random, the same again and again | each like the first; the first through a [`Piece`] |
//! | perftest, WRITE | random | through a [`Piece`] |
//! | perftest, ping-pong of WRITEs | zeros and a number in the last byte | every byte |

use super::super::pattern::{Pattern, inside};
use super::super::protocol::Faults;
use crate::verbs::Mr;
use serde::Serialize;

/// What `ibv_*_pingpong` fills its buffer with.
pub(super) const PINGPONG_FILL: u8 = 0x7b;
/// perftest goes through so many bytes with messages of at most half of it, and begins anew.
const CYCLE: u32 = 4096;
/// In steps of whole cache lines.
const LINE: u32 = 64;
/// Bytes looked at together.
const LOOK: usize = 4096;

/// Bytes that the peer's process has to have in its memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Piece {
    /// Where, in the peer's terms.
    pub addr: u64,
    /// How many.
    pub len: u32,
    /// CRC-32 (zlib's) of them.
    pub crc32: u32,
}

/// What the messages that come here look like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Looks {
    /// Message `k` is our own message `k` come back; with `late`, the first is the peer's fill and `k` is our `k - 1`.
    Echo { late: bool },
    /// Our messages come back, all alike; with `late` the first of each QP may be older than that: zeros.
    Filled { late: bool },
    /// Like the first ones.
    Repeats,
}

/// After how many messages perftest comes back to the same place.
pub(super) fn repeats_after(size: u32) -> u64 {
    if size > CYCLE / 2 { 1 } else { u64::from(CYCLE / step(size)) }
}

/// How far its next message is from this one.
pub(super) fn step(size: u32) -> u32 {
    size.max(1).next_multiple_of(LINE)
}

/// Bytes that perftest has for the messages of one QP and direction.
pub(super) fn room(size: u32) -> u64 {
    u64::from(size.max(CYCLE))
}

/// CRC-32 of a range of our memory.
pub(super) fn crc32(memory: &Mr, offset: u64, len: u32) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    let mut bytes = [0; LOOK];
    let end = offset + u64::from(len);
    for at in (offset..end).step_by(LOOK) {
        let piece = &mut bytes[..LOOK.min((end - at) as usize)];
        inside(memory.read(at as usize, piece));
        hasher.update(piece);
    }
    hasher.finalize()
}

/// Whether a range of our memory is all of one byte.
pub(super) fn filled_with(memory: &Mr, offset: u64, len: u32, byte: u8) -> Result<(), String> {
    each(memory, offset, len, |found| found == byte).map_err(|why| format!("{why}, not {byte:#04x}"))
}

/// Whether all bytes of a range of our memory are right; else the first that is not.
fn each(memory: &Mr, offset: u64, len: u32, is_right: impl Fn(u8) -> bool) -> Result<(), String> {
    let mut bytes = [0; LOOK];
    let end = offset + u64::from(len);
    for at in (offset..end).step_by(LOOK) {
        let piece = &mut bytes[..LOOK.min((end - at) as usize)];
        inside(memory.read(at as usize, piece));
        if let Some(wrong) = piece.iter().position(|&found| !is_right(found)) {
            return Err(format!("byte {} is {:#04x}", at - offset + wrong as u64, piece[wrong]));
        }
    }
    Ok(())
}

/// Compares what arrives.
pub(super) struct Arrivals {
    looks: Looks,
    size: u32,
    /// Our own messages, for those that come back.
    patterns: Vec<Pattern>,
    /// Per QP: the CRCs of the first messages.
    first: Vec<Vec<u32>>,
    pub faults: Faults,
    pub compared: u64,
}

impl Arrivals {
    pub fn new(looks: Looks, size: u32, patterns: Vec<Pattern>) -> Arrivals {
        let first = vec![Vec::new(); patterns.len()];
        Arrivals { looks, size, patterns, first, faults: Faults::default(), compared: 0 }
    }

    /// Message `number` of a QP lies at `offset`.
    pub fn check(&mut self, qp: usize, number: u64, memory: &Mr, offset: u64) {
        let size = self.size;
        let checked = match self.looks {
            // Its one buffer may change while the first are on their way.
            Looks::Filled { late: true } if number == 0 => {
                each(memory, offset, size, |found| found == PINGPONG_FILL || found == 0)
            }
            Looks::Filled { .. } => filled_with(memory, offset, size, PINGPONG_FILL),
            Looks::Echo { late: true } if number == 0 => filled_with(memory, offset, size, PINGPONG_FILL),
            Looks::Echo { late } => self.patterns[qp]
                .check(number - u64::from(late), memory.buffer(), offset, size)
                .map_err(|why| why.to_string()),
            Looks::Repeats => self.like_the_first(qp, number, crc32(memory, offset, size)),
        };
        self.compared += 1;
        self.faults.expect(qp, checked.map_err(|why| format!("arrival {number}: {why}")));
    }

    /// What was fetched from memory that does not change lies at `offset`.
    pub fn check_same(&mut self, qp: usize, memory: &Mr, offset: u64) {
        let crc = crc32(memory, offset, self.size);
        let first = *self.first[qp].first().unwrap_or(&crc);
        self.first[qp].resize(1, crc);
        let same = if first == crc { Ok(()) } else { Err("the peer's memory reads differently") };
        self.faults.expect(qp, same);
    }

    fn like_the_first(&mut self, qp: usize, number: u64, crc: u32) -> Result<(), String> {
        let after = repeats_after(self.size);
        let first = &mut self.first[qp];
        if number < after && first.len() as u64 == number {
            first.push(crc);
            return Ok(());
        }
        match first.get((number % after) as usize) {
            Some(&expected) if expected != crc => {
                Err(format!("its CRC is {crc:#010x}, that of the first {expected:#010x}"))
            }
            _ => Ok(()),
        }
    }

    /// CRC of the very first message of a QP.
    pub fn first_crc(&self, qp: usize) -> Option<u32> {
        self.first[qp].first().copied()
    }
}
