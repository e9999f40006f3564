//! Whether the QP offers the operation and its access flags allow it.

use crate::access::Access;
use crate::fault::Fault;
use crate::packet::RxPacket;
use crate::placement::{FlushLevel, Placement, from_feth};
use crate::qp::Qp;
use wire::{Feth, Operation};

/// What an ATOMIC WRITE takes, of the QP and of the key: the facts do not name it [?]. It is a WRITE.
pub(super) const ATOMIC_WRITE_RIGHT: Access = Access::REMOTE_WRITE;

/// What a FLUSH asks for. One that asks for what no FLUSH does is like an operation that does not exist.
pub(super) fn flush(packet: &RxPacket<'_>) -> Result<(Placement, FlushLevel), Fault> {
    let feth = packet.frame.ext::<Feth>(packet.head).ok_or(Fault::PacketLength)?;
    from_feth(feth).ok_or(Fault::OpcodeUnsupported)
}

/// rocev2 facts, transport 6: a right that the QP does not give is an invalid request, not an access error.
/// It is asked for at every packet and whatever the length.
#[inline(always)]
pub(super) fn allowed(qp: &Qp, packet: &RxPacket<'_>, operation: Operation) -> Result<(), Fault> {
    let right = match operation {
        Operation::Send => Access::empty(),
        Operation::Write => Access::REMOTE_WRITE,
        Operation::ReadRequest => Access::REMOTE_READ,
        Operation::CompareSwap | Operation::FetchAdd => Access::REMOTE_ATOMIC,
        Operation::AtomicWrite => ATOMIC_WRITE_RIGHT,
        Operation::Flush => flush(packet)?.0.rights(),
        // The rest is not for RC or no request.
        _ => return Err(Fault::OpcodeUnsupported),
    };
    if qp.attr.access.contains(right) { Ok(()) } else { Err(Fault::OperationNotEnabled) }
}
