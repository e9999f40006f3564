//! Responses on their way out: ACKs, NAKs, READ responses and atomic ACKs, in PSN order.

use super::{Ctx, Poll, Qp};
use crate::memory::Memory;
use crate::packet::PacketSink;

/// Sends the next response packet.
pub(crate) fn poll<M: Memory>(qp: &mut Qp, ctx: &Ctx<'_, M>, sink: &mut impl PacketSink) -> Poll {
    let _ = (qp, ctx, sink);
    Poll::Idle
}
