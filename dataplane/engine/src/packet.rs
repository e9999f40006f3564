//! Packets at the engine's edge: what comes in, what goes out, and who takes it.

use crate::memory::{RegionGone, Span};
use wire::{Bth, ExtHeaders, Frame, HeaderTemplate};

/// Payload bytes of an arrived packet: one slice, or several when the buffer came in segments.
#[derive(Clone, Copy, Debug)]
pub struct Payload<'a> {
    first: &'a [u8],
    rest: &'a [&'a [u8]],
}

impl<'a> Payload<'a> {
    /// A payload in one piece.
    pub fn contiguous(bytes: &'a [u8]) -> Self {
        Payload { first: bytes, rest: &[] }
    }

    /// A payload in pieces, in order.
    pub fn segmented(first: &'a [u8], rest: &'a [&'a [u8]]) -> Self {
        Payload { first, rest }
    }

    /// Total bytes.
    pub fn len(&self) -> usize {
        self.first.len() + self.rest.iter().map(|piece| piece.len()).sum::<usize>()
    }

    /// True for an empty payload.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The pieces in order.
    pub fn pieces(&self) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        std::iter::once(self.first).chain(self.rest.iter().copied())
    }
}

/// A packet that passed the parser and its iCRC.
#[derive(Clone, Copy, Debug)]
pub struct RxPacket<'a> {
    /// The parsed headers.
    pub frame: &'a Frame,
    /// The first bytes of the frame, all headers among them.
    pub head: &'a [u8],
    /// The payload without pad.
    pub payload: Payload<'a>,
}

/// Payload bytes of a packet to send.
#[derive(Clone, Copy, Debug)]
pub enum Gather<'a> {
    /// Bytes at hand.
    Bytes(&'a [u8]),
    /// `len` bytes from byte `offset` of the concatenated spans.
    Spans {
        /// The message's (or region's) pieces.
        spans: &'a [Span],
        /// Bytes of the concatenation to skip.
        offset: u32,
        /// Bytes to take.
        len: u32,
    },
}

impl<'a> Gather<'a> {
    /// No payload.
    pub const EMPTY: Gather<'static> = Gather::Bytes(&[]);

    /// Payload bytes.
    #[allow(clippy::len_without_is_empty)]
    pub fn len(&self) -> usize {
        match self {
            Gather::Bytes(bytes) => bytes.len(),
            Gather::Spans { len, .. } => *len as usize,
        }
    }

    /// The exact pieces of memory to copy, in order (none for [`Gather::Bytes`]).
    pub fn spans(&self) -> impl Iterator<Item = Span> + use<'a> {
        let (spans, mut skip, mut left) = match *self {
            Gather::Bytes(_) => (&[][..], 0, 0),
            Gather::Spans { spans, offset, len } => (spans, offset, len),
        };
        spans.iter().filter_map(move |span| {
            let from = skip.min(span.len());
            skip -= from;
            let take = (span.len() - from).min(left);
            left -= take;
            if take == 0 { None } else { span.slice(from, take) }
        })
    }
}

/// A packet to send. The sink writes the template, fixes lengths, sets PadCnt and pad, gathers the payload and seals
/// it with the iCRC.
#[derive(Debug)]
pub struct TxPacket<'a> {
    /// Ethernet, IP and UDP headers.
    pub template: &'a HeaderTemplate,
    /// The BTH. Its pad count is already right for the payload.
    pub bth: Bth,
    /// Extension headers in wire order.
    pub ext: ExtHeaders,
    /// The payload.
    pub payload: Gather<'a>,
    /// Its PSN was sent before.
    pub again: bool,
}

/// Why a sink did not take a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SinkError {
    /// No room now: offer the same packet again later.
    Full,
    /// The payload's region is gone.
    RegionGone,
}

impl From<RegionGone> for SinkError {
    fn from(_: RegionGone) -> SinkError {
        SinkError::RegionGone
    }
}

/// Takes packets to send: an mbuf burst, a simulator link, a test's list.
pub trait PacketSink {
    /// Takes one packet, or says why not. After `Full` nothing of the packet was taken.
    fn emit(&mut self, packet: &TxPacket<'_>) -> Result<(), SinkError>;
}
