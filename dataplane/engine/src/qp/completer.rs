//! The completer: what an arriving response (ACK, NAK, READ response, atomic ACK) completes (rocev2 facts, transport
//! sections 3, 5, 7, 8 and 11).
//!
//! A response with PSN p tells first of all that everything before p arrived. Then it means something itself.

use super::flight::offset;
use super::load::ATOMIC_LEN;
use super::{Ctx, Qp, admits_like, complete, count_admitted, flush, other_mtu, retry};
use crate::counters::{Counter, DropReason};
use crate::fault::Fault;
use crate::memory::{Memory, PlaceError, RegionGone, Span};
use crate::packet::{Payload, RxPacket};
use crate::queue::Wqe;
use crate::status::WcStatus;
use crate::wr::SendOp;
use wire::{Aeth, AtomicAckEth, Frame, Mtu, NakCode, Operation, Position, Psn, Syndrome};

/// A response that was admitted.
pub(crate) fn on_response<M: Memory>(qp: &mut Qp, ctx: &Ctx<'_, M>, packet: &RxPacket<'_>) {
    let psn = packet.frame.bth().psn;
    let operation = packet.frame.info.operation;
    let syndrome = packet.frame.ext::<Aeth>(packet.head).map(|aeth| aeth.syndrome);
    if offset(psn, qp.req.una) >= qp.req.outstanding() {
        // rocev2 facts: what is older than all unfinished or newer than all sent is ignored.
        let answered = psn.is_before(qp.req.una) && operation != Operation::Acknowledge;
        let reason = if answered { DropReason::StaleResponse } else { DropReason::GhostResponse };
        return qp.counters.drop_packet(reason);
    }
    match (operation, syndrome) {
        (Operation::Acknowledge, Some(syndrome)) => on_acknowledge(qp, ctx, psn, syndrome),
        (Operation::ReadResponse, None | Some(Syndrome::Ack { .. })) => {
            on_read_response(qp, ctx, psn, packet)
        }
        (Operation::AtomicAcknowledge, Some(Syndrome::Ack { .. })) => on_atomic_ack(qp, ctx, psn, packet),
        // A refusal comes in an Acknowledge packet, never with data.
        _ => qp.counters.drop_packet(DropReason::ReservedSyndrome),
    }
}

fn on_acknowledge<M: Memory>(qp: &mut Qp, ctx: &Ctx<'_, M>, psn: Psn, syndrome: Syndrome) {
    let behind = offset(psn, qp.req.una);
    match syndrome {
        Syndrome::Ack { .. } => {
            if acknowledge(qp, ctx, behind + 1) && is_evidence(qp, psn) {
                retry::on_implied_nak(qp, ctx);
            }
        }
        // A reserved code means nothing that could be obeyed, not even an acknowledgement.
        Syndrome::Reserved(_) | Syndrome::Nak(NakCode::InvalidRdRequest) => {
            qp.counters.drop_packet(DropReason::ReservedSyndrome);
        }
        Syndrome::RnrNak { .. } | Syndrome::Nak(_) => {
            // rocev2 facts: a NAK acknowledges all that is before it.
            if acknowledge(qp, ctx, behind) {
                return match syndrome {
                    Syndrome::RnrNak { timer } => retry::on_rnr_nak_behind(qp, ctx, psn, timer),
                    _ => retry::on_implied_nak(qp, ctx),
                };
            }
            if qp.state.takes_responses() {
                on_refusal(qp, ctx, syndrome);
            }
        }
    }
}

/// A NAK of the packet at `una`, or inside the READ there.
fn on_refusal<M: Memory>(qp: &mut Qp, ctx: &Ctx<'_, M>, syndrome: Syndrome) {
    let (counter, status) = match syndrome {
        Syndrome::RnrNak { timer } => return retry::on_rnr_nak(qp, ctx, timer),
        Syndrome::Nak(NakCode::InvalidRequest) => (Counter::ReqRemoteInvalidRequest, WcStatus::RemInvReqErr),
        Syndrome::Nak(NakCode::RemoteAccess) => (Counter::ReqRemoteAccessErrors, WcStatus::RemAccessErr),
        Syndrome::Nak(NakCode::RemoteOperational) => (Counter::ReqRemoteOperationErrors, WcStatus::RemOpErr),
        _ => return retry::on_sequence_nak(qp, ctx),
    };
    qp.counters.count(counter);
    flush::fail_send(qp, ctx, status);
}

/// After going back, ACKs of duplicates come: they name the latest packet that the peer has, so one beyond the READ at
/// `una` does not tell that its response was lost. An ACK of something that was new since then does.
fn is_evidence(qp: &Qp, psn: Psn) -> bool {
    qp.req.recover_end.is_none_or(|end| !psn.is_before(end))
}

/// The first `count` outstanding PSNs arrived. True when a response among them is missing.
fn acknowledge<M: Memory>(qp: &mut Qp, ctx: &Ctx<'_, M>, count: u32) -> bool {
    let passed = qp.req.pass_quiet(count);
    let advance = qp.req.advance(count - passed);
    finish(qp, ctx, advance.finished, passed + advance.packets);
    advance.lost_response && qp.state.takes_responses()
}

/// Completes requests and notes the progress.
fn finish<M: Memory>(qp: &mut Qp, ctx: &Ctx<'_, M>, finished: u32, packets: u32) {
    complete::finish(qp, ctx, finished);
    if packets > 0 {
        // Of those that were passed by.
        qp.req.flight.release();
        // Also when no request ended: going back may have left the cursor in what is acknowledged now.
        qp.req.follow_una();
        let ack_deadline = retry::ack_deadline(qp, ctx.now);
        qp.req.progress(packets, ack_deadline);
        complete::settle(qp, ctx);
    }
}

/// Acknowledges all before a response with data. True when the response is the next one that is due.
fn is_due<M: Memory>(qp: &mut Qp, ctx: &Ctx<'_, M>, psn: Psn) -> bool {
    acknowledge(qp, ctx, offset(psn, qp.req.una));
    if !qp.state.takes_responses() {
        return false;
    }
    if psn != qp.req.una {
        retry::on_implied_nak(qp, ctx);
        return false;
    }
    true
}

fn on_read_response<M: Memory>(qp: &mut Qp, ctx: &Ctx<'_, M>, psn: Psn, packet: &RxPacket<'_>) {
    if !is_due(qp, ctx, psn) {
        return;
    }
    let mtu = qp.attr.path_mtu;
    let taken = match qp.req.flight.oldest() {
        Some(wqe) => take_read_response(ctx, wqe, psn, packet, mtu),
        None => return,
    };
    match taken {
        Ok(()) => take_data(qp, ctx),
        Err(ReadFault::Spoilt) => {
            let row = Fault::Spoilt.row(qp.qp_type);
            qp.counters.count(row.counter);
            qp.counters.drop_packet(row.drop);
        }
        Err(ReadFault::Status(status)) => {
            other_mtu::count(qp, packet, mtu);
            flush::fail_send(qp, ctx, status);
        }
    }
}

/// Middles of a READ's responses that follow `first`, which was delivered, with payloads that the memory holds: `hold` has it hold the
/// next one's, or says that there is none. How many were taken; one that is not, or turns out to be spoilt, is a response as any, and nothing
/// that is looked at for it has changed.
#[inline(always)]
pub(super) fn take_read_middles<M: Memory, T>(
    qp: &mut Qp,
    ctx: &Ctx<'_, M>,
    first: &Frame,
    mut hold: impl FnMut() -> Option<T>,
) -> u32 {
    let (len, mtu) = (first.payload_len() as u32, qp.attr.path_mtu.bytes());
    // Those that are due: what is before `una` is answered.
    let is_due = admits_like(qp, first) && first.bth().psn.next() == qp.req.una && len == mtu;
    let (una, outstanding) = (qp.req.una, qp.req.outstanding());
    let Some(wqe) = qp.req.flight.oldest().filter(|wqe| is_due && matches!(wqe.op, SendOp::Read(_))) else {
        return 0;
    };
    let begin = wqe.done_before(una);
    // The last of a READ ends it, and is no Middle. Nor is the first.
    let most = if begin == 0 { 0 } else { outstanding.min((wqe.packets - 1).saturating_sub(begin)) };
    let mut taken = 0;
    while taken < most && hold().is_some() {
        if scatter(ctx.memory, wqe.spans(), (begin + taken) * mtu, Payload::held(len)).is_err() {
            break;
        }
        taken += 1;
    }
    if taken > 0 {
        count_admitted(qp, first, taken);
        qp.req.una = una.add(taken);
        // The window grows as if they had come one by one.
        (1..taken).for_each(|_| qp.req.window.grow(1));
        finish(qp, ctx, 0, 1);
    }
    taken
}

/// What is wrong with a READ response.
enum ReadFault {
    /// It ends the request.
    Status(WcStatus),
    /// It is as if it had not come.
    Spoilt,
}

impl From<PlaceError> for ReadFault {
    fn from(why: PlaceError) -> Self {
        match why {
            PlaceError::Gone(RegionGone) => ReadFault::Status(WcStatus::LocProtErr),
            PlaceError::Spoilt => ReadFault::Spoilt,
        }
    }
}

/// Checks a READ response against what is due and places its payload.
fn take_read_response<M: Memory>(
    ctx: &Ctx<'_, M>,
    wqe: &Wqe,
    psn: Psn,
    packet: &RxPacket<'_>,
    mtu: Mtu,
) -> Result<(), ReadFault> {
    let at = wqe.done_before(psn);
    // rocev2 facts, wire 7 [1: rxe]: FLUSH and ATOMIC WRITE are answered with a READ response Only without bytes.
    let returned = match wqe.op {
        SendOp::Read(_) => wqe.len(),
        SendOp::Flush { .. } | SendOp::AtomicWrite(_) => 0,
        _ => return Err(ReadFault::Status(WcStatus::BadRespErr)),
    };
    if !position_fits(wqe, at, packet.frame.info.position) {
        return Err(ReadFault::Status(WcStatus::BadRespErr));
    }
    let skip = at * mtu.bytes();
    if packet.payload.len() as u32 != mtu.bytes().min(returned - skip) {
        return Err(ReadFault::Status(WcStatus::LocLenErr));
    }
    Ok(scatter(ctx.memory, wqe.spans(), skip, packet.payload)?)
}

/// First, Middle and Last as the place in the message asks; but where a READ was started again, the response is a First
/// or Only too. The Middle of an older response may still come there, and is as good.
fn position_fits(wqe: &Wqe, at: u32, position: Position) -> bool {
    let begins = position.begins();
    position.ends() == (at + 1 == wqe.packets)
        && if at == 0 { begins } else { !begins || at == wqe.read_from }
}

fn on_atomic_ack<M: Memory>(qp: &mut Qp, ctx: &Ctx<'_, M>, psn: Psn, packet: &RxPacket<'_>) {
    if !is_due(qp, ctx, psn) {
        return;
    }
    let (Some(wqe), Some(ack)) = (qp.req.flight.oldest(), packet.frame.ext::<AtomicAckEth>(packet.head))
    else {
        return;
    };
    let fault = match wqe.op {
        SendOp::CompareSwap { .. } | SendOp::FetchAdd { .. } => {
            debug_assert_eq!(wqe.len(), ATOMIC_LEN);
            // rocev2 facts, wire 6: big endian on the wire, host order in memory.
            let original = ack.original.to_ne_bytes();
            let placed = scatter(ctx.memory, wqe.spans(), 0, Payload::contiguous(&original));
            placed.err().map(|_| WcStatus::LocProtErr)
        }
        _ => Some(WcStatus::BadRespErr),
    };
    match fault {
        Some(status) => flush::fail_send(qp, ctx, status),
        None => take_data(qp, ctx),
    }
}

/// The response at `una` is placed.
fn take_data<M: Memory>(qp: &mut Qp, ctx: &Ctx<'_, M>) {
    qp.req.una = qp.req.una.next();
    let una = qp.req.una;
    let finished = qp.req.flight.oldest().is_some_and(|wqe| wqe.done_before(una) == wqe.packets);
    if finished {
        ctx.memory.publish();
    }
    finish(qp, ctx, u32::from(finished), 1);
}

/// Writes a payload to `spans`, beginning `skip` bytes into them. The payload is not longer than they are from there.
fn scatter<M: Memory>(
    memory: &M,
    spans: &[Span],
    mut skip: u32,
    payload: Payload<'_>,
) -> Result<(), PlaceError> {
    let mut spans = spans.iter();
    let mut place: Option<Span> = None;
    for mut piece in payload.pieces() {
        while !piece.is_empty() {
            let Some(span) = place.take().or_else(|| spans.next().copied()) else { return Ok(()) };
            if skip >= span.len() {
                skip -= span.len();
                continue;
            }
            let len = (span.len() - skip).min(piece.len());
            let (now, later) = piece.split_at(len);
            if let Some(part) = span.slice(skip, len) {
                now.place(memory, part, span.len() - skip - len)?;
            }
            place = span.slice(skip + len, span.len() - skip - len).filter(|rest| rest.len() > 0);
            skip = 0;
            piece = later;
        }
    }
    Ok(())
}
