//! Taking a posted request: its checks, its spans, its PSNs (rocev2 facts, transport section 11, requester side).

use super::flight::Wqe;
use super::{Ctx, Qp, QpAttr, QpType};
use crate::access::Access;
use crate::limits::MAX_MESSAGE;
use crate::memory::Memory;
use crate::mr::{MrTable, PdId};
use crate::queue::Posted;
use crate::status::WcStatus;
use crate::wr::{SendFlags, SendOp, WrData};

/// Bytes of an atomic's result, and of an ATOMIC WRITE.
pub(super) const ATOMIC_LEN: u32 = 8;

/// What became of the oldest posted request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Loaded {
    /// There is none.
    Nothing,
    /// It was taken, and nothing but the window can keep its first packet back.
    Ready,
    /// It was taken, and has to be looked at.
    Taken,
}

/// Takes the oldest posted request to the end of the ring. One with a local fault goes there too: it ends with its status when all
/// before it are complete.
#[inline]
pub(super) fn load<M: Memory>(qp: &mut Qp, ctx: &Ctx<'_, M>) -> Loaded {
    let (first_psn, pd) = (qp.req.sent_end, qp.pd);
    let mtu = if qp.qp_type == QpType::Ud { qp.port_mtu } else { qp.attr.path_mtu };
    // It is read where it lies, and its place here is filled field by field: most of both, in most requests, is unused room for
    // SGEs and inline data.
    let Some(posted) = qp.sq.take() else { return Loaded::Nothing };
    let checked = check((qp.qp_type, pd, &qp.attr), posted);

    let wqe = qp.req.flight.push();
    wqe.wr_id = posted.wr_id;
    wqe.srqn = posted.srqn;
    wqe.flags = posted.flags;
    wqe.first_psn = first_psn;
    wqe.packets = 0;
    wqe.len = 0;
    wqe.started = false;
    wqe.read_from = 0;
    wqe.spans.clear();
    let prepared = checked.and_then(|len| {
        wqe.len = len;
        attach(wqe, &posted.data, ctx.keys, pd, posted.op.returns_data())
    });
    wqe.op = std::mem::replace(&mut posted.op, SendOp::Send);
    wqe.fault = prepared.err();
    if wqe.fault.is_some() {
        return Loaded::Taken;
    }
    match &wqe.op {
        SendOp::LocalInv(_) | SendOp::BindMw(_) => {}
        SendOp::RegMr(reg) => match reg.mr.register(pd, reg.key, reg.addr, reg.len, reg.access) {
            Ok(()) => wqe.started = true,
            Err(_) => wqe.fault = Some(WcStatus::LocQpOpErr),
        },
        // IBA C10-93.1.1 (as rocev2 facts, wire section 8, cite it): a datagram above the port MTU emits nothing and
        // completes successfully.
        SendOp::UdSend { .. } if wqe.len > mtu.bytes() => wqe.started = true,
        SendOp::CompareSwap { .. } | SendOp::FetchAdd { .. } => wqe.packets = 1,
        _ => wqe.packets = wire::packets(wqe.len, mtu),
    }
    if wqe.packets > 0 && !wqe.flags.contains(SendFlags::FENCE) && !wqe.op.awaits_response() {
        return Loaded::Ready;
    }
    if wqe.started {
        qp.req.cursor.seq = qp.req.flight.tail();
    }
    Loaded::Taken
}

/// The checks that need no memory. Gives the bytes of the message.
fn check((qp_type, pd, attr): (QpType, PdId, &QpAttr), posted: &Posted) -> Result<u32, WcStatus> {
    let len = posted.data.len().filter(|&len| len <= MAX_MESSAGE).ok_or(WcStatus::LocLenErr)?;
    if !qp_type.supports(&posted.op) {
        return Err(WcStatus::LocQpOpErr);
    }
    match &posted.op {
        SendOp::CompareSwap { .. } | SendOp::FetchAdd { .. } | SendOp::AtomicWrite(_)
            if len != ATOMIC_LEN =>
        {
            Err(WcStatus::LocLenErr)
        }
        SendOp::Flush { .. } if len != 0 => Err(WcStatus::LocLenErr),
        op if op.awaits_response() && attr.max_rd_atomic == 0 => Err(WcStatus::LocQpOpErr),
        op if op.returns_data() && matches!(posted.data, WrData::Inline(_)) => Err(WcStatus::LocQpOpErr),
        SendOp::UdSend { ah, .. } if ah.pd != pd || ah.is_withdrawn() => Err(WcStatus::LocQpOpErr),
        _ => Ok(len),
    }
}

/// Puts the data into the request: spans of checked SGEs, or the inline bytes.
#[inline(always)]
fn attach(
    wqe: &mut Wqe,
    data: &WrData,
    keys: &MrTable,
    pd: PdId,
    returns_data: bool,
) -> Result<(), WcStatus> {
    let need = if returns_data { Access::LOCAL_WRITE } else { Access::empty() };
    match data {
        WrData::Inline(bytes) => {
            wqe.inline.clear();
            // Both have the same capacity, so this cannot fail.
            let copied = wqe.inline.try_extend_from_slice(bytes);
            copied.map_err(|_| WcStatus::LocLenErr)
        }
        // An empty SGE touches nothing, so its key does not matter.
        WrData::Sges(sges) => {
            for sge in sges.iter().filter(|sge| sge.len > 0) {
                let span = keys.local(sge.lkey, pd, sge.addr, sge.len, need);
                wqe.spans.push(span.map_err(|_| WcStatus::LocProtErr)?);
            }
            Ok(())
        }
    }
}
