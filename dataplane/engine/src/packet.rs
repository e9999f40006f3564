//! Packets at the engine's edge: what comes in, what goes out, and who takes it.

use crate::memory::{Memory, PlaceError, RegionGone, Span};
use wire::{Bth, ExtHeaders, Frame, HeaderTemplate, Opcode, Psn, Reth};

/// Payload bytes of an arrived packet: one slice, several when the buffer came in segments, or bytes that the [`Memory`] holds.
#[derive(Clone, Copy, Debug)]
pub struct Payload<'a> {
    first: &'a [u8],
    rest: &'a [&'a [u8]],
    held: u32,
}

/// A piece of a payload.
#[derive(Clone, Copy, Debug)]
pub enum Piece<'a> {
    /// Bytes at hand.
    Bytes(&'a [u8]),
    /// So many of those that the memory holds.
    Held(u32),
}

impl<'a> Payload<'a> {
    /// A payload in one piece.
    pub fn contiguous(bytes: &'a [u8]) -> Self {
        Payload { first: bytes, rest: &[], held: 0 }
    }

    /// A payload in pieces, in order.
    pub fn segmented(first: &'a [u8], rest: &'a [&'a [u8]]) -> Self {
        Payload { first, rest, held: 0 }
    }

    /// `len` bytes that the memory holds for this packet ([`Memory::write_held`]): where they are nobody else may look at
    /// them, and they are compared with their sum when they are placed.
    pub fn held(len: u32) -> Self {
        Payload { first: &[], rest: &[], held: len }
    }

    /// Total bytes.
    pub fn len(&self) -> usize {
        self.first.len() + self.rest.iter().map(|piece| piece.len()).sum::<usize>() + self.held as usize
    }

    /// True for an empty payload.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The bytes of a payload that is in one piece, and at hand.
    #[inline]
    pub fn only_slice(&self) -> Option<&'a [u8]> {
        (self.rest.is_empty() && self.held == 0).then_some(self.first)
    }

    /// The pieces in order.
    #[inline]
    pub fn pieces(&self) -> impl Iterator<Item = Piece<'a>> + use<'a> {
        let held = (self.held != 0).then_some(Piece::Held(self.held));
        self.slices().map(Piece::Bytes).chain(held)
    }

    /// The pieces that are at hand, in order.
    #[inline]
    pub fn slices(&self) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        std::iter::once(self.first).chain(self.rest.iter().copied())
    }
}

impl Piece<'_> {
    /// Bytes.
    #[inline]
    pub fn len(self) -> u32 {
        match self {
            Piece::Bytes(bytes) => bytes.len() as u32,
            Piece::Held(len) => len,
        }
    }

    /// No bytes.
    #[inline]
    pub fn is_empty(self) -> bool {
        self.len() == 0
    }

    /// The first `len` bytes, and the rest; it has so many.
    #[inline]
    pub fn split_at(self, len: u32) -> (Self, Self) {
        match self {
            Piece::Bytes(bytes) => {
                let (now, later) = bytes.split_at(len as usize);
                (Piece::Bytes(now), Piece::Bytes(later))
            }
            Piece::Held(all) => (Piece::Held(len), Piece::Held(all - len)),
        }
    }

    /// Copies it to a span that is as long; `follows` is how many bytes behind that its message goes on for, if that is known.
    #[inline]
    pub fn place<M: Memory>(self, memory: &M, to: Span, follows: u32) -> Result<(), PlaceError> {
        match self {
            Piece::Bytes(bytes) => Ok(memory.write(to, bytes)?),
            Piece::Held(_) => memory.write_held(to, follows),
        }
    }
}

/// A packet that passed the parser and its iCRC, or whose iCRC is looked at when its payload is placed ([`Payload::held`]).
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
    /// All of one piece of memory.
    Piece(&'a Span),
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
            Gather::Piece(span) => span.len() as usize,
            Gather::Spans { len, .. } => *len as usize,
        }
    }

    /// The exact pieces of memory to copy, in order (none for [`Gather::Bytes`]).
    pub fn spans(&self) -> impl Iterator<Item = Span> + use<'a> {
        let (spans, mut skip, mut left) = match *self {
            Gather::Bytes(_) => (&[][..], 0, 0),
            Gather::Piece(span) => (std::slice::from_ref(span), 0, span.len()),
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
    /// The BTH, as it goes on the wire. Its pad count is already right for the payload.
    pub bth: [u8; Bth::LEN],
    /// Extension headers in wire order.
    pub ext: ExtHeaders,
    /// The payload.
    pub payload: Gather<'a>,
    /// Its PSN was sent before.
    pub again: bool,
}

impl TxPacket<'_> {
    /// The BTH as a value.
    pub fn bth(&self) -> Bth {
        Bth::from_bytes(&self.bth)
    }

    /// What the packet is.
    #[inline]
    pub fn opcode(&self) -> Opcode {
        Opcode(self.bth[0])
    }

    /// Bytes of all headers.
    #[inline]
    pub fn headers_len(&self) -> usize {
        self.template.len() + Bth::LEN + self.ext.len()
    }

    /// Bytes of pad behind the payload.
    #[inline]
    pub fn pad_len(&self) -> usize {
        Bth::pad_in(&self.bth)
    }
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

/// What packets have in common that follow one another on a reliable connection, sent for the first time: SENDs or WRITEs of one packet
/// each, or the middle packets of one message, alike but for PSN, AckReq, address and payload.
#[derive(Clone, Copy, Debug)]
pub struct TxRun<'a> {
    /// Ethernet, IP and UDP headers.
    pub template: &'a HeaderTemplate,
    /// The BTH, but for its PSN and AckReq.
    pub bth: [u8; Bth::LEN],
    /// The RETH of a WRITE of one packet, but for its address.
    pub reth: Option<Reth>,
    /// Bytes of payload.
    pub len: u32,
}

/// What a packet of a run has for itself.
#[derive(Clone, Copy, Debug)]
pub struct Follower {
    /// Its PSN.
    pub psn: Psn,
    /// It asks for an acknowledgement.
    pub ack_req: bool,
    /// Where a WRITE of one packet goes.
    pub va: u64,
    /// Its payload, as long as that of all; not looked at if that is of no bytes.
    pub span: Span,
}

/// Has the packets of a run, one by one. Whoever asks for one has to try to send it.
pub trait Followers {
    /// The next.
    fn next(&mut self) -> Option<Follower>;
}

impl<'a> TxRun<'a> {
    /// Bytes of headers before each payload.
    #[inline]
    pub fn headers_len(&self) -> usize {
        self.template.len() + Bth::LEN + self.reth.map_or(0, |_| Reth::LEN)
    }

    /// Offers the packets one by one, as any.
    #[inline]
    pub fn emit_each(
        &self,
        followers: &mut impl Followers,
        sink: &mut (impl PacketSink + ?Sized),
    ) -> Result<(), SinkError> {
        while let Some(follower) = followers.next() {
            self.emit_one(&follower, sink)?;
        }
        Ok(())
    }

    /// Offers one of them, as any.
    #[inline(never)]
    pub fn emit_one(
        &self,
        follower: &Follower,
        sink: &mut (impl PacketSink + ?Sized),
    ) -> Result<(), SinkError> {
        sink.emit(&self.packet(follower))
    }

    /// A packet of the run, as any.
    #[inline]
    pub fn packet<'b>(&self, follower: &'b Follower) -> TxPacket<'b>
    where
        'a: 'b,
    {
        let Follower { psn, ack_req, va, span } = follower;
        let payload = if self.len == 0 { Gather::EMPTY } else { Gather::Piece(span) };
        let bth = Bth::with_last(self.bth, *ack_req, *psn);
        let mut packet =
            TxPacket { template: self.template, bth, ext: ExtHeaders::EMPTY, payload, again: false };
        if let Some(reth) = self.reth {
            packet.ext.push(Reth { va: *va, ..reth });
        }
        packet
    }
}

/// Takes packets to send: an mbuf burst, a simulator link, a test's list.
pub trait PacketSink {
    /// Takes one packet, or says why not. After `Full` nothing of the packet was taken.
    fn emit(&mut self, packet: &TxPacket<'_>) -> Result<(), SinkError>;

    /// Takes packets of a run until there are no more, or it wants no more; or says why it has not taken the last one that it asked for. They
    /// are the same packets as [`TxRun::packet`] makes of them.
    #[inline]
    fn emit_run(&mut self, run: &TxRun<'_>, followers: &mut impl Followers) -> Result<(), SinkError> {
        run.emit_each(followers, self)
    }

    /// UC: the loan that packets are of which were taken since the last question, if their payloads are read where they are after that. Their
    /// requests are complete when it [has come back](crate::Engine::on_returned). Later loans have higher numbers, and come back later.
    #[inline]
    fn take_loan(&mut self) -> Option<u64> {
        None
    }
}
