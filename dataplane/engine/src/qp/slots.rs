//! The responder's READ and atomic slots: what is still to be answered, and what a duplicate is answered
//! from.
//!
//! rocev2 facts, transport sections 7 to 9. The slots are at once the queue of READ responses and atomic ACKs
//! on their way out: responses leave slot by slot, which is PSN order, one packet at a time. So there is no
//! second queue that could be full, and a duplicate of a READ that is still being answered moves its place
//! back instead of answering twice.

use crate::mr::PdId;
use wire::{Mtu, Opcode, Psn, Reth};

/// What a READ still has to send.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Run {
    /// PSN of the next response.
    pub psn: Psn,
    /// Address of its first byte.
    pub va: u64,
    /// Bytes from there to the end.
    pub left: u32,
    /// A response of this run was sent, so the next one is not its First.
    pub begun: bool,
    /// It answers a request that was answered before, or is being answered.
    pub again: bool,
}

/// The answer of a slot.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Answer {
    /// READ responses, from memory as it is when they are sent.
    Read {
        /// The request.
        reth: Reth,
        /// What is left of it.
        run: Run,
        /// The domain of its key: of an XRC target each request has its own.
        pd: PdId,
    },
    /// That a FLUSH or an ATOMIC WRITE is done.
    Done,
    /// The saved result of an atomic.
    Atomic {
        /// What was in memory before.
        original: u64,
    },
}

/// A READ, atomic, FLUSH or ATOMIC WRITE that was executed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Slot {
    opcode: Opcode,
    /// PSN of the request and of its first response.
    pub first: Psn,
    packets: u32,
    pub answer: Answer,
    /// Something of the answer is to be sent.
    pending: bool,
    /// The whole answer has been sent at least once: what is sent again is for a duplicate.
    answered: bool,
}

/// The slots of one QP: a ring, oldest replaced.
#[derive(Debug, Default)]
pub(crate) struct Slots {
    /// As many slots as the limit; rxe rounds its own up to a power of two and may have that many
    /// outstanding.
    ring: Vec<Slot>,
    limit: usize,
    /// Slots filled so far; slot `n` lies at `n % limit`.
    filled: u64,
    /// The first slot that has something to send; `filled` when none has.
    next: u64,
}

impl Slots {
    /// Room for `max_dest_rd_atomic`, rounded up to a power of two.
    pub fn new(max_dest_rd_atomic: u8) -> Self {
        // rocev2 facts, transport 7: rxe rounds max_rd_atomic up as a requester, so 3 becomes 4.
        let limit = match max_dest_rd_atomic {
            0 => 0,
            some => usize::from(some).next_power_of_two(),
        };
        Slots { ring: Vec::with_capacity(limit), limit, filled: 0, next: 0 }
    }

    /// Another number of slots. What was answered and is to be answered stays, the newest if not all fit.
    pub fn resize(&mut self, max_dest_rd_atomic: u8) {
        let mut other = Slots::new(max_dest_rd_atomic);
        let from = self.first_kept().max(self.filled.saturating_sub(other.limit as u64));
        other.ring.extend((from..self.filled).filter_map(|number| self.ring.get(self.place(number)?)));
        other.filled = other.ring.len() as u64;
        other.next = self.next.saturating_sub(from).min(other.filled);
        other.find_pending();
        *self = other;
    }

    /// Another READ or atomic may be taken: there are slots, and the oldest has its answer.
    pub fn has_room(&self) -> bool {
        self.limit > 0 && (self.ring.len() < self.limit || self.oldest().is_some_and(|slot| slot.answered))
    }

    /// Takes a READ of so many packets.
    pub fn push_read(&mut self, opcode: Opcode, psn: Psn, packets: u32, reth: Reth, pd: PdId) {
        let run = Run { psn, va: reth.va, left: reth.dma_len, begun: false, again: false };
        self.push(Slot {
            opcode,
            first: psn,
            packets,
            answer: Answer::Read { reth, run, pd },
            pending: true,
            answered: false,
        });
    }

    /// Takes an atomic with its result.
    pub fn push_atomic(&mut self, opcode: Opcode, psn: Psn, original: u64) {
        self.push_single(opcode, psn, Answer::Atomic { original });
    }

    /// Takes a FLUSH or ATOMIC WRITE that is done.
    pub fn push_done(&mut self, opcode: Opcode, psn: Psn) {
        self.push_single(opcode, psn, Answer::Done);
    }

    fn push_single(&mut self, opcode: Opcode, first: Psn, answer: Answer) {
        self.push(Slot { opcode, first, packets: 1, answer, pending: true, answered: false });
    }

    fn push(&mut self, slot: Slot) {
        if self.ring.len() < self.limit {
            self.ring.push(slot);
        } else if let Some(place) = self.place(self.filled) {
            self.ring[place] = slot;
        } else {
            return;
        }
        self.filled += 1;
        // The replaced slot may have had an answer for a duplicate to send; it has not any more.
        self.next = self.next.max(self.first_kept());
        self.find_pending();
    }

    /// The slot that sends next.
    pub fn sending(&self) -> Option<&Slot> {
        // `next` always stands on a pending slot, or at the end.
        if self.has_pending() { self.ring.get(self.place(self.next)?) } else { None }
    }

    /// Something is to be sent.
    pub fn has_pending(&self) -> bool {
        self.next < self.filled
    }

    /// The slot that sends next has sent so many responses, of `len` bytes together.
    pub fn sent(&mut self, packets: u32, len: u32) {
        let Some(place) = self.place(self.next) else { return };
        let slot = &mut self.ring[place];
        let done = match &mut slot.answer {
            Answer::Atomic { .. } | Answer::Done => true,
            Answer::Read { run, .. } => {
                *run = Run {
                    psn: run.psn.add(packets),
                    va: run.va.wrapping_add(u64::from(len)),
                    left: run.left - len,
                    begun: true,
                    again: run.again,
                };
                run.left == 0
            }
        };
        if done {
            slot.pending = false;
            slot.answered = true;
            self.find_pending();
        }
    }

    /// The slot that sends next sends no more; tells whether the peer has had its answer before.
    pub fn give_up(&mut self) -> bool {
        let Some(place) = self.place(self.next) else { return true };
        self.ring[place].pending = false;
        let answered = self.ring[place].answered;
        self.find_pending();
        answered
    }

    fn find_pending(&mut self) {
        while self.next < self.filled {
            match self.place(self.next) {
                Some(place) if self.ring[place].pending => return,
                _ => self.next += 1,
            }
        }
    }

    /// Nothing more is sent.
    pub fn stop(&mut self) {
        for slot in &mut self.ring {
            slot.pending = false;
        }
        self.next = self.filled;
    }

    /// A duplicate READ is answered again from its PSN on; false when no slot has it or it does not fit the
    /// original.
    ///
    /// rocev2 facts, transport 9: it may begin in the middle, where VA and length go on from the packets
    /// before it, and has the original's R_Key.
    pub fn repeat_read(&mut self, psn: Psn, again: Reth, mtu: Mtu) -> bool {
        let Some((number, offset)) = self.find(psn) else { return false };
        let Some(slot) = self.place(number).map(|place| &mut self.ring[place]) else { return false };
        let Answer::Read { reth, run, .. } = &mut slot.answer else { return false };
        let skipped = u64::from(offset) * u64::from(mtu.bytes());
        // Inside the READ's packets, so not beyond its length, except that an empty READ has a packet too.
        let rest = u64::from(reth.dma_len).saturating_sub(skipped);
        let fits = again.rkey == reth.rkey
            && again.va == reth.va.wrapping_add(skipped)
            && u64::from(again.dma_len) <= rest
            && (again.dma_len > 0 || rest == 0);
        if fits {
            *run = Run { psn, va: again.va, left: again.dma_len, begun: false, again: true };
            self.resume(number);
        }
        fits
    }

    /// A duplicate of what has one answer, an atomic, FLUSH or ATOMIC WRITE, gets it again; false when no slot has it.
    pub fn repeat_single(&mut self, psn: Psn, opcode: Opcode) -> bool {
        let Some((number, _)) = self.find(psn) else { return false };
        let fits = self.place(number).is_some_and(|place| {
            let slot = &self.ring[place];
            slot.opcode == opcode && matches!(slot.answer, Answer::Atomic { .. } | Answer::Done)
        });
        if fits {
            self.resume(number);
        }
        fits
    }

    fn resume(&mut self, number: u64) {
        if let Some(place) = self.place(number) {
            self.ring[place].pending = true;
            self.next = self.next.min(number);
        }
    }

    /// The newest slot that a PSN belongs to, and the PSN's place in it.
    fn find(&self, psn: Psn) -> Option<(u64, u32)> {
        (self.first_kept()..self.filled).rev().find_map(|number| {
            let slot = self.ring.get(self.place(number)?)?;
            let offset = u32::try_from(psn.distance_from(slot.first)).ok()?;
            (offset < slot.packets).then_some((number, offset))
        })
    }

    fn first_kept(&self) -> u64 {
        self.filled - self.ring.len() as u64
    }

    fn oldest(&self) -> Option<&Slot> {
        self.ring.get(self.place(self.first_kept())?)
    }

    /// Where slot `number` lies. The limit is a power of two.
    fn place(&self, number: u64) -> Option<usize> {
        let mask = self.limit.checked_sub(1)?;
        Some(number as usize & mask)
    }
}
