//! What a request occupies: a receive, or a READ/atomic slot (FLUSH and ATOMIC WRITE, too).

use super::xrc;
use crate::fault::Fault;
use crate::memory::Memory;
use crate::packet::RxPacket;
use crate::qp::{Ctx, Qp};
use wire::Operation;

/// rocev2 facts, wire 7: a SEND takes its receive at its first packet, a WRITE with Immediate at the packet
/// that carries the immediate. READs and atomics share the slots.
#[inline(always)]
pub(super) fn take<M: Memory>(
    qp: &mut Qp,
    ctx: &Ctx<'_, M>,
    packet: &RxPacket<'_>,
    operation: Operation,
) -> Result<(), Fault> {
    match operation {
        Operation::ReadRequest
        | Operation::CompareSwap
        | Operation::FetchAdd
        | Operation::Flush
        | Operation::AtomicWrite
            if !qp.resp.slots.has_room() =>
        {
            Err(Fault::TooManyRdAtomic)
        }
        _ if !packet.frame.info.takes_receive_wqe() => Ok(()),
        _ => {
            receive(qp, ctx)?;
            // A WRITE with Immediate places nothing in the receive's own memory.
            if operation == Operation::Send { qp.resp.receive.usable() } else { Ok(()) }
        }
    }
}

/// Takes a receive, unless a broken message has left one: of the QP's own, of its SRQ, or of the one that the request names.
pub(super) fn receive<M: Memory>(qp: &mut Qp, ctx: &Ctx<'_, M>) -> Result<(), Fault> {
    match &mut qp.rq {
        Some(own) => qp.resp.receive.take(own, ctx.keys, qp.pd),
        None => {
            let queue = xrc::queue(&qp.shared, ctx, qp.resp.srqn)?;
            qp.resp.receive.take_shared(queue, ctx, qp.pd)
        }
    }
}
