//! Completions on their way to the CQs, and what a full CQ does.

use super::{Ctx, Qp, QpState, QpType, flush};
use crate::counters::Counter;
use crate::event::EventKind;
use crate::memory::Memory;
use crate::queue::{CompletionQueue, Wqe};
use crate::status::{Cqe, WcOpcode, WcStatus};
use crate::wr::{SendFlags, SendOp};
use std::sync::Arc;

impl Qp {
    /// Gives a completion to the send CQ. A full CQ breaks it (event CQ_ERR) and the QP goes to ERROR.
    pub(crate) fn push_send_cqe<M: Memory>(&mut self, ctx: &Ctx<'_, M>, cqe: Cqe) {
        count_status(self, cqe.status, Counter::ReqCqeError, Counter::ReqCqeFlushError);
        let pushed = push(ctx, &self.send_cq, || cqe);
        // Lent for this line only: what follows may complete more.
        let refused =
            u32::from(!pushed) + ctx.staged.borrow_mut().flush_for(&self.send_cq, self.qpn, ctx.events);
        for _ in 0..refused {
            self.on_cq_full(ctx);
        }
    }

    /// Gives a completion to the receive CQ, of an XRC target to that of the SRQ, with the same rule; but those of a burst get there
    /// together, when it ends, and only then it is seen whether there is room.
    pub(crate) fn push_recv_cqe<M: Memory>(&mut self, ctx: &Ctx<'_, M>, cqe: Cqe) {
        count_status(self, cqe.status, Counter::RespCqeError, Counter::RespCqeFlushError);
        if self.qp_type != QpType::XrcTgt {
            return self.push_received(ctx, || cqe);
        }
        let srqn = self.resp.srqn;
        // With the SRQ its receives went, and who would hear of them.
        let cq = ctx.srqs.get(srqn.value()).and_then(|srq| srq.completions());
        if !cq.is_none_or(|cq| push(ctx, cq, || Cqe { srqn: Some(srqn), ..cqe })) {
            self.on_cq_full(ctx);
        }
    }

    /// The same for a receive that was filled, of a QP that is no XRC target.
    #[inline(always)]
    pub(crate) fn push_received<M: Memory>(&mut self, ctx: &Ctx<'_, M>, make: impl Fn() -> Cqe) {
        if !push(ctx, &self.recv_cq, make) {
            self.on_cq_full(ctx);
        }
    }

    /// A completion of it found no room.
    #[cold]
    pub(crate) fn on_cq_full<M: Memory>(&mut self, ctx: &Ctx<'_, M>) {
        self.counters.count(Counter::CqOverflow);
        // Does nothing when the completion that did not fit was itself part of a flush.
        flush::enter_error(self, ctx);
    }
}

impl SendOp {
    /// What kind of work its completion is for.
    pub(super) fn wc_opcode(&self) -> WcOpcode {
        match self {
            SendOp::Send | SendOp::SendImm(_) | SendOp::SendInv(_) | SendOp::UdSend { .. } => WcOpcode::Send,
            SendOp::Write(_) | SendOp::WriteImm(..) => WcOpcode::RdmaWrite,
            SendOp::Read(_) => WcOpcode::RdmaRead,
            SendOp::CompareSwap { .. } => WcOpcode::CompSwap,
            SendOp::FetchAdd { .. } => WcOpcode::FetchAdd,
            SendOp::AtomicWrite(_) => WcOpcode::AtomicWrite,
            SendOp::Flush { .. } => WcOpcode::Flush,
            SendOp::LocalInv(_) => WcOpcode::LocalInv,
            SendOp::RegMr(_) => WcOpcode::RegMr,
            SendOp::BindMw(_) => WcOpcode::BindMw,
        }
    }
}

fn count_status(qp: &mut Qp, status: WcStatus, error: Counter, flush: Counter) {
    match status {
        WcStatus::Success => {}
        WcStatus::WrFlushErr => qp.counters.count(flush),
        _ => qp.counters.count(error),
    }
}

/// False when there is no room. It may turn out later that there is none ([`Staged`](crate::queue::Staged)).
#[inline(always)]
fn push<M>(ctx: &Ctx<'_, M>, cq: &Arc<CompletionQueue>, make: impl Fn() -> Cqe) -> bool {
    ctx.staged.borrow_mut().add(cq, make, ctx.events)
}

/// The oldest `count` requests are done. Their places are free before anybody can see their completions, or a
/// program that posts on each completion would find its queue full.
pub(super) fn finish<M: Memory>(qp: &mut Qp, ctx: &Ctx<'_, M>, count: u32) {
    if count == 0 {
        return;
    }
    let overflowed = pop_and_tell(qp, ctx, count);
    // Only now: the flush that follows must not find requests which are done.
    for _ in 0..overflowed {
        qp.on_cq_full(ctx);
    }
}

/// Completions of the oldest `count` requests. How many of them found no room.
fn pop_and_tell<M>(qp: &mut Qp, ctx: &Ctx<'_, M>, count: u32) -> u32 {
    let Qp { req, send_cq, qpn, sq_sig_all, .. } = qp;
    let mut overflowed = 0;
    let mut left = count;
    loop {
        left -= req.pop_quiet(left);
        if left == 0 {
            break;
        }
        left -= 1;
        let wqe = req.pop();
        let signaled = *sq_sig_all || wqe.flags.contains(SendFlags::SIGNALED);
        let told = signaled.then(|| success(wqe, *qpn));
        // Lets go of an address handle or a region.
        wqe.op = SendOp::Send;
        if let Some(cqe) = told {
            req.flight.release();
            overflowed += u32::from(!push(ctx, send_cq, || cqe));
        }
    }
    req.flight.release();
    // At once: what the QP does next depends on it.
    overflowed + ctx.staged.borrow_mut().flush_for(send_cq, *qpn, ctx.events)
}

fn success(wqe: &Wqe, qpn: wire::Qpn) -> Cqe {
    let byte_len = if wqe.op.returns_data() { wqe.len() } else { 0 };
    Cqe { byte_len, ..Cqe::new(wqe.wr_id, WcStatus::Success, wqe.op.wc_opcode(), qpn) }
}

/// What the oldest request's place at the head lets happen: a request that was done without a packet completes, one with a
/// local fault fails, and a queue that drains may be empty.
pub(super) fn settle<M: Memory>(qp: &mut Qp, ctx: &Ctx<'_, M>) {
    while let Some(oldest) = qp.req.flight.oldest() {
        match oldest.fault {
            Some(status) => return flush::fail_send(qp, ctx, status),
            None if oldest.started && oldest.packets == 0 => finish(qp, ctx, 1),
            None => break,
        }
    }
    if qp.state == QpState::Sqd && qp.attr.notify_drained && qp.req.is_drained() {
        qp.attr.notify_drained = false;
        ctx.events.raise(EventKind::SqDrained, qp.source());
    }
}
