//! Requests that were executed before (rocev2 facts, transport section 9). Nothing is executed twice, and
//! nothing that is wrong with a duplicate is told.

use super::length;
use crate::counters::{Counter, DropReason};
use crate::packet::RxPacket;
use crate::qp::Qp;
use wire::{Operation, Reth};

pub(super) fn on_duplicate(qp: &mut Qp, packet: &RxPacket<'_>) {
    qp.counters.count(Counter::DuplicateRequest);
    let (frame, mtu) = (packet.frame, qp.attr.path_mtu);
    let answered = length::of_packet(qp, packet, mtu).is_ok()
        && match frame.info.base() {
            // An ACK of all that is done, asked for or not: the peer may have missed the one it had.
            Operation::Send | Operation::Write => {
                qp.resp.outbox.ask_ack();
                true
            }
            Operation::ReadRequest => read(qp, packet),
            // rocev2 facts, transport 9: answered again, not executed (FLUSH and ATOMIC WRITE [1: rxe]).
            Operation::CompareSwap | Operation::FetchAdd | Operation::Flush | Operation::AtomicWrite => {
                qp.resp.slots.repeat_single(frame.bth().psn, frame.info.opcode)
            }
            _ => false,
        };
    if !answered {
        qp.counters.drop_packet(DropReason::UnknownDuplicate);
    }
}

/// A READ is executed again. Its key is checked with each response, as the first time.
fn read(qp: &mut Qp, packet: &RxPacket<'_>) -> bool {
    let reth = packet.frame.ext::<Reth>(packet.head);
    reth.is_some_and(|reth| qp.resp.slots.repeat_read(packet.frame.bth().psn, reth, qp.attr.path_mtu))
}
