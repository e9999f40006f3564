//! RC: every request is executed once, in PSN order, and answered.

use super::sequence::Place;
use super::{duplicate, execute, length, operation, plain, refuse, resources, sequence, xrc};
use crate::counters::DropReason;
use crate::fault::Fault;
use crate::memory::Memory;
use crate::packet::RxPacket;
use crate::qp::{Ctx, Qp};
use wire::Operation;

#[inline(always)]
pub(super) fn on_request<M: Memory>(qp: &mut Qp, ctx: &Ctx<'_, M>, packet: &RxPacket<'_>) {
    if qp.resp.outbox.is_final() {
        // A request was refused for good. The QP goes to ERROR as soon as the NAK is out, and what comes
        // after it in the meantime has lost its sense.
        return qp.counters.drop_packet(DropReason::Refused);
    }
    match sequence::place(&qp.resp, packet) {
        Place::Duplicate => duplicate::on_duplicate(qp, packet),
        Place::Ahead => refuse(qp, ctx, packet.frame.bth().psn, Fault::PsnAhead),
        Place::Expected => {
            qp.resp.outbox.expected_arrived();
            if let Err(fault) = request(qp, ctx, packet) {
                refuse(qp, ctx, packet.frame.bth().psn, fault);
            }
        }
    }
}

/// What most requests are is compiled for itself, so that no stage asks again which operation it is.
#[inline(always)]
fn request<M: Memory>(qp: &mut Qp, ctx: &Ctx<'_, M>, packet: &RxPacket<'_>) -> Result<(), Fault> {
    match packet.frame.info.base() {
        Operation::Write => stages(qp, ctx, packet, Operation::Write),
        Operation::Send if plain::send(qp, ctx, packet) => Ok(()),
        Operation::Send => stages(qp, ctx, packet, Operation::Send),
        other => stages(qp, ctx, packet, other),
    }
}

/// The stages of a request whose turn it is. Until `execute` nothing but the receive's being taken has
/// changed.
#[inline(always)]
fn stages<M: Memory>(
    qp: &mut Qp,
    ctx: &Ctx<'_, M>,
    packet: &RxPacket<'_>,
    operation: Operation,
) -> Result<(), Fault> {
    sequence::opcode(&qp.resp, packet)?;
    operation::allowed(qp, packet, operation)?;
    xrc::select(qp, ctx, packet)?;
    resources::take(qp, ctx, packet, operation)?;
    length::check(qp, packet, operation)?;
    let psns = execute::execute(qp, ctx, packet, operation)?;
    execute::advance(qp, packet, psns);
    execute::complete(qp, ctx, packet);
    execute::acknowledge(qp, packet);
    Ok(())
}
