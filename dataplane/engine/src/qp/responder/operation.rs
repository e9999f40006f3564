//! Whether the QP offers the operation and its access flags allow it.

use crate::access::Access;
use crate::fault::Fault;
use crate::packet::RxPacket;
use crate::qp::Qp;
use wire::Operation;

/// rocev2 facts, transport 6: a right that the QP does not give is an invalid request, not an access error.
/// It is asked for at every packet and whatever the length.
pub(super) fn allowed(qp: &Qp, packet: &RxPacket<'_>) -> Result<(), Fault> {
    let right = match packet.frame.info.operation.base() {
        Operation::Send => Access::empty(),
        Operation::Write => Access::REMOTE_WRITE,
        Operation::ReadRequest => Access::REMOTE_READ,
        Operation::CompareSwap | Operation::FetchAdd => Access::REMOTE_ATOMIC,
        // FLUSH and ATOMIC WRITE exist but are not offered; the rest is not for RC or no request.
        _ => return Err(Fault::OpcodeUnsupported),
    };
    if qp.attr.access.contains(right) { Ok(()) } else { Err(Fault::OperationNotEnabled) }
}
