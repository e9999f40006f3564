//! Faults that a responder finds in a request, and what follows from each: one exhaustive table.
//!
//! rocev2 facts, transport section 11 for RC, 19 and 20 for UC and UD, which drop where RC answers. A CQ
//! without room is no fault of a request, see `qp/complete.rs`.

use crate::counters::{Counter, DropReason};
use crate::event::EventKind;
use crate::memory::{PlaceError, RegionGone};
use crate::mr::KeyFault;
use crate::qp::QpType;
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
    /// The opcode is reserved or not offered, or a FLUSH asks for what no FLUSH does.
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
    /// A FLUSH could not make memory persistent that can be.
    FlushFailed = 15,
    /// XRC: the number names no SRQ of the QP\'s domain, or another one than at the beginning of the message.
    XrcSrq = 16,
    /// The payload is not what its sender has summed: as if the packet had been lost.
    Spoilt = 17,
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

/// What follows from a fault on one service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FaultRow {
    /// What the peer is told.
    pub answer: Answer,
    /// The QP goes to ERROR once the answer is on its way.
    pub fatal: bool,
    /// Status of the receive completion if the message had taken a receive: when the fault is fatal, and on UC and UD when it was
    /// an SRQ's.
    pub receive_status: WcStatus,
    /// Fatal: the event when there is no receive completion to tell it.
    pub event: EventKind,
    /// The counter of the fault.
    pub counter: Counter,
    /// What the packet is counted as.
    pub drop: DropReason,
}

/// One fault: what RC does, and what UC and UD count.
struct Row {
    fault: Fault,
    answer: Answer,
    receive_status: WcStatus,
    event: EventKind,
    counter: Counter,
    unreliable_drop: DropReason,
}

#[rustfmt::skip]
const ROWS: [Row; Fault::ALL.len()] = {
    use Counter as C;
    use DropReason as D;
    use EventKind::{QpAccessErr as AccessErr, QpFatal as Fatal, QpReqErr as ReqErr};
    use WcStatus::{LocLenErr, LocProtErr, RemAccessErr, RemInvReqErr};
    const SEQUENCE: Answer = Answer::Nak(NakCode::PsnSequence);
    const INVALID: Answer = Answer::Nak(NakCode::InvalidRequest);
    const ACCESS: Answer = Answer::Nak(NakCode::RemoteAccess);
    const OPERATIONAL: Answer = Answer::Nak(NakCode::RemoteOperational);
    const fn row(
        fault: Fault, answer: Answer, receive_status: WcStatus, event: EventKind, counter: Counter,
        unreliable_drop: DropReason,
    ) -> Row {
        Row { fault, answer, receive_status, event, counter, unreliable_drop }
    }
    [
        // Retried by the peer: the event is never asked for, the status on UC with an SRQ only.
        row(Fault::PsnAhead,            SEQUENCE,    RemInvReqErr, ReqErr,    C::OutOfSequence,            D::UcBroken),
        row(Fault::NoReceive,           Answer::Rnr, RemInvReqErr, ReqErr,    C::OutOfBuffer,              D::NoReceive),
        row(Fault::OpcodeSequence,      INVALID,     RemInvReqErr, ReqErr,    C::RespRemoteInvalidRequest, D::UcBroken),
        row(Fault::OpcodeUnsupported,   INVALID,     RemInvReqErr, ReqErr,    C::RespRemoteInvalidRequest, D::InvalidRequest),
        row(Fault::OperationNotEnabled, INVALID,     RemInvReqErr, ReqErr,    C::RespRemoteInvalidRequest, D::InvalidRequest),
        row(Fault::PacketLength,        INVALID,     RemInvReqErr, ReqErr,    C::RespRemoteInvalidRequest, D::InvalidRequest),
        row(Fault::RethLength,          INVALID,     RemInvReqErr, ReqErr,    C::RespRemoteInvalidRequest, D::InvalidRequest),
        row(Fault::RethTooLong,         INVALID,     RemInvReqErr, ReqErr,    C::RespRemoteInvalidRequest, D::InvalidRequest),
        row(Fault::ReceiveTooShort,     INVALID,     LocLenErr,    ReqErr,    C::RespLocalLengthError,     D::ReceiveUnusable),
        row(Fault::TooManyRdAtomic,     INVALID,     RemInvReqErr, ReqErr,    C::RespRemoteInvalidRequest, D::InvalidRequest),
        row(Fault::AtomicMisaligned,    INVALID,     RemInvReqErr, ReqErr,    C::RespRemoteInvalidRequest, D::InvalidRequest),
        row(Fault::RemoteAccess,        ACCESS,      RemAccessErr, AccessErr, C::RespRemoteAccessErrors,   D::UcAccess),
        row(Fault::ReceiveUnusable,     OPERATIONAL, LocProtErr,   Fatal,     C::RespLocalOperationError,  D::ReceiveUnusable),
        // The facts know two behaviours (rxe acknowledges and then fails, hfi1 ignores the key). A NAK tells
        // the peer what happened, which neither does; see docs/spec-coverage.md.
        row(Fault::InvalidateRefused,   ACCESS,      RemInvReqErr, AccessErr, C::RespRemoteAccessErrors,   D::UcAccess),
        // Our own storage failed: class A, as a receive that cannot be written [?]. On RC only, as FLUSH is.
        row(Fault::FlushFailed,         OPERATIONAL, LocProtErr,   Fatal,     C::RespLocalOperationError,  D::InvalidRequest),
        // The facts do not say; an invalid request, as other numbers are that name nothing the QP offers [?].
        row(Fault::XrcSrq,              INVALID,     RemInvReqErr, ReqErr,    C::RespRemoteInvalidRequest, D::InvalidRequest),
        // Found later than other wrong iCRCs, and treated like them: nothing is said, and what is behind it tells the peer.
        row(Fault::Spoilt,              Answer::Silence, RemInvReqErr, ReqErr, C::BadIcrc,                 D::Spoilt),
    ]
};

impl Fault {
    /// Every fault, in the order of the numbers.
    pub const ALL: [Fault; 17] = [
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
        Fault::FlushFailed,
        Fault::XrcSrq,
        Fault::Spoilt,
    ];

    /// What follows from the fault on a QP of this type.
    pub fn row(self, service: QpType) -> FaultRow {
        let row = &ROWS[self as usize - 1];
        debug_assert!(row.fault == self, "the rows are in the order of the numbers");
        let reliable = service.is_reliable();
        let answer = if reliable { row.answer } else { Answer::Silence };
        let drop = match row.answer {
            _ if !reliable => row.unreliable_drop,
            Answer::Silence => row.unreliable_drop,
            Answer::Rnr => DropReason::ReceiverNotReady,
            Answer::Nak(NakCode::PsnSequence) => DropReason::AheadOfSequence,
            _ => DropReason::Refused,
        };
        // A receive that cannot be written is our own side's fault, fatal on every service (class A, as rxe
        // has it). What else UC and UD find, they drop.
        let fatal = match row.answer {
            Answer::Nak(NakCode::PsnSequence) | Answer::Rnr | Answer::Silence => false,
            Answer::Nak(code) => reliable || code == NakCode::RemoteOperational,
        };
        let Row { receive_status, event, counter, .. } = *row;
        FaultRow { answer, fatal, receive_status, event, counter, drop }
    }
}

impl PlaceError {
    /// What it is a fault of, if that is where the payload belongs.
    pub(crate) fn fault(self, gone: Fault) -> Fault {
        match self {
            PlaceError::Gone(RegionGone) => gone,
            PlaceError::Spoilt => Fault::Spoilt,
        }
    }
}

impl From<KeyFault> for Fault {
    fn from(_: KeyFault) -> Self {
        Fault::RemoteAccess
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fmt::Write;

    /// The whole table: whoever changes a row sees here what changes for whom. In each line: the fault; RC's
    /// answer, with a `!` when it ends the QP; the status of the receive or the event; RC's counter; what UC
    /// and UD do.
    #[test]
    fn the_table_is_as_agreed() {
        let mut table = String::new();
        for fault in Fault::ALL {
            let [rc, uc, ud] = [QpType::Rc, QpType::Uc, QpType::Ud].map(|service| fault.row(service));
            assert_eq!(uc, ud);
            assert_eq!(uc.answer, Answer::Silence);
            let answer = match rc.answer {
                Answer::Nak(code) => format!("{:#04x}", 0x60 + code as u8),
                Answer::Rnr => "RNR".into(),
                Answer::Silence => "-".into(),
            };
            let end = |row: FaultRow| match row.fatal {
                true => format!("! {:?}/{:?}", row.receive_status, row.event),
                false => String::new(),
            };
            writeln!(
                table,
                "{:2} {fault:?}: {answer}{} {} {} | {}{}",
                fault as u32,
                end(rc),
                rc.counter.name(),
                rc.drop.name(),
                uc.drop.name(),
                end(uc)
            )
            .unwrap();
        }
        assert_eq!(table, AGREED.trim_start_matches('\n'));
    }

    const AGREED: &str = "
 1 PsnAhead: 0x60 out_of_sequence drop_ahead_of_sequence | drop_uc_broken_message
 2 NoReceive: RNR out_of_buffer drop_receiver_not_ready | drop_no_receive
 3 OpcodeSequence: 0x61! RemInvReqErr/QpReqErr resp_remote_invalid_request drop_refused | drop_uc_broken_message
 4 OpcodeUnsupported: 0x61! RemInvReqErr/QpReqErr resp_remote_invalid_request drop_refused | drop_invalid_request
 5 OperationNotEnabled: 0x61! RemInvReqErr/QpReqErr resp_remote_invalid_request drop_refused | drop_invalid_request
 6 PacketLength: 0x61! RemInvReqErr/QpReqErr resp_remote_invalid_request drop_refused | drop_invalid_request
 7 RethLength: 0x61! RemInvReqErr/QpReqErr resp_remote_invalid_request drop_refused | drop_invalid_request
 8 RethTooLong: 0x61! RemInvReqErr/QpReqErr resp_remote_invalid_request drop_refused | drop_invalid_request
 9 ReceiveTooShort: 0x61! LocLenErr/QpReqErr resp_local_length_error drop_refused | drop_receive_unusable
10 TooManyRdAtomic: 0x61! RemInvReqErr/QpReqErr resp_remote_invalid_request drop_refused | drop_invalid_request
11 AtomicMisaligned: 0x61! RemInvReqErr/QpReqErr resp_remote_invalid_request drop_refused | drop_invalid_request
12 RemoteAccess: 0x62! RemAccessErr/QpAccessErr resp_remote_access_errors drop_refused | drop_uc_access
13 ReceiveUnusable: 0x63! LocProtErr/QpFatal resp_local_operation_error drop_refused | drop_receive_unusable! LocProtErr/QpFatal
14 InvalidateRefused: 0x62! RemInvReqErr/QpAccessErr resp_remote_access_errors drop_refused | drop_uc_access
15 FlushFailed: 0x63! LocProtErr/QpFatal resp_local_operation_error drop_refused | drop_invalid_request! LocProtErr/QpFatal
16 XrcSrq: 0x61! RemInvReqErr/QpReqErr resp_remote_invalid_request drop_refused | drop_invalid_request
17 Spoilt: - rx_icrc_encapsulated drop_spoilt_payload | drop_spoilt_payload
";

    #[test]
    fn every_row_stands_at_its_number() {
        for (i, (fault, row)) in Fault::ALL.iter().zip(&ROWS).enumerate() {
            assert_eq!((*fault as usize, row.fault), (i + 1, *fault));
        }
    }

    #[test]
    fn a_key_fault_is_a_remote_access_fault() {
        for fault in [KeyFault::Unknown, KeyFault::WrongPd, KeyFault::Access, KeyFault::Range] {
            assert_eq!(Fault::from(fault), Fault::RemoteAccess);
        }
    }
}
