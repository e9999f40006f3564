//! Traces for people: one line a frame, with what its headers say in words.

use crate::tap::Seen;
use std::fmt::Write;
use wire::{Aeth, AtomicAckEth, AtomicEth, Frame, Ieth, ImmDt, NakCode, Reth, Syndrome};

/// Most lines that are printed from the end of a long trace, where failures show.
const MOST: usize = 200;

/// The frames, one a line: time from the beginning in µs, endpoint, direction, packet, and what the link did.
pub fn print_trace(trace: &[Seen]) -> String {
    let mut text = String::new();
    let begin = trace.first().map_or(0, |seen| seen.at);
    if trace.len() > MOST {
        // Writing to a String cannot fail.
        let _ = writeln!(text, "… {} frames before", trace.len() - MOST);
    }
    for seen in &trace[trace.len().saturating_sub(MOST)..] {
        let us = seen.at.saturating_sub(begin) as f64 / 1_000.0;
        let way = if seen.arrived { "<-" } else { "->" };
        let fate = if seen.fate.is_empty() { String::new() } else { format!("   ** {} **", seen.fate) };
        let _ =
            writeln!(text, "{us:12.3} us  host {} {way} {}{fate}", seen.endpoint.0, describe(&seen.frame));
    }
    text
}

/// What a frame says.
pub fn describe(bytes: &[u8]) -> String {
    let frame = match Frame::parse(bytes, bytes.len()) {
        Ok(frame) => frame,
        Err(why) => return format!("{} bytes: {why}", bytes.len()),
    };
    let mut text =
        format!("{:<24} QP {} PSN {}", frame.info.to_string(), frame.bth().dest_qpn, frame.bth().psn);
    let mut add = |words: String| {
        text.push(' ');
        text.push_str(&words);
    };
    if let Some(aeth) = frame.ext::<Aeth>(bytes) {
        add(format!("{} MSN {}", syndrome(aeth.syndrome), aeth.msn));
    }
    if let Some(reth) = frame.ext::<Reth>(bytes) {
        add(format!("VA {:#x} R_Key {} length {}", reth.va, reth.rkey, reth.dma_len));
    }
    if let Some(atomic) = frame.ext::<AtomicEth>(bytes) {
        add(format!(
            "VA {:#x} R_Key {} operands {} {}",
            atomic.va, atomic.rkey, atomic.swap_or_add, atomic.compare
        ));
    }
    if let Some(ack) = frame.ext::<AtomicAckEth>(bytes) {
        add(format!("original {}", ack.original));
    }
    if let Some(ImmDt(imm)) = frame.ext::<ImmDt>(bytes) {
        add(format!("immediate {:#x}", u32::from_be_bytes(imm)));
    }
    if let Some(ieth) = frame.ext::<Ieth>(bytes) {
        add(format!("invalidates {}", ieth.rkey));
    }
    if frame.payload_len() > 0 {
        add(format!("{} bytes", frame.payload_len()));
    }
    if frame.bth().ack_req {
        add("AckReq".into());
    }
    if frame.verify_icrc(bytes, [bytes]).is_err() {
        add("iCRC wrong".into());
    }
    text
}

fn syndrome(syndrome: Syndrome) -> String {
    match syndrome {
        Syndrome::Ack { .. } => "ACK".into(),
        Syndrome::RnrNak { timer } => format!("RNR NAK (wait {} us)", wire::rnr_timer_ns(timer) / 1_000),
        Syndrome::Nak(NakCode::PsnSequence) => "NAK: PSN sequence error".into(),
        Syndrome::Nak(NakCode::InvalidRequest) => "NAK: invalid request".into(),
        Syndrome::Nak(NakCode::RemoteAccess) => "NAK: remote access error".into(),
        Syndrome::Nak(NakCode::RemoteOperational) => "NAK: remote operational error".into(),
        other => format!("{other:?}"),
    }
}
