//! Middles of a long message that follow one another in a [run](wire::Run), with payloads that the memory holds.

use super::{Ctx, Qp, completer, responder};
use crate::memory::Memory;
use wire::{Frame, Opcode, OpcodeInfo, Operation, Position, Service};

const SEND: Option<Opcode> = Opcode::of(Service::Rc, Operation::Send, Position::Middle);
const WRITE: Option<Opcode> = Opcode::of(Service::Rc, Operation::Write, Position::Middle);
const UC_SEND: Option<Opcode> = Opcode::of(Service::Uc, Operation::Send, Position::Middle);
const UC_WRITE: Option<Opcode> = Opcode::of(Service::Uc, Operation::Write, Position::Middle);
const READ_RESPONSE: Option<Opcode> = Opcode::of(Service::Rc, Operation::ReadResponse, Position::Middle);

/// Whether packets that follow one of this kind may be executed with it, if the memory holds their payloads.
#[inline(always)]
pub fn runs(info: &OpcodeInfo) -> bool {
    let opcode = Some(info.opcode);
    opcode == WRITE || opcode == READ_RESPONSE || opcode == SEND || opcode == UC_WRITE || opcode == UC_SEND
}

/// Executes packets that follow `first`, which was delivered: `hold` has the memory hold the next one's payload and gives the last four bytes
/// of its BTH. How many it were; the rest is to be delivered as any.
#[inline(always)]
pub(crate) fn execute<M: Memory>(
    qp: &mut Qp,
    ctx: &Ctx<'_, M>,
    first: &Frame,
    hold: impl FnMut() -> Option<[u8; 4]>,
) -> u32 {
    let opcode = Some(first.info.opcode);
    if opcode == READ_RESPONSE {
        completer::take_read_middles(qp, ctx, first, hold)
    } else if runs(first.info) {
        responder::execute_middles(qp, ctx, first, hold)
    } else {
        0
    }
}
