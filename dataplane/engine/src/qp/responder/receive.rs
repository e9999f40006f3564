//! The receive that a message fills: taken from the queue, its SGEs resolved once, its bytes scattered in
//! order.

use crate::access::Access;
use crate::fault::Fault;
use crate::limits::{MAX_MESSAGE, MAX_SGE};
use crate::memory::{Memory, PlaceError, Span};
use crate::mr::{KeyFault, MrTable, PdId};
use crate::packet::{Payload, Piece};
use crate::qp::Ctx;
use crate::queue::{RecvQueue, RecvWqe};
use crate::wr::Sge;
use arrayvec::ArrayVec;
use ring::Taker;

/// A receive under way, or room for one.
#[derive(Debug, Default)]
#[repr(C)]
pub(super) struct Receive {
    /// Its `wr_id`, while there is one.
    wr_id: Option<u64>,
    /// All SGEs could be resolved.
    usable: bool,
    capacity: u32,
    filled: u32,
    /// Where the next byte goes: span and offset in it.
    span: usize,
    offset: u32,
    /// The SGEs that hold something, as spans.
    spans: ArrayVec<Span, MAX_SGE>,
}

impl Receive {
    /// None was taken that waits for the rest of a message, or for another.
    #[inline]
    pub fn is_free(&self) -> bool {
        self.wr_id.is_none()
    }

    /// Takes the oldest receive of the QP's own, or the one that a broken message has left (UC, UD), at its beginning.
    pub fn take(&mut self, queue: &mut Taker<RecvWqe>, keys: &MrTable, pd: PdId) -> Result<(), Fault> {
        if self.wr_id.is_none() {
            let wr = queue.take().ok_or(Fault::NoReceive)?;
            self.wr_id = Some(wr.wr_id);
            self.usable = self.resolve(wr.sges(), keys, pd).is_ok();
            queue.release(1);
        }
        self.rewind();
        Ok(())
    }

    /// The same of an SRQ; its keys are those of its own PD.
    pub fn take_shared<M>(&mut self, queue: &RecvQueue, ctx: &Ctx<'_, M>, qp_pd: PdId) -> Result<(), Fault> {
        if self.wr_id.is_none() {
            let wr = queue.take(ctx.events).ok_or(Fault::NoReceive)?;
            self.wr_id = Some(wr.wr_id);
            self.usable = self.resolve(&wr.sges, ctx.keys, queue.pd(qp_pd)).is_ok();
        }
        self.rewind();
        Ok(())
    }

    fn rewind(&mut self) {
        self.filled = 0;
        self.span = 0;
        self.offset = 0;
    }

    /// The memory check of a receive: `LOCAL_WRITE`, on the PD of its queue. An SGE of no bytes touches nothing.
    fn resolve(&mut self, sges: &[Sge], keys: &MrTable, pd: PdId) -> Result<(), KeyFault> {
        self.spans.clear();
        let mut capacity = 0u64;
        for sge in sges.iter().filter(|sge| sge.len > 0) {
            self.spans.push(keys.local(sge.lkey, pd, sge.addr, sge.len, Access::LOCAL_WRITE)?);
            capacity += u64::from(sge.len);
        }
        // No message is longer, however large the receive.
        self.capacity = capacity.min(u64::from(MAX_MESSAGE)) as u32;
        Ok(())
    }

    /// Its memory can be written.
    pub fn usable(&self) -> Result<(), Fault> {
        if self.usable { Ok(()) } else { Err(Fault::ReceiveUnusable) }
    }

    /// The bytes of a message so far.
    pub fn filled(&self) -> u32 {
        self.filled
    }

    /// Bytes that still fit.
    pub fn room(&self) -> u32 {
        self.capacity - self.filled
    }

    /// The receive completes, or is given away: its `wr_id`, if one was taken.
    pub fn release(&mut self) -> Option<u64> {
        self.wr_id.take()
    }

    /// Scatters a packet's payload. There is [`room`](Self::room) for it. Whether its message `goes_on` behind it is all that is known of
    /// that. What fails changes nothing here: the packet may come again.
    pub fn place<M: Memory>(
        &mut self,
        memory: &M,
        payload: &Payload<'_>,
        goes_on: bool,
    ) -> Result<(), PlaceError> {
        let before = (self.filled, self.span, self.offset);
        let placed = payload.pieces().try_for_each(|piece| self.place_piece(memory, piece, goes_on));
        if placed.is_err() {
            (self.filled, self.span, self.offset) = before;
        }
        placed
    }

    fn place_piece<M: Memory>(
        &mut self,
        memory: &M,
        mut piece: Piece<'_>,
        goes_on: bool,
    ) -> Result<(), PlaceError> {
        while !piece.is_empty() {
            let Some(span) = self.spans.get(self.span) else { return Ok(()) };
            let take = piece.len().min(span.len() - self.offset);
            let (now, later) = piece.split_at(take);
            if let Some(part) = span.slice(self.offset, take) {
                // A receive may have more room than the message fills, but nobody else has a use for it until it completes.
                let follows = if goes_on { span.len() - self.offset - take } else { 0 };
                now.place(memory, part, follows)?;
            }
            self.filled += take;
            self.offset += take;
            if self.offset == span.len() {
                self.span += 1;
                self.offset = 0;
            }
            piece = later;
        }
        Ok(())
    }
}
