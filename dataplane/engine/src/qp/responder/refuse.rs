//! What follows from a fault: answer, completion or event, counters, and the QP's end, as the fault table
//! says.

use crate::fault::{Answer, Fault};
use crate::memory::Memory;
use crate::qp::{Ctx, Qp, flush};
use crate::status::{Cqe, WcOpcode};
use wire::Psn;

/// A request at `psn` has a fault. A NAK goes out behind the responses before it (`respond.rs`), and takes
/// the QP to ERROR then; the receive that the message had taken, or an event, tells at once.
pub(in crate::qp) fn refuse<M: Memory>(qp: &mut Qp, ctx: &Ctx<'_, M>, psn: Psn, fault: Fault) {
    let row = fault.row(qp.qp_type);
    qp.counters.count(row.counter);
    qp.counters.drop_packet(row.drop);
    if row.fatal {
        tell(qp, ctx, fault);
    } else if row.answer == Answer::Silence && !qp.qp_type.is_reliable() {
        abandon(qp, ctx, fault);
    }
    match row.answer {
        Answer::Nak(code) if row.fatal => qp.resp.outbox.refuse(code, psn),
        Answer::Nak(_) => qp.resp.outbox.ask_sequence_nak(psn),
        Answer::Rnr => qp.resp.outbox.ask_rnr_nak(),
        Answer::Silence if row.fatal => flush::enter_error(qp, ctx),
        Answer::Silence => {}
    }
}

/// UC and UD: a message that had taken a receive of an SRQ comes to nothing. The next message may be another QP's, so the receive
/// completes with the fault instead of waiting here (class E; rocev2 facts, transport 19, wire 11). Nothing for a QP with receives
/// of its own.
pub(super) fn abandon<M: Memory>(qp: &mut Qp, ctx: &Ctx<'_, M>, fault: Fault) {
    if qp.shared.rq().is_shared()
        && let Some(wr_id) = qp.resp.take_current_receive()
    {
        complete(qp, ctx, wr_id, fault);
    }
}

fn tell<M: Memory>(qp: &mut Qp, ctx: &Ctx<'_, M>, fault: Fault) {
    let row = fault.row(qp.qp_type);
    match qp.resp.take_current_receive() {
        Some(wr_id) => complete(qp, ctx, wr_id, fault),
        None => ctx.events.raise(row.event, qp.source()),
    }
}

fn complete<M: Memory>(qp: &mut Qp, ctx: &Ctx<'_, M>, wr_id: u64, fault: Fault) {
    let status = fault.row(qp.qp_type).receive_status;
    let cqe = Cqe { vendor_err: fault as u32, ..Cqe::new(wr_id, status, WcOpcode::Recv, qp.qpn) };
    qp.push_recv_cqe(ctx, cqe);
}
