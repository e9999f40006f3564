//! The responder: what an arriving request does.
//!
//! The checks of RC are small functions in the order of rocev2 facts, transport section 6: PSN
//! (`sequence.rs`) → opcode sequence (`sequence.rs`) → operation allowed (`operation.rs`) → resources
//! (`resources.rs`) → length (`length.rs`) → R_Key (`access.rs`) and execute, complete, acknowledge
//! (`execute.rs`). An XRC target does the same and asks first which SRQ a request is for (`xrc.rs`). UC uses the same functions and drops where RC answers (`uc.rs`); UD has its own short way
//! (`ud.rs`). What is answered, and when, is in `respond.rs`.

mod access;
mod duplicate;
mod execute;
mod length;
mod middles;
mod operation;
mod plain;
mod rc;
mod receive;
mod refuse;
mod resources;
mod run;
mod sequence;
mod uc;
mod ud;
mod write;
mod xrc;

pub(super) use middles::execute as execute_middles;
pub(super) use refuse::refuse;
pub use run::runs;
pub(crate) use run::{FIRST_RECEIVES, execute as execute_run};

use super::respond::Outbox;
use super::slots::Slots;
use super::{Ctx, Qp, QpType};
use crate::memory::Memory;
use crate::packet::RxPacket;
use receive::Receive;
use wire::{Msn, Psn, Srqn, Standing};
use write::WriteProgress;

/// The receiving half of a QP. The receive comes last, with the room for its pieces.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Responder {
    /// PSN of the next request (ePSN).
    pub(super) expected: Psn,
    /// Messages completed.
    pub(super) msn: Msn,
    /// The ACK or NAK to be sent.
    pub(super) outbox: Outbox,
    /// What the request before says of what may follow; between messages at the start and after a broken UC message.
    standing: Standing,
    /// READs and atomics: executed, and to be answered.
    pub(super) slots: Slots,
    /// The WRITE under way.
    write: WriteProgress,
    /// XRC: the SRQ that the message is for.
    pub(super) srqn: Srqn,
    /// The receive under way.
    receive: Receive,
}

/// Bytes of what most packets need.
#[cfg(test)]
pub(super) const USUAL_BYTES: usize = std::mem::offset_of!(Responder, receive);

impl Responder {
    /// A responder before its first packet.
    pub fn new() -> Self {
        Responder {
            expected: Psn::default(),
            msn: Msn::default(),
            slots: Slots::default(),
            outbox: Outbox::default(),
            standing: Standing::BETWEEN,
            write: WriteProgress::default(),
            receive: Receive::default(),
            srqn: Srqn::default(),
        }
    }

    /// Starts afresh: expects `rq_psn`, keeps `max_dest_rd_atomic` READs and atomics (INIT → RTR, RESET).
    /// Allocates the slots; no packet allocates after that.
    pub fn reset(&mut self, rq_psn: Psn, max_dest_rd_atomic: u8) {
        *self = Responder { expected: rq_psn, slots: Slots::new(max_dest_rd_atomic), ..Responder::new() };
    }

    /// Keeps `max_dest_rd_atomic` READs and atomics from now on (SQD → SQD). Allocates.
    pub fn resize(&mut self, max_dest_rd_atomic: u8) {
        self.slots.resize(max_dest_rd_atomic);
    }

    /// A response waits to be sent.
    pub fn has_response(&self) -> bool {
        self.slots.has_pending() || self.outbox.has_any()
    }

    /// The receive that a message has taken and not completed, by its `wr_id`: the oldest of all receives of the QP. Its
    /// message goes on nowhere, as the QP is going to ERROR.
    pub fn take_current_receive(&mut self) -> Option<u64> {
        self.receive.release()
    }

    /// Drops all that waits to be sent (the QP left the states in which it answers).
    pub fn discard_responses(&mut self) {
        self.slots.stop();
        self.outbox = Outbox::default();
    }
}

/// A request that was admitted.
#[inline(always)]
pub(crate) fn on_request<M: Memory>(qp: &mut Qp, ctx: &Ctx<'_, M>, packet: &RxPacket<'_>) {
    match qp.qp_type {
        QpType::Rc | QpType::XrcTgt => rc::on_request(qp, ctx, packet),
        QpType::Uc => uc::on_request(qp, ctx, packet),
        QpType::Ud => ud::on_request(qp, ctx, packet),
        // Admission lets none in.
        QpType::XrcIni => {}
    }
}

#[cfg(test)]
mod tests;
