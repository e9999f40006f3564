//! The plain SEND, as most small messages are: one packet of RC in one piece, into a receive of the QP's own that is one piece of memory
//! and is taken for it.
//!
//! The stages of `rc.rs` ask for all that it asks for. It goes through them as soon as anything is not so, and nothing has changed by then:
//! what is wrong with a packet they tell, here it is only not taken.

use super::{execute, length, sequence};
use crate::access::Access;
use crate::counters::Counter;
use crate::memory::{Memory, Span};
use crate::packet::RxPacket;
use crate::qp::{Ctx, Qp};
use crate::queue::RecvWqe;
use crate::status::{Cqe, WcOpcode, WcStatus};
use crate::wr::Sge;
use wire::{Opcode, Operation, Position, Service};

pub(super) const SEND_ONLY: Option<Opcode> = Opcode::of(Service::Rc, Operation::Send, Position::Only);

/// Executes, completes and acknowledges a SEND whose turn it is, if it is plain; whether it was.
#[inline(always)]
pub(super) fn send<M: Memory>(qp: &mut Qp, ctx: &Ctx<'_, M>, packet: &RxPacket<'_>) -> bool {
    let Some((wr_id, byte_len)) = place(qp, ctx, packet) else { return false };
    qp.counters.count(Counter::RxSendRequests);
    execute::advance(qp, packet, 1);
    let (qpn, solicited) = (qp.qpn, packet.frame.bth().solicited);
    ctx.memory.publish();
    qp.push_received(ctx, || Cqe {
        byte_len,
        solicited,
        ..Cqe::new(wr_id, WcStatus::Success, WcOpcode::Recv, qpn)
    });
    execute::acknowledge(qp, packet);
    true
}

/// Fills and releases the oldest receive: its `wr_id`, and bytes.
#[inline(always)]
fn place<M: Memory>(qp: &mut Qp, ctx: &Ctx<'_, M>, packet: &RxPacket<'_>) -> Option<(u64, u32)> {
    let is_usual = Some(packet.frame.info.opcode) == SEND_ONLY
        && qp.resp.receive.is_free()
        && sequence::opcode(&qp.resp, packet).is_ok()
        && length::is_right(packet.frame, qp.attr.path_mtu);
    let bytes = packet.payload.only_slice().filter(|_| is_usual)?;
    let Qp { rq, pd, .. } = qp;
    let own = rq.as_mut()?;
    let need = Access::LOCAL_WRITE;
    let span = |piece: &Sge| ctx.keys.local(piece.lkey, *pd, piece.addr, piece.len, need).ok();
    let filled = fill(own.peek(0)?, ctx, bytes, span)?;
    own.pass(1);
    Some(filled)
}

/// Fills a receive with these bytes. Its memory is `span`, if the key gives that.
#[inline(always)]
pub(super) fn fill<M: Memory>(
    wqe: &RecvWqe,
    ctx: &Ctx<'_, M>,
    bytes: &[u8],
    span: impl FnOnce(&Sge) -> Option<Span>,
) -> Option<(u64, u32)> {
    let (piece, len) = (wqe.piece()?, bytes.len() as u32);
    ctx.memory.write(span(piece)?.slice(0, len)?, bytes).ok()?;
    Some((wqe.wr_id, len))
}
