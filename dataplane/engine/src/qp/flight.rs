//! Requests in flight: a ring with a place for each request that the send queue admits, filled in place.

use crate::limits::{MAX_INLINE, MAX_SGE};
use crate::memory::Span;
use crate::status::WcStatus;
use crate::wr::{SendFlags, SendOp};
use arrayvec::ArrayVec;
use std::mem::offset_of;
use wire::{Psn, Srqn};

/// A send request that the engine has taken. What a request of one piece needs lies in its first two cache lines, in that order.
#[derive(Debug)]
#[repr(C, align(64))]
pub(crate) struct Wqe {
    pub wr_id: u64,
    pub op: SendOp,
    /// Bytes of the message.
    pub len: u32,
    pub first_psn: Psn,
    /// PSNs of the message: request packets, or for a READ the responses. None for what stays local.
    pub packets: u32,
    pub flags: SendFlags,
    /// READ: the packet of the message with which the latest request begins.
    pub read_from: u32,
    /// XRC: the SRQ that it is for.
    pub srqn: Srqn,
    /// Its first packet left, or it was done without one.
    pub started: bool,
    /// A local fault that ends the request once all before it are complete.
    pub fault: Option<WcStatus>,
    /// The message in registered memory, unless it is inline.
    pub spans: ArrayVec<Span, MAX_SGE>,
    /// The message if it has bytes and no spans; otherwise anything.
    pub inline: ArrayVec<u8, MAX_INLINE>,
}

const _: () =
    assert!(offset_of!(Wqe, spans) + 8 + size_of::<Span>() <= 128, "one span lies in the first two lines");

impl Wqe {
    fn empty() -> Self {
        Wqe {
            wr_id: 0,
            op: SendOp::Send,
            flags: SendFlags::empty(),
            srqn: Srqn::default(),
            len: 0,
            first_psn: Psn::new(0),
            packets: 0,
            fault: None,
            started: false,
            read_from: 0,
            spans: ArrayVec::new(),
            inline: ArrayVec::new(),
        }
    }

    /// PSNs of the message before `una`, which is not before the message.
    pub fn done_before(&self, una: Psn) -> u32 {
        offset(una, self.first_psn)
    }
}

/// PSNs from `from` up to `psn`, where `psn` is not before `from`: up to 2^24 − 1. A READ may take 2^23 PSNs, so a
/// signed distance would not do.
pub(crate) fn offset(psn: Psn, from: Psn) -> u32 {
    Psn::new(psn.value().wrapping_sub(from.value())).value()
}

/// Bytes of the ring for a send queue of `depth`.
pub(crate) fn flight_bytes(depth: u32) -> usize {
    places(depth) as usize * size_of::<Wqe>()
}

fn places(depth: u32) -> u32 {
    depth.max(1).next_power_of_two()
}

/// The ring. Requests are named by their place in the order of posting, modulo 2^32.
#[derive(Debug)]
pub(crate) struct Flight {
    slots: Box<[Wqe]>,
    mask: u32,
    head: u32,
    tail: u32,
}

impl Flight {
    /// A ring with room for `depth` requests.
    pub fn new(depth: u32) -> Self {
        let places = places(depth);
        Flight { slots: (0..places).map(|_| Wqe::empty()).collect(), mask: places - 1, head: 0, tail: 0 }
    }

    /// The oldest request's number (the next one's when there is none).
    pub fn head(&self) -> u32 {
        self.head
    }

    /// The number that the next request gets.
    pub fn tail(&self) -> u32 {
        self.tail
    }

    pub fn is_empty(&self) -> bool {
        self.head == self.tail
    }

    pub fn get(&self, seq: u32) -> &Wqe {
        &self.slots[(seq & self.mask) as usize]
    }

    pub fn get_mut(&mut self, seq: u32) -> &mut Wqe {
        &mut self.slots[(seq & self.mask) as usize]
    }

    /// The oldest request.
    pub fn oldest(&self) -> Option<&Wqe> {
        (!self.is_empty()).then(|| self.get(self.head))
    }

    /// Adds the place at the end, whatever it held, and gives it to be filled. The send queue bounds how many there are.
    pub fn push(&mut self) -> &mut Wqe {
        debug_assert!(self.tail.wrapping_sub(self.head) <= self.mask, "the send queue bounds the ring");
        let seq = self.tail;
        self.tail = self.tail.wrapping_add(1);
        self.get_mut(seq)
    }

    /// Frees the oldest place, and what the request held on to. There must be one.
    pub fn pop(&mut self) -> &mut Wqe {
        debug_assert!(!self.is_empty(), "someone finished a request that is not there");
        let seq = self.head;
        self.head = self.head.wrapping_add(1);
        self.get_mut(seq)
    }

    /// Forgets all.
    pub fn clear(&mut self) {
        while !self.is_empty() {
            self.pop().op = SendOp::Send;
        }
    }
}
