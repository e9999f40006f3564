//! The end of requests that nobody acknowledges, those of UC and UD: they are done when their last packet left, and its memory is read no
//! more (rocev2 facts, transport 19).

use super::flight::offset;
use super::{Ctx, Qp, complete};
use crate::memory::Memory;
use crate::packet::PacketSink;
use wire::Psn;

/// Packets left. `waits` is whether others before them were not done.
pub(super) fn sent<M: Memory>(qp: &mut Qp, ctx: &Ctx<'_, M>, sink: &mut impl PacketSink, waits: bool) {
    if let Some(loan) = sink.take_loan() {
        qp.req.loan = loan;
    } else if !waits {
        qp.req.una = qp.req.sent_end;
        let advance = qp.req.advance(0);
        complete::finish(qp, ctx, advance.finished);
        complete::settle(qp, ctx);
    }
}

/// The memory of all packets before `end` is read no more. Does nothing if that is not news.
pub(crate) fn on_returned<M: Memory>(qp: &mut Qp, ctx: &Ctx<'_, M>, end: Psn) {
    let packets = offset(end, qp.req.una);
    if qp.qp_type.is_reliable() || packets == 0 || packets > qp.req.outstanding() {
        return;
    }
    let advance = qp.req.advance(packets);
    qp.req.window.grow(packets);
    complete::finish(qp, ctx, advance.finished);
    complete::settle(qp, ctx);
}
