//! Faults that a responder finds in a request, and what follows from each: one exhaustive table.
//!
//! rocev2 facts, transport section 11. UC drops whatever RC would NAK; the table's answers are RC's.

use crate::counters::{Counter, DropReason};
use crate::event::EventKind;
use crate::mr::KeyFault;
use crate::status::WcStatus;
use wire::NakCode;

/// What is wrong with a request. The number is the `vendor_err` of the completion.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum Fault {
    /// The packet is ahead of the expected PSN.
    PsnAhead = 1,
    /// No receive is posted.
    NoReceive = 2,
    /// First/Middle/Last/Only out of order, or SEND and WRITE mixed in one message.
    OpcodeSequence = 3,
    /// The opcode is reserved or not offered.
    OpcodeUnsupported = 4,
    /// The QP's access flags do not allow the operation.
    OperationNotEnabled = 5,
    /// The payload does not have the length its position asks for.
    PacketLength = 6,
    /// The payloads do not add up to the RETH length.
    RethLength = 7,
    /// A RETH length above 2^31.
    RethTooLong = 8,
    /// A SEND longer than its receive.
    ReceiveTooShort = 9,
    /// More READs and atomics than agreed.
    TooManyRdAtomic = 10,
    /// An atomic address that is not 8-byte aligned.
    AtomicMisaligned = 11,
    /// R_Key unknown, of another PD, without the right, or out of range.
    RemoteAccess = 12,
    /// The receive's own memory is not usable.
    ReceiveUnusable = 13,
    /// SEND with Invalidate names a key that cannot be invalidated.
    InvalidateRefused = 14,
    /// The CQ has no room.
    CqFull = 15,
}

/// What goes on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// NAK with this code.
    Nak(NakCode),
    /// RNR NAK with the QP's timer.
    Rnr,
    /// Nothing.
    Silence,
}

/// One row of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FaultRow {
    /// The answer on RC.
    pub answer: Answer,
    /// The QP goes to ERROR once the answer is on its way.
    pub fatal: bool,
    /// Status of the receive completion if the message had taken a receive.
    pub receive_status: WcStatus,
    /// Event when there is no receive completion to tell it.
    pub event: Option<EventKind>,
    /// The counter of the fault.
    pub counter: Counter,
    /// UC: the drop reason.
    pub uc_drop: DropReason,
}

impl Fault {
    /// Every fault.
    pub const ALL: [Fault; 15] = [
        Fault::PsnAhead,
        Fault::NoReceive,
        Fault::OpcodeSequence,
        Fault::OpcodeUnsupported,
        Fault::OperationNotEnabled,
        Fault::PacketLength,
        Fault::RethLength,
        Fault::RethTooLong,
        Fault::ReceiveTooShort,
        Fault::TooManyRdAtomic,
        Fault::AtomicMisaligned,
        Fault::RemoteAccess,
        Fault::ReceiveUnusable,
        Fault::InvalidateRefused,
        Fault::CqFull,
    ];

    /// What follows from the fault.
    pub fn row(self) -> FaultRow {
        use Counter as C;
        use DropReason as D;
        let retried = |answer, counter, uc_drop| FaultRow {
            answer,
            fatal: false,
            receive_status: WcStatus::RemInvReqErr,
            event: None,
            counter,
            uc_drop,
        };
        let fatal = |answer, receive_status, event, counter, uc_drop| FaultRow {
            answer,
            fatal: true,
            receive_status,
            event: Some(event),
            counter,
            uc_drop,
        };
        let invalid = |uc_drop| {
            let nak = Answer::Nak(NakCode::InvalidRequest);
            fatal(nak, WcStatus::RemInvReqErr, EventKind::QpReqErr, C::RespRemoteInvalidRequest, uc_drop)
        };
        match self {
            Fault::PsnAhead => retried(Answer::Nak(NakCode::PsnSequence), C::OutOfSequence, D::UcBroken),
            Fault::NoReceive => retried(Answer::Rnr, C::OutOfBuffer, D::NoReceive),
            Fault::OpcodeSequence => invalid(D::UcBroken),
            Fault::OpcodeUnsupported
            | Fault::OperationNotEnabled
            | Fault::PacketLength
            | Fault::RethLength
            | Fault::RethTooLong
            | Fault::TooManyRdAtomic
            | Fault::AtomicMisaligned => invalid(D::UcInvalid),
            Fault::ReceiveTooShort => fatal(
                Answer::Nak(NakCode::InvalidRequest),
                WcStatus::LocLenErr,
                EventKind::QpReqErr,
                C::RespLocalLengthError,
                D::ReceiveUnusable,
            ),
            Fault::RemoteAccess => fatal(
                Answer::Nak(NakCode::RemoteAccess),
                WcStatus::RemAccessErr,
                EventKind::QpAccessErr,
                C::RespRemoteAccessErrors,
                D::UcAccess,
            ),
            Fault::ReceiveUnusable => fatal(
                Answer::Nak(NakCode::RemoteOperational),
                WcStatus::LocProtErr,
                EventKind::QpFatal,
                C::RespLocalOperationError,
                D::ReceiveUnusable,
            ),
            // The facts know two behaviours (rxe acknowledges and then fails, hfi1 ignores the key). A NAK tells the
            // peer what happened, which neither does; see docs/spec-coverage.md.
            Fault::InvalidateRefused => fatal(
                Answer::Nak(NakCode::RemoteAccess),
                WcStatus::RemInvReqErr,
                EventKind::QpAccessErr,
                C::RespRemoteAccessErrors,
                D::UcAccess,
            ),
            Fault::CqFull => fatal(
                Answer::Silence,
                WcStatus::GeneralErr,
                EventKind::QpFatal,
                C::CqOverflow,
                D::ReceiveUnusable,
            ),
        }
    }
}

impl From<KeyFault> for Fault {
    fn from(_: KeyFault) -> Self {
        Fault::RemoteAccess
    }
}
