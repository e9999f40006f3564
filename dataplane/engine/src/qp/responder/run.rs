//! Packets that follow one another in a run: WRITEs or plain SENDs of RC that came in a row, in one packet each, alike but for PSN, AckReq,
//! RETH and payload.
//!
//! What the stages ask of the first is asked once, and what the others come to is noted together. It is left to the stages as soon as
//! one of them would do anything else than execute a packet, complete its receive and acknowledge it, and nothing has changed for it by then.

use super::write::WriteProgress;
use super::{length, plain};
use crate::access::Access;
use crate::counters::Counter;
use crate::memory::Memory;
use crate::mr::LatestKey;
use crate::qp::{Ctx, Qp, admits_like, count_admitted};
use crate::status::{Cqe, WcOpcode, WcStatus};
use crate::wr::Sge;
use wire::{Bth, Frame, Opcode, OpcodeInfo, Operation, Position, Reth, Service};

/// Bytes of AckReq and the PSN, where what a follower has of its own begins.
pub(super) const LAST: usize = 4;

const WRITE_ONLY: Option<Opcode> = Opcode::of(Service::Rc, Operation::Write, Position::Only);

/// Whether packets that follow one of this kind may be executed with it.
#[inline(always)]
pub fn runs(info: &OpcodeInfo) -> bool {
    let opcode = Some(info.opcode);
    opcode == WRITE_ONLY || opcode == plain::SEND_ONLY
}

/// What was executed.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Executed {
    pub packets: u32,
    pub asks_ack: bool,
}

impl Executed {
    #[inline(always)]
    pub fn add(&mut self, last: [u8; LAST]) {
        self.packets += 1;
        self.asks_ack |= Bth::asks_ack(last);
    }
}

/// Executes packets that follow `first`, which was delivered: these are all bytes of their frames. How many it were; the rest goes through
/// the stages.
#[inline(always)]
pub(crate) fn execute<'a, M: Memory>(
    qp: &mut Qp,
    ctx: &Ctx<'_, M>,
    first: &Frame,
    frames: impl Iterator<Item = &'a [u8]>,
) -> u32 {
    if !is_usual(qp, first) {
        return 0;
    }
    let (begin, end) = (first.bth_offset() + Bth::LEN - LAST, first.payload_offset() + first.payload_len());
    // They are as long as the first, so this ends with none of them.
    let own = frames.map_while(|bytes| bytes.get(begin..end)?.split_first_chunk::<LAST>());
    let (executed, counter) = match Some(first.info.opcode) {
        WRITE_ONLY => (writes(qp, ctx, own, first.payload_len() as u32), Counter::RxWriteRequests),
        plain::SEND_ONLY => (sends(qp, ctx, own, first.bth().solicited), Counter::RxSendRequests),
        _ => return 0,
    };
    if executed.packets > 0 {
        note(qp, first, executed, counter);
    }
    executed.packets
}

/// What the stages ask of each packet, and is the same for all: it may come now, the QP allows it, and it has the right length.
#[inline(always)]
pub(super) fn is_usual(qp: &Qp, first: &Frame) -> bool {
    admits_like(qp, first)
        && !qp.resp.outbox.is_final()
        && first.bth().psn.next() == qp.resp.expected
        && first.info.may_come(qp.resp.standing)
        && length::is_right(first, qp.attr.path_mtu)
}

/// WRITEs of `len` bytes each.
#[inline(always)]
fn writes<'a, M: Memory>(
    qp: &mut Qp,
    ctx: &Ctx<'_, M>,
    own: impl Iterator<Item = (&'a [u8; LAST], &'a [u8])>,
    len: u32,
) -> Executed {
    let (mut executed, mut latest) = (Executed::default(), None);
    // Without bytes there is no key to check (IBA C9-88).
    if len == 0 || !qp.attr.access.contains(Access::REMOTE_WRITE) {
        return executed;
    }
    let (user, need) = (qp.key_user(), Access::REMOTE_WRITE);
    let mut latest_key = LatestKey::new(ctx.keys, user.pd, need);
    for (last, rest) in own {
        let Some((reth, payload)) = rest.split_first_chunk() else { break };
        let reth = Reth::from_bytes(reth);
        let of_region = latest_key.span(reth.rkey.value(), reth.va, len);
        let span = of_region.or_else(|| ctx.keys.remote(reth.rkey, user, reth.va, len, need).ok());
        let placed = span.is_some_and(|span| reth.dma_len == len && ctx.memory.write(span, payload).is_ok());
        if !placed {
            break;
        }
        executed.add(*last);
        latest = Some(reth);
    }
    if let Some(reth) = latest {
        qp.resp.write = WriteProgress::new(reth);
        qp.resp.write.placed(len);
    }
    executed
}

/// So many receives ahead of the one that is filled, one is asked for.
const LATER: u32 = 4;
/// Those of a run's first packets that none asks for.
pub(crate) const FIRST_RECEIVES: u32 = LATER + 1;

/// SENDs, each into the oldest receive, as far as there is room for their completions.
#[inline(always)]
fn sends<'a, M: Memory>(
    qp: &mut Qp,
    ctx: &Ctx<'_, M>,
    own: impl Iterator<Item = (&'a [u8; LAST], &'a [u8])>,
    solicited: bool,
) -> Executed {
    let mut executed = Executed::default();
    let Qp { rq, recv_cq, pd, qpn, resp, .. } = qp;
    let mut staged = ctx.staged.borrow_mut();
    let row = staged.row(recv_cq);
    let (Some(receives), Some(mut row), true) = (rq, row, resp.receive.is_free()) else { return executed };
    let mut latest_key = LatestKey::new(ctx.keys, *pd, Access::LOCAL_WRITE);
    let room = row.room();
    for (last, payload) in own.take(room) {
        receives.fetch_later(executed.packets + LATER);
        let Some(wqe) = receives.peek(executed.packets) else { break };
        let span = |piece: &Sge| latest_key.span(piece.lkey.value(), piece.addr, piece.len);
        let Some((wr_id, byte_len)) = plain::fill(wqe, ctx, payload, span) else { break };
        ctx.memory.publish();
        row.add(|| Cqe { byte_len, solicited, ..Cqe::new(wr_id, WcStatus::Success, WcOpcode::Recv, *qpn) });
        executed.add(*last);
    }
    // Nobody sees their completions before that.
    receives.pass(executed.packets);
    executed
}

/// What admission, advance and acknowledge note of each. They stand between messages, as the QP did before.
#[inline(always)]
fn note(qp: &mut Qp, first: &Frame, executed: Executed, counter: Counter) {
    let Executed { packets, asks_ack } = executed;
    count_admitted(qp, first, packets);
    qp.counters.add(counter, packets.into());
    qp.resp.msn = qp.resp.msn.add(packets);
    advance(qp, packets, asks_ack);
}

/// Packets that were expected are executed.
#[inline(always)]
pub(super) fn advance(qp: &mut Qp, packets: u32, asks_ack: bool) {
    let resp = &mut qp.resp;
    resp.outbox.expected_arrived();
    resp.expected = resp.expected.add(packets);
    if asks_ack {
        resp.outbox.ask_ack();
    }
}
