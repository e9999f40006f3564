//! Where a request stands: by its PSN, and by its opcode (rocev2 facts, transport sections 1 and 6).

use super::Responder;
use crate::fault::Fault;
use crate::packet::RxPacket;
use std::cmp::Ordering;

/// A request by its PSN.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// It is the next one.
    Expected,
    /// It was executed before: the half of the PSN space before the expected one.
    Duplicate,
    /// Something before it is missing: the other half.
    Ahead,
}

#[inline(always)]
pub(super) fn place(resp: &Responder, packet: &RxPacket<'_>) -> Place {
    match packet.frame.bth().psn.distance_from(resp.expected).cmp(&0) {
        Ordering::Equal => Place::Expected,
        Ordering::Less => Place::Duplicate,
        Ordering::Greater => Place::Ahead,
    }
}

/// Inside a message only its own Middle or Last may come, outside only a beginning; SEND and WRITE do not
/// mix.
#[inline(always)]
pub(super) fn opcode(resp: &Responder, packet: &RxPacket<'_>) -> Result<(), Fault> {
    if packet.frame.info.may_come(resp.standing) { Ok(()) } else { Err(Fault::OpcodeSequence) }
}
