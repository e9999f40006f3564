//! The middles of a long WRITE or SEND of RC or UC that follow one another, with payloads that the memory holds.
//!
//! They are alike but for PSN and AckReq, so what the stages ask of the first is asked once, and what the others come to is noted together.
//! A packet is left to the stages as soon as one of them would do anything else than place it and acknowledge it, or it turns out to be
//! spoilt. Nothing that the stages look at has changed for it by then.

use super::run::{self, Executed, LAST};
use crate::access::Access;
use crate::memory::{Memory, Span};
use crate::mr::LatestKey;
use crate::packet::Payload;
use crate::qp::{Ctx, Qp, count_admitted};
use wire::{Frame, Operation};

/// Executes packets that follow `first`, which was delivered: `hold` has the memory hold the next one's payload and gives its AckReq and PSN.
/// How many it were.
#[inline(always)]
pub(crate) fn execute<M: Memory>(
    qp: &mut Qp,
    ctx: &Ctx<'_, M>,
    first: &Frame,
    hold: impl FnMut() -> Option<[u8; LAST]>,
) -> u32 {
    if !run::is_usual(qp, first) {
        return 0;
    }
    let len = first.payload_len() as u32;
    let Executed { packets, asks_ack } = match first.info.operation {
        Operation::Write => writes(qp, ctx, len, hold),
        Operation::Send => sends(qp, ctx, len, hold),
        _ => return 0,
    };
    if packets > 0 {
        count_admitted(qp, first, packets);
        // rocev2 facts, transport 19: UC acknowledges nothing, whatever is asked for.
        run::advance(qp, packets, asks_ack && qp.qp_type.is_reliable());
    }
    packets
}

/// Of a WRITE, as long as it has something left for a packet behind.
#[inline(always)]
fn writes<M: Memory>(
    qp: &mut Qp,
    ctx: &Ctx<'_, M>,
    len: u32,
    mut hold: impl FnMut() -> Option<[u8; LAST]>,
) -> Executed {
    let (mut executed, mut write) = (Executed::default(), qp.resp.write);
    let (user, rkey, need) = (qp.key_user(), write.rkey(), Access::REMOTE_WRITE);
    if !qp.attr.access.contains(need) {
        return executed;
    }
    let mut latest_key = LatestKey::new(ctx.keys, user.pd, need);
    while write.left() > len {
        let Some(last) = hold() else { break };
        let (va, left) = (write.va(), write.left());
        let place = |span: Span| {
            span.slice(0, len).is_some_and(|part| ctx.memory.write_held(part, left - len).is_ok())
        };
        let placed = match latest_key.span(rkey.value(), va, left) {
            Some(span) => place(span),
            // Of a window, or of none.
            None => ctx.keys.remote(rkey, user, va, left, need).is_ok_and(place),
        };
        if !placed {
            break;
        }
        write.placed(len);
        executed.add(last);
    }
    qp.resp.write = write;
    executed
}

/// Of a SEND, as long as its receive has room.
#[inline(always)]
fn sends<M: Memory>(
    qp: &mut Qp,
    ctx: &Ctx<'_, M>,
    len: u32,
    mut hold: impl FnMut() -> Option<[u8; LAST]>,
) -> Executed {
    let mut executed = Executed::default();
    while len <= qp.resp.receive.room() {
        let Some(last) = hold() else { break };
        if qp.resp.receive.place(ctx.memory, &Payload::held(len), true).is_err() {
            break;
        }
        executed.add(last);
    }
    executed
}
