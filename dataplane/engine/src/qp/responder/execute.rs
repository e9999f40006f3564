//! Execute, complete, acknowledge: the last stages of a request that passed all checks.

use super::{access, write};
use crate::counters::Counter;
use crate::fault::Fault;
use crate::memory::{Extent, Memory, PersistError, RegionGone};
use crate::packet::{Payload, RxPacket};
use crate::placement::Placement;
use crate::qp::{Ctx, Qp};
use crate::status::{Cqe, WcOpcode, WcStatus};
use wire::{Ieth, ImmDt, Operation, Reply, packets};

/// Does what the request asks, once its keys allow it (`access.rs`), and tells how many PSNs it has. What a key gives is used on the
/// spot: no larger value goes from stage to stage. Fails after the check of the key only when memory was deregistered since, or cannot
/// persist what it should.
#[inline(always)]
pub(super) fn execute<M: Memory>(
    qp: &mut Qp,
    ctx: &Ctx<'_, M>,
    packet: &RxPacket<'_>,
    operation: Operation,
) -> Result<u32, Fault> {
    match operation {
        Operation::Send => send(qp, ctx, packet),
        Operation::Write => write(qp, ctx, packet),
        Operation::ReadRequest => read(qp, ctx, packet),
        Operation::CompareSwap | Operation::FetchAdd => atomic(qp, ctx, packet),
        Operation::AtomicWrite => atomic_write(qp, ctx, packet),
        Operation::Flush => flush(qp, ctx, packet),
        _ => Err(Fault::OpcodeUnsupported),
    }
}

fn send<M: Memory>(qp: &mut Qp, ctx: &Ctx<'_, M>, packet: &RxPacket<'_>) -> Result<u32, Fault> {
    // It cannot be taken back if the payload turns out to be spoilt: those that are held bring no key.
    access::invalidate(qp, ctx, packet)?;
    let placed = qp.resp.receive.place(ctx.memory, &packet.payload, !packet.frame.info.position.ends());
    placed.map_err(|why| why.fault(Fault::ReceiveUnusable))?;
    count_beginning(qp, packet, Counter::RxSendRequests);
    Ok(1)
}

#[inline(always)]
fn write<M: Memory>(qp: &mut Qp, ctx: &Ctx<'_, M>, packet: &RxPacket<'_>) -> Result<u32, Fault> {
    if let Some(span) = access::write(qp, ctx)? {
        let placed = write::place(ctx.memory, span, &packet.payload);
        placed.map_err(|why| why.fault(Fault::RemoteAccess))?;
    }
    qp.resp.write.placed(packet.frame.payload_len() as u32);
    count_beginning(qp, packet, Counter::RxWriteRequests);
    Ok(1)
}

fn read<M: Memory>(qp: &mut Qp, ctx: &Ctx<'_, M>, packet: &RxPacket<'_>) -> Result<u32, Fault> {
    let reth = access::read(qp, ctx, packet)?;
    let count = packets(reth.dma_len, qp.attr.path_mtu);
    qp.resp.slots.push_read(packet.frame.info.opcode, qp.resp.expected, count, reth, qp.pd);
    qp.counters.count(Counter::RxReadRequests);
    // rocev2 facts, transport 7: a READ has as many PSNs as responses.
    Ok(count)
}

fn atomic<M: Memory>(qp: &mut Qp, ctx: &Ctx<'_, M>, packet: &RxPacket<'_>) -> Result<u32, Fault> {
    let (at, eth) = access::atomic(qp, ctx, packet)?;
    let info = packet.frame.info;
    let original = if info.operation == Operation::CompareSwap {
        ctx.memory.compare_swap(at, eth.compare, eth.swap_or_add)
    } else {
        ctx.memory.fetch_add(at, eth.swap_or_add)
    };
    let original = original.map_err(|RegionGone| Fault::RemoteAccess)?;
    qp.resp.slots.push_atomic(info.opcode, qp.resp.expected, original);
    qp.counters.count(Counter::RxAtomicRequests);
    Ok(1)
}

fn atomic_write<M: Memory>(qp: &mut Qp, ctx: &Ctx<'_, M>, packet: &RxPacket<'_>) -> Result<u32, Fault> {
    let at = access::atomic_write(qp, ctx, packet)?;
    // rocev2 facts, wire 6 [1: rxe]: the bytes as they came, unlike an atomic's operands.
    let stored = ctx.memory.store(at, eight(&packet.payload));
    stored.map_err(|RegionGone| Fault::RemoteAccess)?;
    qp.resp.slots.push_done(packet.frame.info.opcode, qp.resp.expected);
    qp.counters.count(Counter::RxAtomicWriteRequests);
    Ok(1)
}

fn flush<M: Memory>(qp: &mut Qp, ctx: &Ctx<'_, M>, packet: &RxPacket<'_>) -> Result<u32, Fault> {
    let (extent, placement) = access::flush(qp, ctx, packet)?;
    // Whatever came before it is in memory already: requests are executed one after the other.
    make_last(ctx.memory, extent, placement)?;
    qp.resp.slots.push_done(packet.frame.info.opcode, qp.resp.expected);
    qp.counters.count(Counter::RxFlushRequests);
    Ok(1)
}

/// The payload of an ATOMIC WRITE, whose length was checked.
fn eight(payload: &Payload<'_>) -> [u8; 8] {
    let mut bytes = [0; 8];
    for (to, from) in bytes.iter_mut().zip(payload.slices().flatten()) {
        *to = *from;
    }
    bytes
}

fn make_last<M: Memory>(memory: &M, what: Extent, placement: Placement) -> Result<(), Fault> {
    if placement.contains(Placement::PERSISTENT) {
        memory.persist(what).map_err(|why| match why {
            // A right that the memory cannot keep is none.
            PersistError::Gone(_) | PersistError::Volatile => Fault::RemoteAccess,
            PersistError::Failed => Fault::FlushFailed,
        })?;
    }
    if placement.contains(Placement::GLOBAL) {
        memory.make_visible(what).map_err(|RegionGone| Fault::RemoteAccess)?;
    }
    Ok(())
}

fn count_beginning(qp: &mut Qp, packet: &RxPacket<'_>, counter: Counter) {
    if packet.frame.info.position.begins() {
        qp.counters.count(counter);
    }
}

/// The request with its `count` PSNs was executed: the next one is expected. The MSN counts finished
/// messages, a READ when it is accepted (rocev2 facts, transport 2).
#[inline(always)]
pub(super) fn advance(qp: &mut Qp, packet: &RxPacket<'_>, count: u32) {
    let info = packet.frame.info;
    let resp = &mut qp.resp;
    resp.expected = resp.expected.add(count);
    resp.standing = info.leaves();
    if info.position.ends() {
        resp.msn = resp.msn.next();
    }
}

/// Tells the receive's poster, after the data.
#[inline(always)]
pub(super) fn complete<M: Memory>(qp: &mut Qp, ctx: &Ctx<'_, M>, packet: &RxPacket<'_>) {
    if packet.frame.info.completes_receive_wqe() {
        complete_receive(qp, ctx, packet);
    }
}

fn complete_receive<M: Memory>(qp: &mut Qp, ctx: &Ctx<'_, M>, packet: &RxPacket<'_>) {
    let (opcode, byte_len) = match packet.frame.info.base() {
        Operation::Send => (WcOpcode::Recv, qp.resp.receive.filled()),
        // rocev2 facts, transport 12: the RETH length, though nothing went into the receive itself.
        _ => (WcOpcode::RecvRdmaWithImm, qp.resp.write.len()),
    };
    let Some(wr_id) = qp.resp.receive.release() else { return };
    let cqe = Cqe {
        byte_len,
        imm: packet.frame.ext::<ImmDt>(packet.head).map(|imm| imm.0),
        invalidated: packet.frame.ext::<Ieth>(packet.head).map(|ieth| ieth.rkey),
        solicited: packet.frame.bth().solicited,
        ..Cqe::new(wr_id, WcStatus::Success, opcode, qp.qpn)
    };
    ctx.memory.publish();
    qp.push_recv_cqe(ctx, cqe);
}

/// READ and atomic answers are in their slots, and acknowledge what was before them; SENDs and WRITEs are
/// acknowledged when asked for. The ACK itself is made when it is sent, so one covers all that came until
/// then.
#[inline(always)]
pub(super) fn acknowledge(qp: &mut Qp, packet: &RxPacket<'_>) {
    match packet.frame.info.reply() {
        Reply::Ack if packet.frame.bth().ack_req => qp.resp.outbox.ask_ack(),
        Reply::ReadResponse | Reply::AtomicAcknowledge => qp.resp.outbox.ack_follows_from_response(),
        Reply::Ack | Reply::Nothing => {}
    }
}
