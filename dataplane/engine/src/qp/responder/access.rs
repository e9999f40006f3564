//! R_Key checks: what a request may touch, as the span or the values it is then executed with.

use super::operation;
use crate::access::Access;
use crate::fault::Fault;
use crate::memory::{Extent, Memory, Span};
use crate::packet::RxPacket;
use crate::placement::{FlushLevel, Placement};
use crate::qp::load::ATOMIC_LEN;
use crate::qp::{Ctx, Qp};
use wire::{AtomicEth, Ieth, Reth};

/// The rest of the message, at every packet: a key that is invalidated under way stops the WRITE there. A
/// WRITE of no bytes has no key to check (IBA C9-88).
#[inline(always)]
pub(super) fn write<M: Memory>(qp: &Qp, ctx: &Ctx<'_, M>) -> Result<Option<Span>, Fault> {
    let write = &qp.resp.write;
    if write.left() == 0 {
        return Ok(None);
    }
    let span =
        ctx.keys.remote(write.rkey(), qp.key_user(), write.va(), write.left(), Access::REMOTE_WRITE)?;
    Ok(Some(span))
}

/// The whole range of a READ. Each response looks again, see `respond.rs`. A READ of no bytes has no key to
/// check (IBA C9-88).
pub(super) fn read<M: Memory>(qp: &Qp, ctx: &Ctx<'_, M>, packet: &RxPacket<'_>) -> Result<Reth, Fault> {
    let reth = packet.frame.ext::<Reth>(packet.head).ok_or(Fault::PacketLength)?;
    if reth.dma_len > 0 {
        ctx.keys.remote(reth.rkey, qp.key_user(), reth.va, reth.dma_len, Access::REMOTE_READ)?;
    }
    Ok(reth)
}

/// The eight bytes of an atomic, and its operands.
pub(super) fn atomic<M: Memory>(
    qp: &Qp,
    ctx: &Ctx<'_, M>,
    packet: &RxPacket<'_>,
) -> Result<(Span, AtomicEth), Fault> {
    let eth = packet.frame.ext::<AtomicEth>(packet.head).ok_or(Fault::PacketLength)?;
    let span = ctx.keys.remote(eth.rkey, qp.key_user(), eth.va, ATOMIC_LEN, Access::REMOTE_ATOMIC)?;
    Ok((span, eth))
}

/// The eight bytes of an ATOMIC WRITE.
pub(super) fn atomic_write<M: Memory>(
    qp: &Qp,
    ctx: &Ctx<'_, M>,
    packet: &RxPacket<'_>,
) -> Result<Span, Fault> {
    let reth = packet.frame.ext::<Reth>(packet.head).ok_or(Fault::PacketLength)?;
    let right = operation::ATOMIC_WRITE_RIGHT;
    Ok(ctx.keys.remote(reth.rkey, qp.key_user(), reth.va, ATOMIC_LEN, right)?)
}

/// A range has to be inside of what the key grants, and needs the key even without bytes: that nothing is checked then is said
/// of READ and WRITE only (IBA C9-88).
pub(super) fn flush<M: Memory>(
    qp: &Qp,
    ctx: &Ctx<'_, M>,
    packet: &RxPacket<'_>,
) -> Result<(Extent, Placement), Fault> {
    let (placement, level) = operation::flush(packet)?;
    let reth = packet.frame.ext::<Reth>(packet.head).ok_or(Fault::PacketLength)?;
    let rights = placement.rights();
    let extent = match level {
        FlushLevel::Range => ctx.keys.remote(reth.rkey, qp.key_user(), reth.va, reth.dma_len, rights)?.into(),
        FlushLevel::Region => ctx.keys.whole(reth.rkey, qp.key_user(), rights)?,
    };
    Ok((extent, placement))
}

/// SEND with Invalidate takes the key away before its data is placed: a message that is refused places
/// nothing, and the receive's own memory is resolved already.
pub(super) fn invalidate<M: Memory>(qp: &Qp, ctx: &Ctx<'_, M>, packet: &RxPacket<'_>) -> Result<(), Fault> {
    match packet.frame.ext::<Ieth>(packet.head) {
        Some(ieth) => ctx.keys.invalidate(ieth.rkey, qp.key_user()).map_err(|_| Fault::InvalidateRefused),
        None => Ok(()),
    }
}
