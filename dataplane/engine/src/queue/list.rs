//! Lists of requests that are posted together: what threads have to agree on for a post is agreed on once.

use super::recv_wqe::RecvWqe;
use super::wqe::Wqe;
use super::{PostError, QpShared};
use crate::limits::MAX_MESSAGE;
use crate::wr::{RecvWr, Remote, SendFlags, SendOp, SendWr, Sge};
use ring::Posting;
use wire::Srqn;

/// Send requests that are being posted together. Dropped, it has posted nothing.
#[derive(Debug)]
#[must_use = "nothing is posted before it is told so"]
pub struct SendList<'a> {
    qp: &'a QpShared,
    posting: Posting<'a, Wqe>,
    is_empty: bool,
    /// SENDs and WRITEs of one piece go in, whatever it is.
    takes_pieces: bool,
}

impl<'a> SendList<'a> {
    pub(super) fn new(qp: &'a QpShared, posting: Posting<'a, Wqe>) -> Self {
        SendList { qp, posting, is_empty: true, takes_pieces: qp.takes_pieces() }
    }

    /// Adds a request. One that is refused is not in the list; those before it are.
    #[inline]
    pub fn push(&mut self, mut wr: SendWr) -> Result<(), PostError> {
        self.qp.check_send(&wr)?;
        self.place()?.fill(&mut wr, Srqn::default());
        Ok(())
    }

    /// Adds a request of one piece of memory, as [`push`](Self::push) does. It is written where it lies, without a copy in between.
    #[inline(always)]
    pub fn push_piece(
        &mut self,
        wr_id: u64,
        op: SendOp,
        piece: Sge,
        flags: SendFlags,
    ) -> Result<(), PostError> {
        self.qp.check_piece(&op, &piece)?;
        self.place()?.fill_piece(wr_id, op, piece, flags);
        Ok(())
    }

    /// The same for a SEND. Where the kind of an operation is known, not even that is copied.
    #[inline(always)]
    pub fn push_send(&mut self, wr_id: u64, piece: Sge, flags: SendFlags) -> Result<(), PostError> {
        self.check_plain(&SendOp::Send, &piece)?;
        self.place()?.fill_send(wr_id, piece, flags);
        Ok(())
    }

    /// The same for a WRITE.
    #[inline(always)]
    pub fn push_write(
        &mut self,
        wr_id: u64,
        remote: Remote,
        piece: Sge,
        flags: SendFlags,
    ) -> Result<(), PostError> {
        self.check_plain(&SendOp::Write(remote), &piece)?;
        self.place()?.fill_write(wr_id, remote, piece, flags);
        Ok(())
    }

    /// What a QP takes of SEND it takes of WRITE.
    #[inline(always)]
    fn check_plain(&self, op: &SendOp, piece: &Sge) -> Result<(), PostError> {
        if self.takes_pieces && piece.len <= MAX_MESSAGE { Ok(()) } else { self.qp.check_piece(op, piece) }
    }

    #[inline(always)]
    fn place(&mut self) -> Result<&mut Wqe, PostError> {
        let place = self.posting.place().ok_or(PostError::Full)?;
        self.is_empty = false;
        Ok(place)
    }

    /// Posts all. The result is as for [`QpShared::post_send`].
    #[inline]
    pub fn post(self) -> bool {
        // An empty list is nothing to be told of.
        !self.is_empty && self.posting.publish()
    }
}

/// Receives that are being posted together. Dropped, it has posted nothing.
#[derive(Debug)]
#[must_use = "nothing is posted before it is told so"]
pub struct RecvList<'a> {
    qp: &'a QpShared,
    posting: Posting<'a, RecvWqe>,
    is_empty: bool,
}

impl<'a> RecvList<'a> {
    pub(super) fn new(qp: &'a QpShared, posting: Posting<'a, RecvWqe>) -> Self {
        RecvList { qp, posting, is_empty: true }
    }

    /// Adds a receive. One that is refused is not in the list; those before it are.
    #[inline]
    pub fn push(&mut self, wr: &RecvWr) -> Result<(), PostError> {
        self.qp.rq().check(wr.sges.len())?;
        self.posting.place().ok_or(PostError::Full)?.fill(wr.wr_id, &wr.sges);
        self.is_empty = false;
        Ok(())
    }

    /// Adds a receive of one piece of memory, as [`push`](Self::push) does. It is written where it lies, without a copy in between.
    #[inline(always)]
    pub fn push_piece(&mut self, wr_id: u64, piece: Sge) -> Result<(), PostError> {
        self.qp.rq().check(1)?;
        self.posting.place().ok_or(PostError::Full)?.fill_piece(wr_id, piece);
        self.is_empty = false;
        Ok(())
    }

    /// Posts all. The result is as for [`QpShared::post_recv`].
    #[inline]
    pub fn post(self) -> bool {
        !self.is_empty && self.posting.publish() && self.qp.ring()
    }
}
