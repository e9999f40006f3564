//! Requests in flight: those that the engine has taken and not completed, each in its place of the send queue.

use crate::queue::Wqe;
use crate::wr::SendOp;
use ring::Taker;
use wire::Psn;

impl Wqe {
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

/// So many requests ahead of the one that is taken, one is asked for.
const LATER: u32 = 4;

/// Requests that are asked for ahead, at most.
const FETCHED: u32 = 4;

/// The send queue from the engine's side. Requests are named by their place in the order of posting, modulo 2^32.
#[derive(Debug)]
pub(crate) struct Flight {
    queue: Taker<Wqe>,
    /// The oldest request. Places before it, down to the first that the queue does not have back, are to be given back.
    head: u32,
    /// The bell was heard since a look into the queue found nothing. If not, nothing is there: who posts then, rings. So a QP that only
    /// receives does not look for requests each time that it has answered one.
    heard: bool,
}

impl Flight {
    /// What a queue has. Nothing is in flight.
    pub fn new(queue: Taker<Wqe>) -> Self {
        let head = queue.taken();
        Flight { queue, head, heard: true }
    }

    /// The oldest request's number (the next one's when there is none).
    pub fn head(&self) -> u32 {
        self.head
    }

    /// The number that the next request gets.
    pub fn tail(&self) -> u32 {
        self.queue.taken()
    }

    pub fn is_empty(&self) -> bool {
        self.head == self.tail()
    }

    pub fn get(&self, seq: u32) -> &Wqe {
        self.queue.get(seq)
    }

    pub fn get_mut(&mut self, seq: u32) -> &mut Wqe {
        self.queue.get_mut(seq)
    }

    /// The oldest request.
    pub fn oldest(&self) -> Option<&Wqe> {
        (!self.is_empty()).then(|| self.get(self.head))
    }

    /// Asks for what answering the bell needs.
    #[inline]
    pub fn fetch_bell(&self) {
        self.queue.fetch_posted();
    }

    /// Asks for what taking requests needs, if any may wait.
    #[inline]
    pub fn fetch_waiting(&self) {
        if self.heard || self.queue.has_seen() {
            self.queue.fetch_posted();
            self.queue.fetch_next(FETCHED);
        }
    }

    /// Asks for the oldest requests, as many as are acknowledged together mostly.
    #[inline]
    pub fn fetch_oldest(&self) {
        self.queue.fetch_held(self.head, FETCHED);
    }

    /// The bell of the queue was heard. Called before looking for requests.
    pub fn answer(&mut self) {
        self.queue.ring().answer();
        self.heard = true;
    }

    /// The last look found more than was taken.
    #[inline]
    pub fn has_seen(&self) -> bool {
        self.queue.has_seen()
    }

    /// Somebody has posted what is not taken.
    pub fn has_waiting(&self) -> bool {
        self.queue.has_seen() || (self.heard && self.queue.has_waiting())
    }

    /// Takes the oldest posted request. The engine's part of it is what it was for the request before.
    #[inline]
    pub fn take(&mut self) -> Option<&mut Wqe> {
        if !self.heard && !self.queue.has_seen() {
            return None;
        }
        let taken = self.queue.take();
        self.heard &= taken.is_some();
        taken
    }

    /// Takes the oldest posted request if it was there at the last look, and `is_so` says so.
    #[inline(always)]
    pub fn take_seen(&mut self, is_so: impl FnOnce(&Wqe) -> bool) -> Option<&mut Wqe> {
        self.queue.fetch_later(LATER);
        self.queue.take_seen(is_so)
    }

    /// Ends the oldest request, whose place is given back by the next [`release`](Self::release). There must be one.
    pub fn pop(&mut self) -> &mut Wqe {
        debug_assert!(!self.is_empty(), "someone finished a request that is not there");
        let seq = self.head;
        self.head = self.head.wrapping_add(1);
        self.get_mut(seq)
    }

    /// Ends the oldest requests, `most` of them or as long as `is_so` says so: how many it were. There must be so many.
    #[inline]
    pub fn pop_while(&mut self, most: u32, is_so: impl Fn(&Wqe) -> bool) -> u32 {
        let begin = self.head;
        let end = begin.wrapping_add(most);
        while self.head != end && is_so(self.get(self.head)) {
            self.head = self.head.wrapping_add(1);
        }
        self.head.wrapping_sub(begin)
    }

    /// Gives back the places of all that has ended.
    #[inline]
    pub fn release(&mut self) {
        self.queue.release(self.head.wrapping_sub(self.queue.released()));
    }

    /// Forgets every request, taken or not. What a thread is just now posting stays counted, and may stay.
    pub fn discard(&mut self) {
        while self.queue.take().is_some() {}
        while !self.is_empty() {
            // Lets go of an address handle or a region.
            self.pop().op = SendOp::Send;
        }
        self.release();
    }
}
