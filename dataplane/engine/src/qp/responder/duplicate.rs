//! Requests that were executed before (rocev2 facts, transport section 9). Nothing is executed twice, and nothing that is
//! wrong with a duplicate is told.

use super::length;
use crate::access::Access;
use crate::counters::{Counter, DropReason};
use crate::memory::Memory;
use crate::packet::RxPacket;
use crate::qp::{Ctx, Qp};
use wire::{Operation, Reth};

pub(super) fn on_duplicate<M: Memory>(qp: &mut Qp, ctx: &Ctx<'_, M>, packet: &RxPacket<'_>) {
    qp.counters.count(Counter::DuplicateRequest);
    let frame = packet.frame;
    let answered = length::of_packet(packet, qp.attr.path_mtu).is_ok()
        && match frame.info.operation.base() {
            // An ACK of all that is done, asked for or not: the peer may have missed the one it had.
            Operation::Send | Operation::Write => {
                qp.resp.outbox.ask_ack();
                true
            }
            Operation::ReadRequest => read(qp, ctx, packet),
            Operation::CompareSwap | Operation::FetchAdd => {
                qp.resp.slots.repeat_atomic(frame.bth.psn, frame.info.opcode)
            }
            _ => false,
        };
    if !answered {
        qp.counters.drop_packet(DropReason::UnknownDuplicate);
    }
}

/// A READ is executed again, so its key is checked again, too.
fn read<M: Memory>(qp: &mut Qp, ctx: &Ctx<'_, M>, packet: &RxPacket<'_>) -> bool {
    let Some(reth) = packet.frame.ext::<Reth>(packet.head) else { return false };
    let allowed = reth.dma_len == 0
        || ctx.keys.remote(reth.rkey, qp.pd, reth.va, reth.dma_len, Access::REMOTE_READ).is_ok();
    allowed && qp.resp.slots.repeat_read(packet.frame.bth.psn, reth, qp.attr.path_mtu)
}
