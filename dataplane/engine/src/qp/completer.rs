//! The completer: what an arriving response (ACK, NAK, READ response, atomic ACK) completes.

use super::{Ctx, Qp};
use crate::memory::Memory;
use crate::packet::RxPacket;

/// A response that was admitted.
pub(crate) fn on_response<M: Memory>(qp: &mut Qp, ctx: &Ctx<'_, M>, packet: &RxPacket<'_>) {
    let _ = (qp, ctx, packet);
}
