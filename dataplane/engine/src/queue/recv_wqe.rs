//! A place of a QP's own receive queue: one receive, from its post until a message takes it.
//!
//! It is one cache line. More than one SGE has a room apart, which only queues for such receives have.

use crate::wr::Sge;
use wire::LKey;

/// A receive.
#[derive(Debug)]
#[repr(C)]
pub struct RecvWqe {
    /// Comes back in the completion.
    pub wr_id: u64,
    /// Where it is one piece of memory.
    piece: Sge,
    /// SGEs.
    count: u32,
    /// All of them, where there are more than one.
    room: Box<[Sge]>,
}

const _: () = assert!(size_of::<RecvWqe>() <= 64, "a receive lies in one line");

const NOTHING: Sge = Sge { addr: 0, len: 0, lkey: LKey::new(0) };

impl RecvWqe {
    /// A place that was never used, for so many SGEs.
    pub(super) fn empty(max_sge: usize) -> RecvWqe {
        let room = vec![NOTHING; room_bytes(max_sge) / size_of::<Sge>()].into();
        RecvWqe { wr_id: 0, piece: NOTHING, count: 0, room }
    }

    /// Takes over a receive, which has no more SGEs than the place was made for.
    #[inline]
    pub(super) fn fill(&mut self, wr_id: u64, sges: &[Sge]) {
        if let [piece] = *sges {
            return self.fill_piece(wr_id, piece);
        }
        self.wr_id = wr_id;
        self.count = sges.len() as u32;
        self.room.iter_mut().zip(sges).for_each(|(place, sge)| *place = *sge);
    }

    /// The same for one piece of memory.
    #[inline(always)]
    pub(super) fn fill_piece(&mut self, wr_id: u64, piece: Sge) {
        self.wr_id = wr_id;
        self.piece = piece;
        self.count = 1;
    }

    /// Its memory, where that is one piece.
    #[inline(always)]
    pub(crate) fn piece(&self) -> Option<&Sge> {
        (self.count == 1).then_some(&self.piece)
    }

    /// All of its memory.
    #[inline]
    pub(crate) fn sges(&self) -> &[Sge] {
        match self.count as usize {
            1 => std::slice::from_ref(&self.piece),
            count => self.room.get(..count).unwrap_or_default(),
        }
    }
}

/// Bytes that each place of such a queue has apart.
pub(super) fn room_bytes(max_sge: usize) -> usize {
    if max_sge > 1 { max_sge * size_of::<Sge>() } else { 0 }
}
