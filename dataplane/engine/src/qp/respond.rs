//! Responses on their way out: ACKs, NAKs, READ responses and atomic ACKs, in PSN order.
//!
//! First the slots send (READ responses and atomic ACKs, oldest first), then one ACK or NAK for all that came
//! after. An ACK is only a wish until it is sent, so within a burst all wishes become one packet, and none
//! overtakes a READ.

use super::slots::{Answer, Run};
use super::{Ctx, Poll, Qp, flush, middles, responder};
use crate::access::Access;
use crate::counters::{Counter, DropReason};
use crate::fault::Fault;
use crate::memory::Memory;
use crate::mr::{KeyUser, PdId};
use crate::packet::{Gather, PacketSink, SinkError, TxPacket};
use crate::sched::Turn;
use wire::{
    Aeth, AtomicAckEth, Bth, ExtHeaders, ExtKind, NakCode, Opcode, OpcodeInfo, Operation, Position, Psn,
    RKey, Syndrome,
};

/// The ACK or NAK that is to be sent when the slots have sent theirs.
#[derive(Debug, Default)]
pub(crate) struct Outbox {
    ack: bool,
    nak: Nak,
}

/// What is to be said about the expected PSN.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Nak {
    /// Nothing.
    #[default]
    None,
    /// It is missing; packets up to `ahead` were dropped.
    Sequence { ahead: Psn },
    /// It found no receive.
    Rnr,
    /// One of the two was sent: silence until it arrives (rocev2 facts, transport 6).
    Told,
    /// A request is refused for good.
    Final { code: NakCode, psn: Psn },
}

impl Outbox {
    /// Something is to be sent.
    pub fn has_any(&self) -> bool {
        self.ack || !matches!(self.nak, Nak::None | Nak::Told)
    }

    /// The next NAK is the last word of the QP.
    pub fn is_final(&self) -> bool {
        matches!(self.nak, Nak::Final { .. })
    }

    /// The packet with the expected PSN is here. A sequence NAK that did not go out yet may still be needed
    /// for what was dropped behind it.
    pub fn expected_arrived(&mut self) {
        if matches!(self.nak, Nak::Rnr | Nak::Told) {
            self.nak = Nak::None;
        }
    }

    /// A SEND or WRITE wants an ACK.
    pub fn ask_ack(&mut self) {
        self.ack = true;
    }

    /// A READ or atomic was taken: its response acknowledges all before it.
    pub fn ack_follows_from_response(&mut self) {
        self.ack = false;
    }

    /// A packet came ahead of its turn. One NAK tells, whatever else is missing (rocev2 facts, transport 6).
    pub fn ask_sequence_nak(&mut self, psn: Psn) {
        self.nak = match self.nak {
            Nak::None => Nak::Sequence { ahead: psn },
            Nak::Sequence { ahead } if ahead.is_before(psn) => Nak::Sequence { ahead: psn },
            // After an RNR NAK the peer knows where to go on, and is told to wait before it does.
            told => told,
        };
    }

    /// The expected packet found no receive.
    pub fn ask_rnr_nak(&mut self) {
        self.nak = Nak::Rnr;
    }

    /// The request at `psn` is refused for good.
    pub fn refuse(&mut self, code: NakCode, psn: Psn) {
        self.nak = Nak::Final { code, psn };
    }
}

/// Sends the next response packet; several where they are alike.
pub(crate) fn poll<M: Memory>(
    qp: &mut Qp,
    ctx: &Ctx<'_, M>,
    sink: &mut impl PacketSink,
    turn: &mut Turn,
) -> Poll {
    if !qp.resp.has_response() {
        return Poll::Idle;
    }
    if !qp.state.takes_requests() || qp.path.is_none() {
        qp.resp.discard_responses();
        return Poll::Idle;
    }
    loop {
        let poll = match qp.resp.slots.sending().map(|slot| (slot.first, slot.answer)) {
            Some((_, Answer::Read { reth, run, pd })) => {
                read_response(qp, ctx, (reth.rkey, pd), run, sink, turn)
            }
            Some((psn, Answer::Atomic { original })) => Some(atomic_acknowledge(qp, psn, original, sink)),
            Some((psn, Answer::Done)) => Some(done(qp, psn, sink)),
            None => return acknowledge(qp, ctx, sink),
        };
        if let Some(poll) = poll {
            return poll;
        }
    }
}

/// One READ response, or several; `None` when the memory may not be read any more and the slot was given up.
fn read_response<M: Memory>(
    qp: &mut Qp,
    ctx: &Ctx<'_, M>,
    (rkey, pd): (RKey, PdId),
    run: Run,
    sink: &mut impl PacketSink,
    turn: &mut Turn,
) -> Option<Poll> {
    let mtu = qp.attr.path_mtu.bytes();
    let len = run.left.min(mtu);
    let position = Position::of(!run.begun, run.left <= mtu);
    let Some(info) = response(qp, Operation::ReadResponse, position) else { return Some(Poll::Idle) };
    let mut ext = ExtHeaders::EMPTY;
    if info.has(ExtKind::Aeth) {
        ext = ext.with(aeth(qp, Syndrome::ACK));
    }
    // The key may have been taken away since the request, so each response, or run of them, asks for all that is left.
    let span = match run.left {
        0 => Ok(None),
        left => ctx
            .keys
            .remote(rkey, KeyUser { pd, ..qp.key_user() }, run.va, left, Access::REMOTE_READ)
            .map(Some),
    };
    let (mut sent, mut result) = (0, Err(SinkError::RegionGone));
    if let Ok(span) = &span {
        let is_fresh = position == Position::Middle && !run.again;
        let middles = span
            .filter(|_| is_fresh)
            .and_then(|span| middles::respond(qp, info.opcode, (run.psn, span), sink, turn));
        (sent, result) = middles.unwrap_or_else(|| {
            let payload = Gather::Spans { spans: span.as_slice(), offset: 0, len };
            let result = emit(qp, info, run.psn, ext, Data { payload, again: run.again }, sink);
            if result.is_ok() {
                qp.resp.slots.sent(1, len);
            }
            (0, result)
        });
    }
    match result {
        Ok(()) => Some(Poll::Sent(len as usize)),
        Err(SinkError::Full) => Some(Poll::Full),
        Err(SinkError::RegionGone) => {
            lost_memory(qp, ctx, run.psn.add(sent));
            None
        }
    }
}

/// The memory of a READ went away before its response: a NAK where the response would have been (rocev2
/// facts, transport 7), and silence if it was for a duplicate (transport 9).
fn lost_memory<M: Memory>(qp: &mut Qp, ctx: &Ctx<'_, M>, psn: Psn) {
    if qp.resp.slots.give_up() {
        return qp.counters.drop_packet(DropReason::UnknownDuplicate);
    }
    qp.resp.slots.stop();
    responder::refuse(qp, ctx, psn, Fault::RemoteAccess);
}

fn atomic_acknowledge(qp: &mut Qp, psn: Psn, original: u64, sink: &mut impl PacketSink) -> Poll {
    let Some(info) = response(qp, Operation::AtomicAcknowledge, Position::Only) else { return Poll::Idle };
    let ext = ExtHeaders::EMPTY.with(aeth(qp, Syndrome::ACK)).with(AtomicAckEth { original });
    if emit(qp, info, psn, ext, Data::NONE, sink).is_err() {
        return Poll::Full;
    }
    qp.resp.slots.sent(1, 0);
    Poll::Sent(0)
}

/// FLUSH and ATOMIC WRITE are answered as an empty READ would be (rocev2 facts, wire 7) [1: rxe].
fn done(qp: &mut Qp, psn: Psn, sink: &mut impl PacketSink) -> Poll {
    let Some(info) = response(qp, Operation::ReadResponse, Position::Only) else { return Poll::Idle };
    let ext = ExtHeaders::EMPTY.with(aeth(qp, Syndrome::ACK));
    if emit(qp, info, psn, ext, Data::NONE, sink).is_err() {
        return Poll::Full;
    }
    qp.resp.slots.sent(1, 0);
    Poll::Sent(0)
}

/// The ACK or NAK. This is the one place where a NAK is made. Every NAK acknowledges what was before it, so
/// it takes the ACK's place.
fn acknowledge<M: Memory>(qp: &mut Qp, ctx: &Ctx<'_, M>, sink: &mut impl PacketSink) -> Poll {
    let expected = qp.resp.expected;
    if matches!(qp.resp.outbox.nak, Nak::Sequence { ahead } if ahead.is_before(expected)) {
        // What was dropped came again, and nothing is missing any more.
        qp.resp.outbox.nak = Nak::None;
    }
    let (syndrome, psn, counter) = match qp.resp.outbox.nak {
        Nak::Sequence { .. } => (Syndrome::Nak(NakCode::PsnSequence), expected, Counter::SeqNakSent),
        Nak::Rnr => (Syndrome::RnrNak { timer: qp.attr.min_rnr_timer }, expected, Counter::RnrNakSent),
        Nak::Final { code, psn } => (Syndrome::Nak(code), psn, Counter::NakSent),
        Nak::None | Nak::Told if qp.resp.outbox.ack => (Syndrome::ACK, expected.prev(), Counter::AckSent),
        Nak::None | Nak::Told => return Poll::Idle,
    };
    let Some(info) = response(qp, Operation::Acknowledge, Position::Only) else { return Poll::Idle };
    let ext = ExtHeaders::EMPTY.with(aeth(qp, syndrome));
    if emit(qp, info, psn, ext, Data::NONE, sink).is_err() {
        return Poll::Full;
    }
    qp.counters.count(counter);
    qp.resp.outbox.ack = false;
    match qp.resp.outbox.nak {
        Nak::Final { .. } => {
            qp.resp.discard_responses();
            flush::enter_error(qp, ctx);
        }
        Nak::Sequence { .. } | Nak::Rnr => qp.resp.outbox.nak = Nak::Told,
        Nak::None | Nak::Told => {}
    }
    Poll::Sent(0)
}

/// The MSN counts what is complete now, which may be more than when the request arrived.
fn aeth(qp: &Qp, syndrome: Syndrome) -> Aeth {
    Aeth { syndrome, msn: qp.resp.msn }
}

/// The opcode of a response.
fn response(qp: &Qp, operation: Operation, position: Position) -> Option<&'static OpcodeInfo> {
    Opcode::of(qp.qp_type.service(), operation, position)?.info()
}

/// What a response carries.
struct Data<'a> {
    payload: Gather<'a>,
    again: bool,
}

impl Data<'_> {
    const NONE: Data<'static> = Data { payload: Gather::EMPTY, again: false };
}

fn emit(
    qp: &mut Qp,
    info: &OpcodeInfo,
    psn: Psn,
    ext: ExtHeaders,
    Data { payload, again }: Data<'_>,
    sink: &mut impl PacketSink,
) -> Result<(), SinkError> {
    let Some(path) = &qp.path else { return Err(SinkError::Full) };
    let len = payload.len();
    let bth = Bth { pad_count: Bth::pad_for(len), ..Bth::new(info.opcode, qp.attr.dest_qpn, psn) };
    let bth = bth.to_bytes();
    sink.emit(&TxPacket { template: &path.template, bth, ext, payload, again })?;
    qp.counters.count(Counter::TxPackets);
    qp.counters.add(Counter::TxPayloadBytes, len as u64);
    Ok(())
}
