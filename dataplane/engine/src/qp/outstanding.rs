//! What a send queue has outstanding: the ring of requests, the oldest PSN without an answer (`una`), and the cursor that
//! names the next packet, new or again. Going back is moving the cursor to `una`; a full sink leaves it where it is.

use super::flight::{Flight, offset};
use super::window::Window;
use crate::Nanos;
use crate::queue::Wqe;
use ring::Taker;
use wire::Psn;

/// Half of the PSN space: beyond that an old packet could not be told from a new one.
pub(super) const MAX_OUTSTANDING: u32 = 1 << 23;

/// A packet of a request in the ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cursor {
    /// The request.
    pub seq: u32,
    /// Which of its packets.
    pub packet: u32,
}

/// An RNR NAK that is obeyed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RnrWait {
    /// What it refused. A READ or atomic before it may lack its response and go out again meanwhile.
    pub psn: Psn,
    /// Until then nothing from there on is sent.
    pub until: Nanos,
}

/// The sending half of a QP. What only losses touch comes last.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Requester {
    pub flight: Flight,
    /// The next packet to send.
    pub cursor: Cursor,
    /// The oldest PSN without an answer.
    pub una: Psn,
    /// The PSN after all that was ever sent, expected READ responses among it.
    pub sent_end: Psn,
    /// PSNs that may be outstanding.
    pub window: Window,
    /// READs, atomics and their like (all that await a response) started and not finished.
    pub rd_atomic: u32,
    /// Packets since the last one with AckReq.
    pub since_ack_req: u32,
    /// Steps taken of `retry_cnt` since the last progress.
    pub retries: u8,
    /// Steps taken of `rnr_retry` since the last progress.
    pub rnr_retries: u8,
    /// It went back to `una` and has seen no progress since: more signs of the same gap mean nothing new.
    pub recovering: bool,
    /// When the ACK timer fires.
    pub deadline: Option<Nanos>,
    /// The peer was not ready for a request: it and all behind it wait.
    pub rnr: Option<RnrWait>,
    /// What had been sent when it last went back for a gap. ACKs up to there may be answers to duplicates.
    pub recover_end: Option<Psn>,
    /// UC: the last loan that packets from `una` on are of.
    pub loan: u64,
}

/// How far an acknowledgement went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Advance {
    /// Requests that are finished, from the oldest on.
    pub finished: u32,
    /// PSNs that are done.
    pub packets: u32,
    /// It stopped before a READ or atomic that it covers and whose response has not come.
    pub lost_response: bool,
}

impl Requester {
    /// A requester for a send queue, on a wire that holds so many packets.
    pub fn new(queue: Taker<Wqe>, window: u32) -> Self {
        let flight = Flight::new(queue);
        Requester {
            cursor: Cursor { seq: flight.tail(), packet: 0 },
            flight,
            una: Psn::new(0),
            sent_end: Psn::new(0),
            window: Window::up_to(window),
            rd_atomic: 0,
            since_ack_req: 0,
            retries: 0,
            rnr_retries: 0,
            recovering: false,
            deadline: None,
            rnr: None,
            recover_end: None,
            loan: 0,
        }
    }

    /// Starts afresh: nothing in flight or posted, next PSN `sq_psn` (RESET, and RTR → RTS, before which nobody can post).
    pub fn reset(&mut self, sq_psn: Psn) {
        self.flight.discard();
        self.sent_end = sq_psn;
        self.forget();
        self.window.restart();
    }

    /// Nothing is in flight any more, and nothing is waited for: the ring was emptied.
    pub fn forget(&mut self) {
        self.una = self.sent_end;
        self.cursor = Cursor { seq: self.flight.tail(), packet: 0 };
        self.rd_atomic = 0;
        self.since_ack_req = 0;
        self.retries = 0;
        self.rnr_retries = 0;
        self.deadline = None;
        self.rnr = None;
        self.recovering = false;
        self.recover_end = None;
    }

    /// When the ACK or RNR timer fires.
    // In registers: a list of both would be written in words and read in pairs of them, which waits until the words are in the cache.
    #[inline]
    pub fn deadline(&self) -> Option<Nanos> {
        match (self.deadline, &self.rnr) {
            (Some(ack), Some(wait)) => Some(ack.min(wait.until)),
            (ack, None) => ack,
            (None, Some(wait)) => Some(wait.until),
        }
    }

    /// The oldest packet without an answer was refused, and waits.
    pub fn is_refused(&self) -> bool {
        self.rnr.is_some_and(|wait| wait.psn == self.una)
    }

    /// The packet under the cursor waits until the peer is ready.
    pub fn must_wait(&self) -> bool {
        self.rnr.is_some_and(|wait| !self.cursor_psn().is_before(wait.psn))
    }

    /// Nothing is in flight: every started message is sent and acknowledged.
    pub fn is_drained(&self) -> bool {
        // At most the last request in the ring has not started.
        self.flight.oldest().is_none_or(|wqe| !wqe.started)
    }

    /// PSNs sent and not answered.
    pub fn outstanding(&self) -> u32 {
        offset(self.sent_end, self.una)
    }

    /// The PSN under the cursor.
    pub fn cursor_psn(&self) -> Psn {
        match self.at_end() {
            true => self.sent_end,
            false => self.flight.get(self.cursor.seq).first_psn.add(self.cursor.packet),
        }
    }

    /// All requests in the ring are sent.
    pub fn at_end(&self) -> bool {
        self.cursor.seq == self.flight.tail()
    }

    /// Moves the cursor to the oldest packet without an answer.
    pub fn go_back(&mut self) {
        let packet = self.flight.oldest().map_or(0, |wqe| wqe.done_before(self.una));
        self.cursor = Cursor { seq: self.flight.head(), packet };
    }

    /// Moves `una` over the first `count` outstanding PSNs, as far as requests go that an ACK completes. Requests
    /// that were done without a packet are passed by. The ring itself is not changed.
    pub fn advance(&mut self, count: u32) -> Advance {
        let mut advance = Advance { finished: 0, packets: 0, lost_response: false };
        let mut seq = self.flight.head();
        while seq != self.flight.tail() {
            let wqe = self.flight.get(seq);
            if wqe.quiet && advance.packets < count {
                // One packet, and no response.
                self.una = self.una.next();
                advance.packets += 1;
                advance.finished += 1;
                seq = seq.wrapping_add(1);
                continue;
            }
            if !wqe.started {
                break;
            }
            let left = wqe.packets - wqe.done_before(self.una);
            let covered = left.min(count - advance.packets);
            if covered > 0 && wqe.op.awaits_response() {
                // rocev2 facts: an ACK beyond an unfinished READ or atomic is an implied NAK.
                advance.lost_response = covered == left;
                break;
            }
            self.una = self.una.add(covered);
            advance.packets += covered;
            if covered < left {
                break;
            }
            advance.finished += 1;
            seq = seq.wrapping_add(1);
        }
        advance
    }

    /// Answers came for `packets` PSNs: retries are restored, the window grows, the timer starts again.
    pub fn progress(&mut self, packets: u32, ack_deadline: Option<Nanos>) {
        self.retries = 0;
        self.rnr_retries = 0;
        self.rnr = self.rnr.filter(|wait| !wait.psn.is_before(self.una));
        self.recovering = false;
        self.window.grow(packets);
        if self.recover_end.is_some_and(|end| !self.una.is_before(end)) {
            self.recover_end = None;
        }
        // With everything behind `una` still to be sent again there is nothing to wait for.
        self.deadline = if self.cursor_psn() == self.una { None } else { ack_deadline };
    }

    /// A cursor that `una` has overtaken goes along with it.
    pub fn follow_una(&mut self) {
        if let Some(oldest) = self.flight.oldest()
            && self.cursor.seq == self.flight.head()
        {
            self.cursor.packet = self.cursor.packet.max(oldest.done_before(self.una));
        }
    }

    /// Moves `una` over the oldest outstanding requests as long as they are quiet, `most` of them at most, and ends them: how many it
    /// were, and so how many PSNs. Nothing else has to be done for these, which are nearly all where few are signaled.
    pub fn pass_quiet(&mut self, most: u32) -> u32 {
        let passed = self.pop_quiet(most);
        self.una = self.una.add(passed);
        passed
    }

    /// Ends the oldest requests as long as they are quiet, up to `most` of them: how many it were.
    pub fn pop_quiet(&mut self, most: u32) -> u32 {
        let behind = self.cursor.seq.wrapping_sub(self.flight.head());
        let popped = self.flight.pop_while(most, |wqe| wqe.quiet);
        if behind < popped {
            self.cursor = Cursor { seq: self.flight.head(), packet: 0 };
        }
        popped
    }

    /// Ends the oldest request, as [`Flight::pop`] does; the cursor does not stay behind.
    pub fn pop(&mut self) -> &mut Wqe {
        if self.cursor.seq == self.flight.head() {
            self.cursor = Cursor { seq: self.cursor.seq.wrapping_add(1), packet: 0 };
        }
        let counted = self.flight.oldest().is_some_and(|wqe| wqe.started && wqe.op.awaits_response());
        self.rd_atomic -= u32::from(counted);
        self.flight.pop()
    }
}
