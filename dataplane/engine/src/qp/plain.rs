//! The plain request, as most small messages are: a SEND or WRITE of RC that is one packet out of one piece of memory, unfenced, sent
//! for the first time just after it was taken.
//!
//! What [`request`](super::request) finds out for any packet of any request is known of it beforehand. Those that wait behind it and are
//! like it leave with it, in one run: what they have in common is found out and noted once. Should the sink be full, a request waits
//! under the cursor like any other and goes that way, as it does when it is sent again; all ways make the same packet.

use super::flight::Flight;
use super::requester::region_gone;
use super::{Ctx, Path, Poll, Qp, request, retry};
use crate::counters::Counter;
use crate::memory::{Memory, Span};
use crate::mr::OpenKey;
use crate::packet::{Follower, Followers, Gather, PacketSink, SinkError, TxPacket, TxRun};
use crate::queue::Wqe;
use crate::sched::Turn;
use crate::wr::{SendFlags, SendOp};
use wire::{Bth, ExtHeaders, Opcode, Operation, Position, Psn, Qpn, RKey, Reth, Service};

/// Sends the request under the cursor, which is plain and was just taken, and those like it that follow. The window has room for the first,
/// or it would not have been taken.
#[inline]
pub(super) fn send<M: Memory>(
    qp: &mut Qp,
    ctx: &Ctx<'_, M>,
    sink: &mut impl PacketSink,
    turn: &mut Turn,
) -> Poll {
    let Qp { req, path, attr, .. } = qp;
    let wqe = req.flight.get_mut(req.cursor.seq);
    let head = match emit(wqe, path, attr.dest_qpn, sink) {
        Ok(head) => head,
        Err(SinkError::Full) => return Poll::Full,
        Err(SinkError::RegionGone) => return region_gone(qp, ctx),
    };
    wqe.started = true;
    let (seq, flags) = (req.cursor.seq, wqe.flags);
    if qp.req.deadline.is_none() {
        qp.req.deadline = retry::ack_deadline(qp, ctx.now);
    }
    sent(qp, 1, head.len);
    if qp.req.flight.has_seen() {
        return follow(qp, ctx, sink, turn, (seq, flags, head));
    }
    Poll::Sent(head.len as usize)
}

/// What a packet has in common with those like it.
#[derive(Clone, Copy)]
struct Head {
    bth: [u8; Bth::LEN],
    reth: Option<Reth>,
    len: u32,
}

/// Offers the packet of one. Gives what those like it have of it.
#[inline]
fn emit(
    wqe: &Wqe,
    path: &Option<Path>,
    dest_qpn: Qpn,
    sink: &mut impl PacketSink,
) -> Result<Head, SinkError> {
    // A QP in RTS has a path.
    let Some(path) = path else { return Err(SinkError::RegionGone) };
    let is_write = matches!(wqe.op, SendOp::Write(_));
    let operation = if is_write { Operation::Write } else { Operation::Send };
    let opcode = Opcode::of(Service::Rc, operation, Position::Only).ok_or(SinkError::RegionGone)?;
    let payload = wqe.plain_span().map_or(Gather::EMPTY, Gather::Piece);
    let bth = Bth {
        solicited: wqe.flags.contains(SendFlags::SOLICITED) && request::rouses(&wqe.op),
        ack_req: true,
        pad_count: Bth::pad_for(payload.len()),
        ..Bth::new(opcode, dest_qpn, wqe.first_psn)
    };
    let (bth, ext) = (bth.to_bytes(), ExtHeaders::EMPTY);
    let mut tx = TxPacket { template: &path.template, bth, ext, payload, again: false };
    let mut reth = None;
    if let SendOp::Write(remote) = &wqe.op {
        let its = request::reth(wqe, remote, 0);
        tx.ext.push(its);
        reth = Some(its);
    }
    sink.emit(&tx)?;
    Ok(Head { bth, reth, len: wqe.len() })
}

/// Notes that so many packets of `len` bytes each left, as [`request::sent`] does for any packet.
#[inline]
fn sent(qp: &mut Qp, packets: u32, len: u32) {
    let req = &mut qp.req;
    req.sent_end = req.sent_end.add(packets);
    req.cursor.seq = req.cursor.seq.wrapping_add(packets);
    req.since_ack_req = 0;
    qp.counters.add(Counter::TxPackets, packets.into());
    qp.counters.add(Counter::TxPayloadBytes, u64::from(packets) * u64::from(len));
}

/// Sends the requests that wait behind the one that just left, as long as they are like it, window and turn allow it, and the sink takes
/// them. Whatever is odd about the next is left to [`load`](super::load), which has not begun then.
fn follow<M: Memory>(
    qp: &mut Qp,
    ctx: &Ctx<'_, M>,
    sink: &mut impl PacketSink,
    turn: &mut Turn,
    (seq, flags, head): (u32, SendFlags, Head),
) -> Poll {
    let Head { bth, reth, len } = head;
    let sent_alone = Poll::Sent(len as usize);
    let Qp { req, path, pd, sq_sig_all, .. } = qp;
    let room = req.window.size().saturating_sub(req.outstanding());
    // The peer is ready for all: else the one before would have had to wait.
    debug_assert!(req.rnr.is_none());
    let Some(path) = path else { return sent_alone };
    let key = match req.flight.get(seq).plain_sge().map(|sge| ctx.keys.open(sge.lkey, *pd)) {
        None => None,
        Some(Some(key)) => Some(key),
        Some(None) => return sent_alone,
    };
    let run = TxRun { template: &path.template, bth, reth, len };
    let mut alike = Alike {
        flight: &mut req.flight,
        turn,
        key,
        rkey: reth.map(|reth| reth.rkey),
        len,
        flags,
        all_signaled: *sq_sig_all,
        room,
        psn: req.sent_end,
        taken: 0,
    };
    let end = sink.emit_run(&run, &mut alike);
    let taken = alike.taken;
    // The last was taken, and stays under the cursor.
    let left = taken - u32::from(end.is_err());
    sent(qp, left, len);
    match end {
        Ok(()) => sent_alone,
        Err(why) => {
            qp.req.flight.get_mut(qp.req.cursor.seq).started = false;
            match why {
                SinkError::Full => Poll::Full,
                SinkError::RegionGone => region_gone(qp, ctx),
            }
        }
    }
}

/// Requests like one that left.
struct Alike<'a> {
    flight: &'a mut Flight,
    turn: &'a mut Turn,
    /// Of their memory, if they have bytes.
    key: Option<OpenKey>,
    /// Of the peer's, if they are WRITEs.
    rkey: Option<RKey>,
    len: u32,
    flags: SendFlags,
    all_signaled: bool,
    /// PSNs that the window lets out.
    room: u32,
    /// Of the next.
    psn: Psn,
    taken: u32,
}

impl Followers for Alike<'_> {
    #[inline(always)]
    fn next(&mut self) -> Option<Follower> {
        let Alike { flight, turn, key, rkey, len, flags, all_signaled, room, psn, taken } = self;
        if taken == room {
            return None;
        }
        let (mut va, mut span) = (0, Span::EMPTY);
        let wqe = flight.take_seen(|wqe| {
            let Some(to) = wqe.is_like(*rkey, *len, *flags) else { return false };
            va = to;
            if let Some(key) = key {
                match wqe.span_by(key) {
                    Some(found) => span = found,
                    None => return false,
                }
            }
            // The one before it left; and this one is to have its part of the turn.
            turn.spend_and_go_on(*len as usize)
        })?;
        let its_psn = *psn;
        wqe.take_plain(its_psn, *all_signaled);
        if key.is_some() {
            wqe.set_plain_span(span);
        }
        wqe.started = true;
        *psn = its_psn.next();
        *taken += 1;
        Some(Follower { psn: its_psn, ack_req: true, va, span })
    }
}
