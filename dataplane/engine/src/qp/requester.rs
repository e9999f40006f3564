//! The requester: what a send queue transmits next (rocev2 facts, transport sections 5, 19 and 20).
//!
//! Requests are taken from the send queue one by one, each when the packets of the one before have left and the window has
//! room, so whoever waits waits where posters see it. What is sent and unfinished lies in [`Requester`].

pub(crate) use super::outstanding::Requester;

use super::flight::offset;
use super::load::Loaded;
use super::outstanding::MAX_OUTSTANDING;
use super::{Ctx, Poll, Qp, QpState, complete, load, middles, plain, request, unanswered};
use crate::memory::Memory;
use crate::mw::MwType;
use crate::packet::{PacketSink, SinkError};
use crate::queue::Wqe;
use crate::sched::Turn;
use crate::status::WcStatus;
use crate::wr::{SendFlags, SendOp};

/// What the send queue can do now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    /// Nothing before another input comes.
    Nothing,
    /// Take a request from the send queue, if one waits there.
    Load,
    /// Do (or pass by) the request under the cursor, which needs no packet.
    Local,
    /// Send the packet under the cursor.
    Packet,
}

fn next(qp: &Qp) -> Next {
    let req = &qp.req;
    if req.must_wait() {
        return Next::Nothing;
    }
    if req.at_end() {
        let starts = qp.state == QpState::Rts && req.outstanding() < req.window.size();
        return if starts { Next::Load } else { Next::Nothing };
    }
    let wqe = req.flight.get(req.cursor.seq);
    if wqe.fault.is_some() || (!wqe.started && !may_start(qp, wqe)) {
        return Next::Nothing;
    }
    if wqe.packets == 0 {
        return Next::Local;
    }
    if offset(req.cursor_psn(), req.una) < req.window.size() { Next::Packet } else { Next::Nothing }
}

/// Whether rules other than the window let a request begin.
fn may_start(qp: &Qp, wqe: &Wqe) -> bool {
    let req = &qp.req;
    // rocev2 facts: in SQD started messages finish, no other begins.
    if qp.state != QpState::Rts {
        return false;
    }
    if matches!(wqe.op, SendOp::LocalInv(_)) {
        return req.flight.head() == req.cursor.seq;
    }
    if wqe.flags.contains(SendFlags::FENCE) && req.rd_atomic > 0 {
        return false;
    }
    if wqe.op.awaits_response() {
        return req.rd_atomic < u32::from(qp.attr.max_rd_atomic)
            && req.outstanding() + wqe.packets <= MAX_OUTSTANDING;
    }
    true
}

/// There may be something to send: a cheap look.
pub(crate) fn may_send(qp: &Qp) -> bool {
    match next(qp) {
        Next::Nothing => false,
        Next::Load => qp.req.flight.has_waiting(),
        Next::Local | Next::Packet => true,
    }
}

/// Sends the next request packet if there is one and rules and window allow; several where they are alike.
pub(crate) fn poll<M: Memory>(
    qp: &mut Qp,
    ctx: &Ctx<'_, M>,
    sink: &mut impl PacketSink,
    turn: &mut Turn,
) -> Poll {
    loop {
        match next(qp) {
            Next::Nothing => return Poll::Idle,
            Next::Load => match load::load(qp, ctx) {
                Loaded::Nothing => return Poll::Idle,
                Loaded::Plain => return plain::send(qp, ctx, sink, turn),
                // The window has room, or nothing would have been loaded.
                Loaded::Ready => return send(qp, ctx, sink),
                Loaded::Taken => {
                    complete::settle(qp, ctx);
                    if qp.req.at_end() {
                        return Poll::Sent(0);
                    }
                }
            },
            Next::Local => {
                local(qp, ctx);
                complete::settle(qp, ctx);
                return Poll::Sent(0);
            }
            Next::Packet => {
                let run = if qp.req.cursor.packet == 0 { None } else { middles::send(qp, ctx, sink, turn) };
                return run.unwrap_or_else(|| send(qp, ctx, sink));
            }
        }
    }
}

fn send<M: Memory>(qp: &mut Qp, ctx: &Ctx<'_, M>, sink: &mut impl PacketSink) -> Poll {
    match request::emit(qp, sink) {
        Ok(emitted) => {
            let waits = qp.req.outstanding() > 0;
            request::sent(qp, ctx.now, &emitted);
            if !qp.qp_type.is_reliable() {
                unanswered::sent(qp, ctx, sink, waits);
            }
            Poll::Sent(emitted.bytes)
        }
        Err(SinkError::Full) => Poll::Full,
        Err(SinkError::RegionGone) => region_gone(qp, ctx),
    }
}

/// The memory of the packet under the cursor is not there any more.
#[cold]
pub(super) fn region_gone<M: Memory>(qp: &mut Qp, ctx: &Ctx<'_, M>) -> Poll {
    let seq = qp.req.cursor.seq;
    qp.req.flight.get_mut(seq).fault = Some(WcStatus::LocProtErr);
    complete::settle(qp, ctx);
    Poll::Idle
}

/// The request under the cursor needs no packet: a LOCAL_INV, all before it being complete, a bind, or what was done before
/// and lies on the way of a repetition.
fn local<M: Memory>(qp: &mut Qp, ctx: &Ctx<'_, M>) {
    let user = qp.key_user();
    let seq = qp.req.cursor.seq;
    let wqe = qp.req.flight.get_mut(seq);
    if !wqe.started {
        let done = match &wqe.op {
            SendOp::LocalInv(rkey) => ctx.keys.invalidate(*rkey, user).map_err(|_| WcStatus::LocQpOpErr),
            SendOp::BindMw(bind) => {
                qp.has_windows |= bind.mw.mw_type() == MwType::Type2;
                ctx.keys.bind(bind, user).map_err(|_| WcStatus::MwBindErr)
            }
            _ => Ok(()),
        };
        match done {
            Ok(()) => wqe.started = true,
            Err(status) => {
                wqe.fault = Some(status);
                return;
            }
        }
    }
    qp.req.cursor.seq = seq.wrapping_add(1);
}
