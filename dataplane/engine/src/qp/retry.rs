//! Retries: the ACK timer, the RNR timer, go-back-N, and the end of patience (rocev2 facts, transport section 10).

use super::outstanding::RnrWait;
use super::{Ctx, Qp, flush};
use crate::Nanos;
use crate::counters::{Counter, DropReason};
use crate::memory::Memory;
use crate::status::WcStatus;
use wire::Psn;

/// `rnr_retry` without end.
const RNR_FOREVER: u8 = 7;
/// Unit of the ACK timeout: 4.096 µs.
const ACK_TIMEOUT_UNIT_NS: Nanos = 4096;

/// When an ACK timer that starts now fires; `None` for a QP without one.
pub(super) fn ack_deadline(qp: &Qp, now: Nanos) -> Option<Nanos> {
    let code = qp.attr.timeout & 31;
    (qp.qp_type.is_reliable() && code != 0).then(|| now.saturating_add(ACK_TIMEOUT_UNIT_NS << code))
}

/// The ACK or RNR timer fired.
pub(crate) fn on_timeout<M: Memory>(qp: &mut Qp, ctx: &Ctx<'_, M>) {
    qp.req.rnr = qp.req.rnr.filter(|wait| wait.until > ctx.now);
    if qp.req.deadline.is_none_or(|deadline| deadline > ctx.now) {
        return;
    }
    qp.req.deadline = None;
    // Nothing was sent since it went back (the peer was not ready, or the sink is full): nothing can have been lost.
    // Sending starts the timer.
    if qp.req.outstanding() == 0 || qp.req.cursor_psn() == qp.req.una {
        return;
    }
    qp.counters.count(Counter::LocalAckTimeoutErr);
    go_back(qp, ctx);
    // What comes from now on answers what is sent again.
    qp.req.recovering = false;
}

/// The peer missed the packet at `una` (NAK), which everything before is acknowledged up to.
pub(super) fn on_sequence_nak<M: Memory>(qp: &mut Qp, ctx: &Ctx<'_, M>) {
    // rocev2 facts: one lost packet causes one NAK, further ones for the same gap do not count; and while the peer is
    // not ready, packets behind the refused one are out of sequence by nature.
    if qp.req.recovering || qp.req.is_refused() {
        return qp.counters.drop_packet(DropReason::StaleResponse);
    }
    qp.counters.count(Counter::PacketSeqErr);
    go_back(qp, ctx);
}

/// The response to the READ or atomic at `una` was lost: one behind it came.
pub(super) fn on_implied_nak<M: Memory>(qp: &mut Qp, ctx: &Ctx<'_, M>) {
    if qp.req.recovering || qp.req.is_refused() {
        return qp.counters.drop_packet(DropReason::StaleResponse);
    }
    qp.counters.count(Counter::ImpliedNakSeqErr);
    go_back(qp, ctx);
}

/// The peer had no receive for the packet at `una`.
pub(super) fn on_rnr_nak<M: Memory>(qp: &mut Qp, ctx: &Ctx<'_, M>, timer: u8) {
    if qp.req.is_refused() {
        return qp.counters.drop_packet(DropReason::StaleResponse);
    }
    qp.counters.count(Counter::RnrNakRetry);
    if qp.attr.rnr_retry != RNR_FOREVER {
        if qp.req.rnr_retries >= qp.attr.rnr_retry {
            qp.counters.count(Counter::RnrRetryExceeded);
            return flush::fail_send(qp, ctx, WcStatus::RnrRetryExcErr);
        }
        qp.req.rnr_retries += 1;
    }
    qp.req.go_back();
    hold(qp, ctx, qp.req.una, timer);
    // rocev2 facts: the ACK timer is stopped meanwhile.
    qp.req.deadline = None;
}

/// The peer had no receive for the packet at `psn`, and the response to a READ or atomic before that was lost. That one goes out
/// again at once; the refused packet waits, and its retries are counted when it is the oldest.
pub(super) fn on_rnr_nak_behind<M: Memory>(qp: &mut Qp, ctx: &Ctx<'_, M>, psn: Psn, timer: u8) {
    if qp.req.rnr.is_none_or(|wait| wait.psn != psn) {
        hold(qp, ctx, psn, timer);
    }
    on_implied_nak(qp, ctx);
}

fn hold<M: Memory>(qp: &mut Qp, ctx: &Ctx<'_, M>, psn: Psn, timer: u8) {
    let until = ctx.now.saturating_add(wire::rnr_timer_ns(timer));
    qp.req.rnr = Some(RnrWait { psn, until });
}

/// One step of `retry_cnt`, and everything from `una` on goes out again.
fn go_back<M: Memory>(qp: &mut Qp, ctx: &Ctx<'_, M>) {
    if qp.req.retries >= qp.attr.retry_cnt {
        qp.counters.count(Counter::RetryExceeded);
        return flush::fail_send(qp, ctx, WcStatus::RetryExcErr);
    }
    qp.req.retries += 1;
    qp.req.window.shrink();
    qp.req.recovering = true;
    qp.req.recover_end = Some(qp.req.sent_end);
    qp.req.go_back();
    // Sending starts the timer again.
    qp.req.deadline = None;
}
