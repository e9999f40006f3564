//! The acknowledgement header: syndrome, credits, RNR timers (rocev2 facts, transport 2, 3 and 4).

use super::slice_forms;
use crate::types::Msn;

/// A NAK's reason. Values are the low five bits of the syndrome.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum NakCode {
    /// A packet is missing: go back to the PSN of the NAK.
    PsnSequence = 0,
    /// The request is not allowed or malformed.
    InvalidRequest = 1,
    /// Key, range or right is wrong.
    RemoteAccess = 2,
    /// The responder itself failed.
    RemoteOperational = 3,
    /// Reliable datagram only.
    InvalidRdRequest = 4,
}

/// What an AETH says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Syndrome {
    /// Done. `credits` is a code of 5 bits, see [`credits`].
    Ack {
        /// Credit code.
        credits: u8,
    },
    /// No receive was posted: try again later. `timer` is a code of 5 bits, see [`rnr_timer_ns`].
    RnrNak {
        /// Timer code.
        timer: u8,
    },
    /// Refused.
    Nak(NakCode),
    /// A byte that means nothing: 0x40–0x5F, 0x65–0x7F, and all above.
    Reserved(u8),
}

/// Credit code of a responder that does not count credits.
pub const CREDITS_UNUSED: u8 = 31;

impl Syndrome {
    /// An ACK without credits, which interoperates with everything.
    pub const ACK: Syndrome = Syndrome::Ack { credits: CREDITS_UNUSED };

    /// From its byte. Every byte means something.
    #[inline]
    pub const fn from_byte(byte: u8) -> Self {
        match (byte >> 5, byte & 0x1F) {
            (0, credits) => Syndrome::Ack { credits },
            (1, timer) => Syndrome::RnrNak { timer },
            (3, 0) => Syndrome::Nak(NakCode::PsnSequence),
            (3, 1) => Syndrome::Nak(NakCode::InvalidRequest),
            (3, 2) => Syndrome::Nak(NakCode::RemoteAccess),
            (3, 3) => Syndrome::Nak(NakCode::RemoteOperational),
            (3, 4) => Syndrome::Nak(NakCode::InvalidRdRequest),
            _ => Syndrome::Reserved(byte),
        }
    }

    /// Its byte. Codes are cut to five bits.
    #[inline]
    pub const fn to_byte(self) -> u8 {
        match self {
            Syndrome::Ack { credits } => credits & 0x1F,
            Syndrome::RnrNak { timer } => 0x20 | timer & 0x1F,
            Syndrome::Nak(code) => 0x60 | code as u8,
            Syndrome::Reserved(byte) => byte,
        }
    }
}

/// Acknowledgement: what happened, and how many messages are complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Aeth {
    /// What happened.
    pub syndrome: Syndrome,
    /// Messages that the responder completed.
    pub msn: Msn,
}

impl Aeth {
    /// Bytes on the wire.
    pub const LEN: usize = 4;

    /// From its bytes.
    #[inline]
    pub fn from_bytes(bytes: &[u8; Self::LEN]) -> Self {
        let [syndrome, m0, m1, m2] = *bytes;
        Aeth { syndrome: Syndrome::from_byte(syndrome), msn: Msn::from_bytes([m0, m1, m2]) }
    }

    /// Its bytes.
    #[inline]
    pub fn to_bytes(&self) -> [u8; Self::LEN] {
        let [m0, m1, m2] = self.msn.to_bytes();
        [self.syndrome.to_byte(), m0, m1, m2]
    }
}
slice_forms!(Aeth, Aeth);

/// Credits by code: from 2 on each pair of codes doubles.
#[rustfmt::skip]
const CREDITS: [u16; 31] = [
    0, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024, 1536, 2048, 3072, 4096, 6144,
    8192, 12288, 16384, 24576, 32768,
];

/// Receive WQEs that an ACK with this code grants; `None` when the responder does not count ([`CREDITS_UNUSED`]).
pub fn credits(code: u8) -> Option<u32> {
    CREDITS.get(usize::from(code & 0x1F)).copied().map(u32::from)
}

/// The code that grants most without granting more than `credits`.
pub fn credit_code(credits: u32) -> u8 {
    // The first entry is 0, so at least one is counted.
    (CREDITS.iter().take_while(|&&granted| u32::from(granted) <= credits).count() - 1) as u8
}

/// Units of 10 µs by RNR timer code. Code 0 is the longest.
#[rustfmt::skip]
const RNR_TIMERS: [u32; 32] = [
    65536, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024, 1536, 2048, 3072, 4096, 6144,
    8192, 12288, 16384, 24576, 32768, 49152,
];

/// Nanoseconds to wait after an RNR NAK with this code (five bits): at least, longer is legal.
pub fn rnr_timer_ns(code: u8) -> u64 {
    u64::from(RNR_TIMERS[usize::from(code & 0x1F)]) * 10_000
}
