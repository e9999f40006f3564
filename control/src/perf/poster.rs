//! How one message is posted: what all messages of a run have in common, and what each has of its own.
//!
//! Nothing here allocates, locks or makes a system call once a run is under way.

use super::error::RunError;
use super::layout::{Cursor, Layout};
use super::op::Verb;
use super::params::Params;
use super::pattern::{Pattern, inside};
use super::side::{Peer, inline_bytes, spoil};
use crate::verbs::Mr;
use engine::queue::{PostError, SendList};
use engine::wr::Remote;
use engine::{SendFlags, SendOp, SendWr, Sge, WrData};
use std::sync::Arc;
use wire::{LKey, RKey};

/// The bits of a `wr_id` that carry a message number or slot; the QP's index is above them.
const NUMBER_BITS: u32 = 48;
/// Longer than any run: a limit that is not reached.
pub(super) const ENDLESS: u64 = u64::MAX;

/// A `wr_id`.
pub(super) fn tag(qp: usize, number: u64) -> u64 {
    (qp as u64) << NUMBER_BITS | number
}

/// The QP's index and the number of a `wr_id`.
#[inline]
pub(super) fn untag(wr_id: u64) -> (usize, u64) {
    ((wr_id >> NUMBER_BITS) as usize, wr_id & ((1 << NUMBER_BITS) - 1))
}

/// One QP's messages.
pub(super) struct Flow {
    index: usize,
    peer: Peer,
    pub next: Next,
    /// Known to be complete.
    pub completed: u64,
    /// How many there will be.
    pub limit: u64,
    pub pattern: Pattern,
}

/// What changes with each message. Who posts several has a copy at hand: with it in a [`Flow`] all of it would be stored and loaded for
/// each message.
#[derive(Clone, Copy)]
pub(super) struct Next {
    /// Posted so far, and so the number of the next message.
    pub posted: u64,
    local: Cursor,
    target: Cursor,
    /// Messages posted since the last one that gives a completion.
    pub unsignaled: u64,
}

impl Flow {
    /// Nothing is posted. `to_server` says which way content goes.
    pub fn new(index: usize, peer: Peer, params: &Params, layout: &Layout, to_server: bool) -> Flow {
        let (local, target) = (layout.local_cursor(index), layout.target_cursor(index));
        Flow {
            index,
            peer,
            next: Next { posted: 0, local, target, unsignaled: 0 },
            completed: 0,
            limit: params.iters().unwrap_or(ENDLESS),
            pattern: Pattern::new(params.seed, index, to_server),
        }
    }
}

/// What all messages have in common.
pub(super) struct Poster {
    pub verb: Verb,
    size: u32,
    pub verify: bool,
    imm: bool,
    inline: bool,
    /// The last byte of each message tells its number: the peer polls it.
    marks: bool,
    pub cq_mod: u64,
    pub local: Mr,
    local_addr: u64,
    lkey: LKey,
    /// A message whose content is spoilt.
    tamper: Option<u64>,
}

impl Poster {
    /// Of a run whose messages come from, or go to, `local`.
    pub fn new(params: &Params, cq_mod: u64, local: Mr, tamper: Option<u64>) -> Poster {
        Poster {
            verb: params.op.verb,
            size: params.size,
            verify: params.verify,
            imm: params.imm,
            marks: params.op.is_ping_pong() && params.op.verb == Verb::Write,
            inline: params.size <= params.inline && matches!(params.op.verb, Verb::Send | Verb::Write),
            cq_mod,
            local_addr: local.addr(),
            lkey: local.lkey(),
            local,
            tamper,
        }
    }

    /// Bytes of a message.
    pub fn size(&self) -> u32 {
        self.size
    }

    /// Whether this message is the one to spoil.
    pub fn is_spoilt(&self, flow: &Flow, number: u64) -> bool {
        self.tamper == Some(number) && flow.index == 0
    }

    /// Posts the next `count` messages of a QP; false when the queue was full before that.
    #[inline(always)]
    pub fn post(
        &self,
        flow: &Flow,
        at: &mut Next,
        list: &mut SendList<'_>,
        count: u64,
    ) -> Result<bool, RunError> {
        // A loop for each kind of plain messages: what they have in common is decided once.
        match self.verb {
            _ if self.is_odd(&flow.peer) => {
                self.post_each(flow, at, count, |message| self.push(flow, list, message))
            }
            Verb::Write => {
                self.post_each(flow, at, count, |Message { wr_id, target, piece, flags, .. }| {
                    list.push_write(wr_id, remote(&flow.peer, target), piece, flags)
                })
            }
            _ => self.post_each(flow, at, count, |Message { wr_id, piece, flags, .. }| {
                list.push_send(wr_id, piece, flags)
            }),
        }
    }

    /// More is to be done for a message than to post a SEND or WRITE of its piece.
    fn is_odd(&self, peer: &Peer) -> bool {
        let is_plain = matches!(self.verb, Verb::Send | Verb::Write) && peer.datagram.is_none();
        self.verify || self.marks || self.inline || self.imm || !is_plain
    }

    #[inline(always)]
    fn post_each(
        &self,
        flow: &Flow,
        at: &mut Next,
        count: u64,
        mut push: impl FnMut(Message) -> Result<(), PostError>,
    ) -> Result<bool, RunError> {
        for _ in 0..count {
            let number = at.posted;
            let (offset, target) = (at.local.step(), at.target.step());
            let next = number + 1;
            let signaled = at.unsignaled + 1 >= self.cq_mod || next == flow.limit;
            let flags = if signaled { SendFlags::SIGNALED } else { SendFlags::empty() };
            let piece = Sge { addr: self.local_addr + offset, len: self.size, lkey: self.lkey };
            match push(Message { number, offset, target, wr_id: tag(flow.index, next), piece, flags }) {
                Ok(()) => {
                    at.posted = next;
                    at.unsignaled = if signaled { 0 } else { at.unsignaled + 1 };
                }
                Err(PostError::Full) => {
                    at.local.back();
                    at.target.back();
                    return Ok(false);
                }
                Err(why) => return Err(RunError::Post { qp: flow.index, why }),
            }
        }
        Ok(true)
    }

    /// Adds any message to a list.
    fn push(&self, flow: &Flow, list: &mut SendList<'_>, message: Message) -> Result<(), PostError> {
        let Message { number, offset, target, wr_id, piece, flags } = message;
        if self.verify {
            self.prepare(flow, number, offset);
        }
        if self.marks {
            let last = offset as usize + self.size as usize - 1;
            inside(self.local.buffer().write(last, &[(number + 1) as u8]));
        }
        let imm = self.imm.then(|| (number as u32).to_be_bytes());
        let op = operation(self.verb, &flow.peer, target, imm);
        if !self.inline {
            return list.push_piece(wr_id, op, piece, flags);
        }
        let data = WrData::Inline(inline_bytes(&self.local, offset, self.size));
        list.push(SendWr { wr_id, op, data, flags })
    }

    /// The content of a message to send, or a slot in which nothing looks like what will be fetched.
    fn prepare(&self, flow: &Flow, number: u64, offset: u64) {
        match self.verb {
            Verb::Send | Verb::Write => {
                flow.pattern.write(number, self.local.buffer(), offset, self.size);
                if self.is_spoilt(flow, number) {
                    spoil(&self.local, offset, self.size);
                }
            }
            Verb::Read => inside(self.local.buffer().fill(offset as usize, self.size as usize, 0)),
            Verb::Atomic => inside(self.local.buffer().store_u64(offset as usize, 0)),
        }
    }
}

/// What a message has of its own.
struct Message {
    number: u64,
    /// Where it lies.
    offset: u64,
    target: u64,
    wr_id: u64,
    piece: Sge,
    flags: SendFlags,
}

#[inline]
fn operation(verb: Verb, peer: &Peer, target: u64, imm: Option<[u8; 4]>) -> SendOp {
    let remote = remote(peer, target);
    match (verb, &peer.datagram) {
        (Verb::Send, Some(datagram)) => SendOp::UdSend {
            ah: Arc::clone(&datagram.ah),
            remote_qpn: datagram.qpn,
            qkey: datagram.qkey,
            imm,
        },
        (Verb::Send, None) => imm.map_or(SendOp::Send, SendOp::SendImm),
        (Verb::Write, _) => imm.map_or(SendOp::Write(remote), |imm| SendOp::WriteImm(remote, imm)),
        (Verb::Read, _) => SendOp::Read(remote),
        (Verb::Atomic, _) => SendOp::FetchAdd { remote: Remote { addr: peer.target_addr, ..remote }, add: 1 },
    }
}

/// A place in the peer's memory.
#[inline]
fn remote(peer: &Peer, target: u64) -> Remote {
    Remote { addr: peer.target_addr + target, rkey: RKey::new(peer.target_rkey) }
}
