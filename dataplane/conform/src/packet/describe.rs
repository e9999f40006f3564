//! Packets in words.

use super::QpContext;
use super::matcher::Arrived;
use crate::script::Field;
use wire::{Frame, NakCode, Psn, Syndrome};

/// A frame in one line: what it is and all that a reader of a script wants to know of it.
pub fn describe(bytes: &[u8]) -> String {
    words(bytes, None)
}

/// The same, with PSNs also as a script counts them.
pub(crate) fn words(bytes: &[u8], first: Option<Psn>) -> String {
    let frame = match Frame::parse(bytes, bytes.len()) {
        Ok(frame) => frame,
        Err(why) => return format!("{} bytes that are no good packet: {why}", bytes.len()),
    };
    let arrived = Arrived { frame, bytes };
    let bth = &frame.bth();
    let psn = match first {
        Some(first) => format!("{:+} ({})", bth.psn.distance_from(first), bth.psn),
        None => bth.psn.to_string(),
    };
    let mut words = format!("{} to {} PSN {psn}", frame.info, bth.dest_qpn);
    if bth.ack_req {
        words += " AckReq";
    }
    if bth.solicited {
        words += " SE";
    }
    for (field, name) in Field::all() {
        if let Some(value) = arrived.value(field).filter(|_| is_told(field)) {
            match field {
                Field::Syndrome => words += &syndrome(value as u8),
                Field::Len => words += &format!(" len {value}"),
                _ => words += &format!(" {name} {value:#x}"),
            }
        }
    }
    if !arrived.payload().is_empty() {
        words += &format!(" {} bytes", arrived.payload().len());
    }
    if frame.verify_icrc(bytes, [bytes]).is_err() {
        words += " (iCRC wrong)";
    }
    words
}

/// Fields of extension headers; those of the BTH are told otherwise.
fn is_told(field: Field) -> bool {
    use Field::{
        Compare, Imm, Inv, Len, Msn, Original, Plt, QKey, RKey, Sel, SrcQp, Srqn, Swap, Syndrome, Va,
    };
    matches!(
        field,
        Va | RKey
            | Len
            | Imm
            | Inv
            | QKey
            | SrcQp
            | Swap
            | Compare
            | Original
            | Syndrome
            | Msn
            | Srqn
            | Plt
            | Sel
    )
}

fn syndrome(byte: u8) -> String {
    match Syndrome::from_byte(byte) {
        Syndrome::Ack { credits: 31 } => " ACK".into(),
        Syndrome::Ack { credits } => format!(" ACK, credit code {credits},"),
        Syndrome::RnrNak { timer } => format!(" RNR NAK, timer code {timer},"),
        Syndrome::Nak(NakCode::PsnSequence) => " NAK sequence error".into(),
        Syndrome::Nak(NakCode::InvalidRequest) => " NAK invalid request".into(),
        Syndrome::Nak(NakCode::RemoteAccess) => " NAK remote access error".into(),
        Syndrome::Nak(NakCode::RemoteOperational) => " NAK remote operational error".into(),
        Syndrome::Nak(NakCode::InvalidRdRequest) => " NAK invalid RD request".into(),
        Syndrome::Reserved(byte) => format!(" reserved syndrome {byte:#04x}"),
    }
}

/// The first PSN that a packet's is counted from, by who sent it.
pub(crate) fn first_of(bytes: &[u8], from_device: bool, qp: &QpContext) -> Option<Psn> {
    let frame = Frame::parse(bytes, bytes.len()).ok()?;
    // Requests of one end and answers of the other share a count.
    Some(if frame.info.is_response() == from_device { qp.peer_psn } else { qp.device_psn })
}
