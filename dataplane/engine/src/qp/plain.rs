//! The plain request, as most small messages are: a SEND or WRITE of RC that is one packet out of one piece of memory, unfenced, sent
//! for the first time just after it was taken.
//!
//! What [`request`](super::request) finds out for any packet of any request is known of it beforehand. Should the sink be full, it waits
//! under the cursor like any other and goes that way, as it does when it is sent again; both ways make the same packet.

use super::requester::region_gone;
use super::{Ctx, Path, Poll, Qp, request, retry};
use crate::Nanos;
use crate::counters::Counter;
use crate::memory::Memory;
use crate::packet::{Gather, PacketSink, SinkError, TxPacket};
use crate::queue::Wqe;
use crate::wr::{SendFlags, SendOp};
use wire::{Bth, ExtHeaders, Opcode, Operation, Position, Qpn, Service};

/// Sends the request under the cursor, which is plain and was just taken. The window has room, or it would not have been.
#[inline]
pub(super) fn send<M: Memory>(qp: &mut Qp, ctx: &Ctx<'_, M>, sink: &mut impl PacketSink) -> Poll {
    let Qp { req, path, attr, .. } = qp;
    let wqe = req.flight.get_mut(req.cursor.seq);
    match emit(wqe, path, attr.dest_qpn, sink) {
        Ok(bytes) => {
            wqe.started = true;
            sent(qp, ctx.now, bytes);
            Poll::Sent(bytes)
        }
        Err(SinkError::Full) => Poll::Full,
        Err(SinkError::RegionGone) => region_gone(qp, ctx),
    }
}

/// Offers its packet. Gives the bytes of its payload.
#[inline]
fn emit(
    wqe: &Wqe,
    path: &Option<Path>,
    dest_qpn: Qpn,
    sink: &mut impl PacketSink,
) -> Result<usize, SinkError> {
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
    if let SendOp::Write(remote) = &wqe.op {
        tx.ext.push(request::reth(wqe, remote, 0));
    }
    sink.emit(&tx)?;
    Ok(payload.len())
}

/// Notes that it left, as [`request::sent`] does for any packet.
#[inline]
fn sent(qp: &mut Qp, now: Nanos, bytes: usize) {
    if qp.req.deadline.is_none() {
        qp.req.deadline = retry::ack_deadline(qp, now);
    }
    let req = &mut qp.req;
    req.sent_end = req.sent_end.next();
    req.cursor.seq = req.cursor.seq.wrapping_add(1);
    req.since_ack_req = 0;
    qp.counters.count(Counter::TxPackets);
    qp.counters.add(Counter::TxPayloadBytes, bytes as u64);
}
