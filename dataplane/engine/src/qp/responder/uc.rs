//! UC: PSNs tell about loss, and nothing is answered (rocev2 facts, transport section 19).
//!
//! A message that lost a packet or has a fault is dropped as a whole: what is written stays written, a
//! receive it had taken waits for the next SEND, or completes in error when it is an SRQ's.

use super::refuse::{self, refuse};
use super::{execute, length, operation, resources, sequence};
use crate::counters::Counter;
use crate::fault::Fault;
use crate::memory::Memory;
use crate::packet::RxPacket;
use crate::qp::{Ctx, Qp};
use wire::Standing;

pub(super) fn on_request<M: Memory>(qp: &mut Qp, ctx: &Ctx<'_, M>, packet: &RxPacket<'_>) {
    if let Err(fault) = request(qp, ctx, packet) {
        let psn = packet.frame.bth().psn;
        // Its Middles and its Last will be dropped, too: nothing may follow but a beginning.
        qp.resp.standing = Standing::BETWEEN;
        qp.resp.expected = psn.next();
        refuse(qp, ctx, psn, fault);
    }
}

fn request<M: Memory>(qp: &mut Qp, ctx: &Ctx<'_, M>, packet: &RxPacket<'_>) -> Result<(), Fault> {
    place(qp, ctx, packet)?;
    let operation = packet.frame.info.base();
    sequence::opcode(&qp.resp, packet)?;
    operation::allowed(qp, packet, operation)?;
    resources::take(qp, ctx, packet, operation)?;
    length::check(qp, packet, operation)?;
    let psns = execute::execute(qp, ctx, packet, operation)?;
    execute::advance(qp, packet, psns);
    execute::complete(qp, ctx, packet);
    Ok(())
}

/// A beginning is taken with any PSN and ends what was under way; a Middle or Last has the next PSN or
/// nothing to belong to. Either way the stream goes on behind this packet.
fn place<M: Memory>(qp: &mut Qp, ctx: &Ctx<'_, M>, packet: &RxPacket<'_>) -> Result<(), Fault> {
    let psn = packet.frame.bth().psn;
    let lost = psn != qp.resp.expected;
    qp.resp.expected = psn;
    if packet.frame.info.position.begins() {
        if lost {
            qp.counters.count(Counter::OutOfSequence);
        }
        qp.resp.standing = Standing::BETWEEN;
        refuse::abandon(qp, ctx, Fault::OpcodeSequence);
        return Ok(());
    }
    if lost { Err(Fault::PsnAhead) } else { Ok(()) }
}
