//! A place of a send queue: one request, from its post to its completion.
//!
//! The poster writes it, the engine works on it where it lies: what of many queue pairs has to come from memory for a message is these
//! two cache lines. More than one SGE, and inline data, have a room apart, which only queues for such requests have.

use crate::limits::{MAX_INLINE, MAX_MESSAGE, MAX_SGE};
use crate::memory::Span;
use crate::mr::{KeyFault, OpenKey};
use crate::status::WcStatus;
use crate::wr::{Remote, SendFlags, SendOp, SendWr, Sge, WrData};
use arrayvec::ArrayVec;
use wire::{Psn, RKey, Srqn};

/// The length of a message that is longer than one can be.
const TOO_LONG: u32 = u32::MAX;

/// A request.
#[derive(Debug)]
#[repr(C, align(64))]
pub(crate) struct Wqe {
    pub wr_id: u64,
    pub op: SendOp,
    pub flags: SendFlags,
    /// On an XRC initiator, the SRQ that it is for.
    pub srqn: Srqn,
    /// Bytes of the message.
    len: u32,
    data: Data,
    // From here on it is the engine's, but for `sge` and what it has more of them in its room.
    /// Its first packet left, or it was done without one.
    pub started: bool,
    /// A local fault that ends the request once all before it are complete.
    pub fault: Option<WcStatus>,
    pub first_psn: Psn,
    /// PSNs of the message: request packets, or for a READ the responses. None for what stays local.
    pub packets: u32,
    /// READ: the packet of the message with which the latest request begins.
    pub read_from: u32,
    /// Nobody is told of its end, and nothing is let go with it: it is plain and unsignaled.
    pub quiet: bool,
    spans: Spans,
    span: Span,
    sge: Sge,
    room: Option<Box<Room>>,
}

const _: () = assert!(size_of::<Wqe>() == 128, "a request lies in two lines");

/// Where the data is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Data {
    /// In `sge`, if there is any.
    One,
    /// SGEs in the room.
    Many,
    /// Bytes in the room, if there are any.
    Inline,
}

/// Where the data is in registered memory, if it is there and has bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Spans {
    None,
    /// In `span`.
    One,
    /// In the room.
    Many,
}

/// What does not fit in a place.
#[derive(Debug, Default)]
struct Room {
    sges: ArrayVec<Sge, MAX_SGE>,
    spans: ArrayVec<Span, MAX_SGE>,
    inline: ArrayVec<u8, MAX_INLINE>,
}

impl Wqe {
    /// A place that was never used, with room for so many SGEs and inline bytes.
    pub fn empty(max_sge: usize, max_inline: usize) -> Wqe {
        Wqe {
            wr_id: 0,
            op: SendOp::Send,
            flags: SendFlags::empty(),
            srqn: Srqn::default(),
            len: 0,
            data: Data::One,
            started: false,
            fault: None,
            first_psn: Psn::new(0),
            packets: 0,
            quiet: false,
            read_from: 0,
            spans: Spans::None,
            span: Span::EMPTY,
            sge: Sge { addr: 0, len: 0, lkey: wire::LKey::new(0) },
            room: (room_bytes(max_sge, max_inline) > 0).then(Box::default),
        }
    }

    /// Takes over what a request has.
    #[inline]
    pub fn fill(&mut self, wr: &mut SendWr, srqn: Srqn) {
        self.wr_id = wr.wr_id;
        self.flags = wr.flags;
        self.srqn = srqn;
        self.op = std::mem::replace(&mut wr.op, SendOp::Send);
        if let WrData::Sges(sges) = &wr.data
            && let [sge] = sges[..]
        {
            return self.put_piece(sge);
        }
        self.fill_other(&wr.data);
    }

    /// Takes over a request of one piece.
    #[inline(always)]
    pub fn fill_piece(&mut self, wr_id: u64, op: SendOp, piece: Sge, flags: SendFlags) {
        self.op = op;
        self.put_common(wr_id, flags);
        self.put_piece(piece);
    }

    /// Becomes a SEND of one piece.
    #[inline(always)]
    pub fn fill_send(&mut self, wr_id: u64, piece: Sge, flags: SendFlags) {
        self.op = SendOp::Send;
        self.put_common(wr_id, flags);
        self.put_piece(piece);
    }

    /// Becomes a WRITE of one piece. What kind it is is known here: an operation that comes as a value is made elsewhere, by small
    /// stores, and copied from there by large loads, which wait for them.
    #[inline(always)]
    pub fn fill_write(&mut self, wr_id: u64, remote: Remote, piece: Sge, flags: SendFlags) {
        self.op = SendOp::Write(remote);
        self.put_common(wr_id, flags);
        self.put_piece(piece);
    }

    #[inline(always)]
    fn put_common(&mut self, wr_id: u64, flags: SendFlags) {
        self.wr_id = wr_id;
        self.flags = flags;
        self.srqn = Srqn::default();
    }

    #[inline(always)]
    fn put_piece(&mut self, piece: Sge) {
        self.data = Data::One;
        self.sge = piece;
        self.len = piece.len;
    }

    fn fill_other(&mut self, data: &WrData) {
        self.len = data.len().unwrap_or(TOO_LONG);
        let has_bytes = match data {
            WrData::Sges(sges) => {
                self.data = if sges.is_empty() { Data::One } else { Data::Many };
                self.sge.len = 0;
                !sges.is_empty()
            }
            WrData::Inline(bytes) => {
                self.data = Data::Inline;
                !bytes.is_empty()
            }
        };
        match (&mut self.room, data) {
            _ if !has_bytes => {}
            (Some(room), WrData::Sges(sges)) => room.sges.clone_from(sges),
            (Some(room), WrData::Inline(bytes)) => room.inline.clone_from(bytes),
            // The queue was not made for it, which its check has told the poster.
            (None, _) => self.len = TOO_LONG,
        }
    }

    /// A SEND or WRITE of one packet and at most one piece of memory, which waits for nothing.
    #[inline]
    pub fn is_plain(&self, mtu: u32) -> bool {
        matches!(self.op, SendOp::Write(_) | SendOp::Send)
            && self.data == Data::One
            && self.len <= mtu
            && !self.flags.contains(SendFlags::FENCE)
    }

    /// Where it goes if it is a request like a plain one of this length with these flags: a WRITE by this key of the peer's, or a SEND
    /// without one, which goes nowhere in particular.
    #[inline(always)]
    pub fn is_like(&self, rkey: Option<RKey>, len: u32, flags: SendFlags) -> Option<u64> {
        let va = match (&self.op, rkey) {
            (SendOp::Write(remote), Some(rkey)) if remote.rkey == rkey => remote.addr,
            (SendOp::Send, None) => 0,
            _ => return None,
        };
        let differ = (self.flags ^ flags) & (SendFlags::FENCE | SendFlags::SOLICITED);
        (self.data == Data::One && self.len == len && differ.is_empty()).then_some(va)
    }

    /// Its local memory, of one that is plain and has bytes, if it is of this key and inside.
    #[inline(always)]
    pub fn span_by(&self, key: &OpenKey) -> Option<Span> {
        let Sge { addr, len, lkey } = self.sge;
        (lkey == key.lkey).then(|| key.span(addr, len).ok()).flatten()
    }

    /// Has the engine's part be what it is for a plain request that was just taken.
    #[inline(always)]
    pub fn take_plain(&mut self, first_psn: Psn, all_signaled: bool) {
        self.first_psn = first_psn;
        self.started = false;
        self.fault = None;
        self.read_from = 0;
        self.packets = 1;
        self.quiet = !all_signaled && !self.flags.contains(SendFlags::SIGNALED);
    }

    /// Bytes of the message, if it can have so many.
    #[inline]
    pub fn checked_len(&self) -> Option<u32> {
        Some(self.len).filter(|&len| len <= MAX_MESSAGE)
    }

    /// Bytes of the message.
    #[inline]
    pub fn len(&self) -> u32 {
        self.len
    }

    /// Its data is in the request itself.
    #[inline]
    pub fn is_inline(&self) -> bool {
        self.data == Data::Inline
    }

    /// The data that is in the request itself.
    pub fn inline(&self) -> &[u8] {
        self.room.as_ref().map_or(&[], |room| &room.inline[..])
    }

    /// The local memory of a plain request, if it has any.
    #[inline]
    pub fn plain_sge(&self) -> Option<Sge> {
        (self.len > 0).then_some(self.sge)
    }

    /// What the check of that gave.
    #[inline]
    pub fn set_plain_span(&mut self, span: Span) {
        self.span = span;
        self.spans = Spans::One;
    }

    /// What was set, where the request has bytes.
    #[inline]
    pub fn plain_span(&self) -> Option<&Span> {
        (self.len > 0).then_some(&self.span)
    }

    /// The message in registered memory; nothing where it is inline or has no bytes.
    #[inline]
    pub fn spans(&self) -> &[Span] {
        match (self.spans, &self.room) {
            (Spans::One, _) => std::slice::from_ref(&self.span),
            (Spans::Many, Some(room)) => &room.spans,
            _ => &[],
        }
    }

    /// Turns SGEs to spans by `check`. An SGE of no bytes touches nothing, so its key does not matter.
    #[inline(always)]
    pub fn resolve(&mut self, check: impl Fn(&Sge) -> Result<Span, KeyFault>) -> Result<(), KeyFault> {
        self.spans = Spans::None;
        match (self.data, &mut self.room) {
            (Data::One, _) if self.sge.len > 0 => {
                self.span = check(&self.sge)?;
                self.spans = Spans::One;
            }
            (Data::Many, Some(room)) => {
                room.spans.clear();
                for sge in room.sges.iter().filter(|sge| sge.len > 0) {
                    room.spans.push(check(sge)?);
                }
                self.spans = Spans::Many;
            }
            _ => {}
        }
        Ok(())
    }
}

/// Bytes that each place of such a queue has apart.
pub(super) fn room_bytes(max_sge: usize, max_inline: usize) -> usize {
    if max_sge > 1 || max_inline > 0 { size_of::<Room>() } else { 0 }
}
