//! Places in regions.

use crate::world::World;

/// Bytes of a region, in pieces: what becomes a list of SGEs.
pub(super) type Pieces = Vec<(u64, u32)>;

/// Gives out places from the beginning of a region to its end, with gaps.
#[derive(Default)]
pub(super) struct Layout {
    end: u64,
}

impl Layout {
    /// One place of `len` bytes.
    pub fn take(&mut self, world: &mut World, len: u32) -> u64 {
        let at = self.end;
        self.end += u64::from(len) + 1 + u64::from(world.random_below(9));
        at
    }

    /// `len` bytes in up to `most` pieces, some of which may be empty.
    pub fn take_pieces(&mut self, world: &mut World, len: u32, most: u32) -> Pieces {
        let count = 1 + world.random_below(most);
        let mut left = len;
        (1..=count)
            .map(|nth| {
                let piece = if nth == count { left } else { world.random_below(left + 1) };
                left -= piece;
                (self.take(world, piece), piece)
            })
            .collect()
    }

    /// Bytes that the region needs.
    pub fn len(&self) -> usize {
        self.end as usize + 16
    }
}

/// The bytes of the pieces, one after the other.
pub(super) fn gather(content: &[u8], pieces: &Pieces) -> Vec<u8> {
    pieces.iter().flat_map(|&(at, len)| &content[at as usize..][..len as usize]).copied().collect()
}

/// Puts bytes into the pieces, in order; they may have room for more.
pub(super) fn scatter(content: &mut [u8], pieces: &Pieces, bytes: &[u8]) {
    let mut rest = bytes;
    for &(at, len) in pieces {
        let (now, later) = rest.split_at(rest.len().min(len as usize));
        content[at as usize..][..now.len()].copy_from_slice(now);
        rest = later;
    }
    assert!(rest.is_empty(), "the pieces hold the message");
}
