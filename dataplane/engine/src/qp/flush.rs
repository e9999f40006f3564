//! Error states and flushing (rocev2 facts, transport section 15).

use super::{Ctx, Qp, QpState};
use crate::event::EventKind;
use crate::memory::Memory;
use crate::status::{Cqe, WcOpcode, WcStatus};
use crate::wr::SendOp;

/// The QP goes to ERROR: everything in flight and posted is flushed, in queue order. Does nothing in ERROR.
pub(crate) fn enter_error<M: Memory>(qp: &mut Qp, ctx: &Ctx<'_, M>) {
    if qp.state == QpState::Err {
        return;
    }
    // First the state: completions that do not fit come back here, and posters see it.
    qp.set_state(QpState::Err);
    flush_started(qp, ctx);
    if let Some(current) = qp.resp.take_current_receive() {
        flush_receive(qp, ctx, current);
    }
    flush_posted(qp, ctx);
    if qp.shared.rq().is_shared() {
        ctx.events.raise(EventKind::QpLastWqeReached, qp.source());
    }
}

/// The oldest unfinished send request ends with `status`; then the QP goes to ERROR (RC) or SQE (UC, UD).
pub(crate) fn fail_send<M: Memory>(qp: &mut Qp, ctx: &Ctx<'_, M>, status: WcStatus) {
    if !qp.req.flight.is_empty() {
        end_oldest(qp, ctx, status);
    }
    if qp.qp_type.is_reliable() {
        return enter_error(qp, ctx);
    }
    // A CQ without room has taken the QP to ERROR by now.
    if qp.state != QpState::Err {
        // The ring is empty: behind a request with a fault none is taken. What of its memory was lent is not waited for.
        qp.req.forget();
        qp.set_state(QpState::Sqe);
        flush_posted(qp, ctx);
    }
}

/// In ERROR or SQE: flushes what was posted since. Receives go on in SQE, and those of an SRQ belong to others too.
pub(crate) fn flush_posted<M: Memory>(qp: &mut Qp, ctx: &Ctx<'_, M>) {
    // Nothing is in flight, so what is taken is the oldest.
    while let Some(wqe) = qp.req.flight.take() {
        wqe.started = false;
        end_oldest(qp, ctx, WcStatus::WrFlushErr);
    }
    if qp.state == QpState::Err {
        qp.shared.rq().await_flush(true);
        while let Some(wr_id) = qp.take_receive() {
            flush_receive(qp, ctx, wr_id);
        }
    }
}

/// Flushes the requests that the engine had taken.
fn flush_started<M: Memory>(qp: &mut Qp, ctx: &Ctx<'_, M>) {
    while !qp.req.flight.is_empty() {
        end_oldest(qp, ctx, WcStatus::WrFlushErr);
    }
    qp.req.forget();
}

/// Errors complete whether the request was signaled or not.
fn end_oldest<M: Memory>(qp: &mut Qp, ctx: &Ctx<'_, M>, status: WcStatus) {
    let qpn = qp.qpn;
    let wqe = qp.req.pop();
    let cqe = Cqe::new(wqe.wr_id, status, wqe.op.wc_opcode(), qpn);
    // Lets go of an address handle or a region.
    wqe.op = SendOp::Send;
    qp.req.flight.release();
    qp.push_send_cqe(ctx, cqe);
}

impl Qp {
    /// Takes the oldest receive of the QP's own, to flush or forget it: its `wr_id`.
    pub(super) fn take_receive(&mut self) -> Option<u64> {
        let rq = self.rq.as_mut()?;
        let wr_id = rq.take()?.wr_id;
        rq.release(1);
        Some(wr_id)
    }
}

fn flush_receive<M: Memory>(qp: &mut Qp, ctx: &Ctx<'_, M>, wr_id: u64) {
    qp.push_recv_cqe(ctx, Cqe::new(wr_id, WcStatus::WrFlushErr, WcOpcode::Recv, qp.qpn));
}
