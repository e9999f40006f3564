//! A WRITE of several packets: where it goes and how far it is.

use crate::memory::{Memory, PlaceError, Span};
use crate::packet::Payload;
use wire::{RKey, Reth};

/// The WRITE under way. Packets after the first carry no RETH, so this goes on from it.
#[derive(Clone, Copy, Debug)]
pub(super) struct WriteProgress {
    reth: Reth,
    done: u32,
}

impl Default for WriteProgress {
    fn default() -> Self {
        WriteProgress { reth: Reth { va: 0, rkey: RKey::new(0), dma_len: 0 }, done: 0 }
    }
}

impl WriteProgress {
    /// A WRITE at its beginning.
    pub fn new(reth: Reth) -> Self {
        WriteProgress { reth, done: 0 }
    }

    /// The key that all of it goes by.
    pub fn rkey(&self) -> RKey {
        self.reth.rkey
    }

    /// The RETH's length.
    pub fn len(&self) -> u32 {
        self.reth.dma_len
    }

    /// Where the next byte goes. The whole range was checked at the first packet, so the sum does not wrap.
    pub fn va(&self) -> u64 {
        self.reth.va.wrapping_add(u64::from(self.done))
    }

    /// Bytes to come.
    pub fn left(&self) -> u32 {
        self.reth.dma_len - self.done
    }

    /// `len` bytes were placed.
    pub fn placed(&mut self, len: u32) {
        self.done += len;
    }
}

/// Copies a payload to the beginning of a span that is at least as long: all that the message still fills.
#[inline(always)]
pub(super) fn place<M: Memory>(memory: &M, span: Span, payload: &Payload<'_>) -> Result<(), PlaceError> {
    match payload.only_slice() {
        Some(bytes) => match span.slice(0, bytes.len() as u32) {
            Some(part) => Ok(memory.write(part, bytes)?),
            None => Ok(()),
        },
        None => place_pieces(memory, span, payload),
    }
}

fn place_pieces<M: Memory>(memory: &M, span: Span, payload: &Payload<'_>) -> Result<(), PlaceError> {
    let mut at = 0;
    for piece in payload.pieces() {
        if let Some(part) = span.slice(at, piece.len()) {
            piece.place(memory, part, span.len() - at - piece.len())?;
        }
        at += piece.len();
    }
    Ok(())
}
