//! A frame under judgement.

use crate::report::Report;
use crate::{Note, Rule, Violation};
use std::fmt::Arguments;
use wire::{ExtHeader, Frame, Gid, Icrc, Network, Psn, Qpn};

/// A RoCE packet, with all that rules ask of it, and where to tell what it breaks.
pub struct Packet<'a> {
    pub frame: &'a Frame,
    /// The bytes that were captured.
    pub bytes: &'a [u8],
    /// Number of the frame in the capture.
    pub number: u64,
    pub time_ns: u64,
    pub report: &'a mut Report,
}

impl Packet<'_> {
    pub fn ext<H: ExtHeader>(&self) -> Option<H> {
        self.frame.ext(self.bytes)
    }

    pub fn psn(&self) -> Psn {
        self.frame.bth().psn
    }

    /// Payload without pad, in bytes.
    pub fn len(&self) -> u32 {
        self.frame.payload_len() as u32
    }

    /// The iCRC as it stands in the frame: with the same PSN it tells the same frame, for it covers the identification.
    pub fn icrc(&self) -> Option<u32> {
        let bytes = self.bytes.get(self.frame.icrc_offset()..)?.first_chunk()?;
        Some(u32::from_be_bytes(*bytes))
    }

    /// A checksum of what makes the request: opcode, SE, pad, extension headers and payload. `None` for a frame that was cut.
    pub fn digest(&self) -> Option<u32> {
        let bth = self.frame.bth_offset();
        let [opcode, flags] = [self.frame.bth().opcode.0, self.bytes[bth + 1] & 0xB0];
        let content = self.bytes.get(bth + wire::Bth::LEN..self.frame.icrc_offset())?;
        // The iCRC's generator is a CRC-32 like any other; over something else than a packet it is a digest.
        let mut digest = Icrc::before(Network::V1, &[]);
        digest.update(&[opcode, flags]);
        digest.update(content);
        Some(digest.value())
    }

    pub fn note(&mut self, note: Note) {
        self.report.note(note);
    }

    pub fn broken(&mut self, rule: Rule, words: Arguments<'_>) {
        let (Frame { src, dst, .. }, bth) = (*self.frame, self.frame.bth());
        let (frame, time_ns) = (self.number, self.time_ns);
        let (qpn, psn) = (bth.dest_qpn, bth.psn);
        self.report.broken(rule, || Violation {
            rule,
            frame,
            time_ns,
            src,
            dst,
            qpn,
            psn,
            words: words.to_string(),
        });
    }
}

/// A frame that could not be parsed breaks a rule.
pub fn unreadable(report: &mut Report, rule: Rule, number: u64, time_ns: u64, words: &str) {
    report.broken(rule, || Violation {
        rule,
        frame: number,
        time_ns,
        src: Gid::UNSPECIFIED,
        dst: Gid::UNSPECIFIED,
        qpn: Qpn::new(0),
        psn: Psn::new(0),
        words: words.into(),
    });
}
