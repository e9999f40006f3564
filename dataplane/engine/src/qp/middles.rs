//! The middle packets of a long message, SEND, WRITE or READ response: those sent for the first time leave in one run.
//!
//! They differ in PSN and payload, and requests in whether they ask for an acknowledgement. So what [`request`](super::request) and
//! [`respond`](super::respond) find out for any packet is found out and noted once, for as many as turn, window and sink allow. The
//! first packet of a message and its last one go the general way; so do those that are sent again, and messages in several pieces. Both
//! ways make the same packets.

use super::outstanding::Cursor;
use super::request::{self, AckReqs};
use super::requester::region_gone;
use super::{Ctx, Poll, Qp, QpType, retry, unanswered};
use crate::counters::Counter;
use crate::memory::{Memory, Span};
use crate::packet::{Follower, Followers, PacketSink, SinkError, TxRun};
use crate::sched::Turn;
use wire::{Bth, Opcode, Position, Psn};

/// Sends the request packets from the one under the cursor on, for which the window has room, if they are such. `None`, and nothing has
/// changed, if they are not, or if the sink wants no run.
pub(super) fn send<M: Memory>(
    qp: &mut Qp,
    ctx: &Ctx<'_, M>,
    sink: &mut impl PacketSink,
    turn: &mut Turn,
) -> Option<Poll> {
    let Qp { req, path, attr, .. } = qp;
    let Cursor { seq, packet } = req.cursor;
    let wqe = req.flight.get(seq);
    let (psn, last) = (wqe.first_psn.add(packet), wqe.packets - 1);
    let is_middle = packet > 0 && packet < last && !wqe.op.returns_data();
    if !is_middle || psn != req.sent_end || !matches!(qp.qp_type, QpType::Rc | QpType::Uc) {
        return None;
    }
    // While the peer is not ready only what was sent before is sent.
    debug_assert!(req.rnr.is_none());
    let (Some(path), &[span]) = (path, wqe.spans()) else { return None };
    let opcode = Opcode::of(qp.qp_type.service(), request::operation(&wqe.op), Position::Middle)?;
    let bth = Bth::new(opcode, attr.dest_qpn, psn).to_bytes();
    let len = attr.path_mtu.bytes();
    let ack_reqs = AckReqs::of(req, psn);
    let (reliable, waits) = (qp.qp_type.is_reliable(), req.outstanding() > 0);
    let run = TxRun { template: &path.template, bth, reth: None, len };
    let left = (last - packet).min(ack_reqs.room);
    let at = packet * len;
    let ack_reqs = reliable.then_some(ack_reqs);
    let mut middles = Middles { turn, span, at, len, psn, left, taken: 0, ack_reqs, since_before: 0 };
    let Sent { packets, end, since_ack_req } = middles.leave(&run, sink)?;
    if packets > 0 {
        if qp.req.deadline.is_none() {
            qp.req.deadline = retry::ack_deadline(qp, ctx.now);
        }
        let req = &mut qp.req;
        req.sent_end = psn.add(packets);
        req.cursor.packet = packet + packets;
        req.since_ack_req = since_ack_req;
        count(qp, packets, len);
        if !reliable {
            unanswered::sent(qp, ctx, sink, waits);
        }
    }
    Some(match end {
        Ok(()) => Poll::Sent(len as usize),
        Err(SinkError::Full) => Poll::Full,
        Err(SinkError::RegionGone) => region_gone(qp, ctx),
    })
}

/// Sends READ responses with this opcode from this PSN on, all of `span` but the last one. How many, and why not the next, if that was
/// offered. `None`, and nothing has changed, if the sink wants no run.
pub(super) fn respond(
    qp: &mut Qp,
    opcode: Opcode,
    (psn, span): (Psn, Span),
    sink: &mut impl PacketSink,
    turn: &mut Turn,
) -> Option<(u32, Result<(), SinkError>)> {
    let Qp { path, attr, .. } = qp;
    let len = attr.path_mtu.bytes();
    let bth = Bth::new(opcode, attr.dest_qpn, psn).to_bytes();
    let run = TxRun { template: &path.as_ref()?.template, bth, reth: None, len };
    let left = span.len().div_ceil(len) - 1;
    let mut middles =
        Middles { turn, span, at: 0, len, psn, left, taken: 0, ack_reqs: None, since_before: 0 };
    let Sent { packets, end, .. } = middles.leave(&run, sink)?;
    if packets > 0 {
        qp.resp.slots.sent(packets, packets * len);
        count(qp, packets, len);
    }
    Some((packets, end))
}

fn count(qp: &mut Qp, packets: u32, len: u32) {
    qp.counters.add(Counter::TxPackets, packets.into());
    qp.counters.add(Counter::TxPayloadBytes, u64::from(packets) * u64::from(len));
}

/// Packets of `len` bytes each of one message.
struct Middles<'a> {
    turn: &'a mut Turn,
    /// The message's memory.
    span: Span,
    /// Where in it the next one begins.
    at: u32,
    len: u32,
    /// Of the next one.
    psn: Psn,
    /// So many may leave.
    left: u32,
    taken: u32,
    /// Of requests that are acknowledged.
    ack_reqs: Option<AckReqs>,
    /// Packets since the last one that asked for an acknowledgement, without the last that was taken.
    since_before: u32,
}

/// What became of them.
struct Sent {
    /// So many left.
    packets: u32,
    /// Why the next one has not, if it was asked for.
    end: Result<(), SinkError>,
    /// Packets since the last one that asked for an acknowledgement and left.
    since_ack_req: u32,
}

impl Middles<'_> {
    /// Offers them. `None` if no one was asked for.
    fn leave(&mut self, run: &TxRun<'_>, sink: &mut impl PacketSink) -> Option<Sent> {
        let end = sink.emit_run(run, self);
        let packets = self.taken.checked_sub(u32::from(end.is_err()))?;
        let since = self.ack_reqs.map_or(0, |ack_reqs| ack_reqs.since);
        let since_ack_req = if end.is_err() { self.since_before } else { since };
        (self.taken > 0).then_some(Sent { packets, end, since_ack_req })
    }
}

impl Followers for Middles<'_> {
    #[inline(always)]
    fn next(&mut self) -> Option<Follower> {
        // The one before it left; and this one is to have its part of the turn.
        if self.taken == self.left || (self.taken > 0 && !self.turn.spend_and_go_on(self.len as usize)) {
            return None;
        }
        let span = self.span.slice(self.at, self.len)?;
        let psn = self.psn;
        let mut ack_req = false;
        if let Some(ack_reqs) = &mut self.ack_reqs {
            self.since_before = ack_reqs.since;
            ack_req = ack_reqs.next();
        }
        self.psn = psn.next();
        self.at += self.len;
        self.taken += 1;
        Some(Follower { psn, ack_req, va: 0, span })
    }
}
