//! Taking a posted request: its checks, its spans, its PSNs (rocev2 facts, transport section 11, requester side).

use super::flight::Wqe;
use super::{Ctx, Qp, QpType};
use crate::access::Access;
use crate::limits::MAX_MESSAGE;
use crate::memory::Memory;
use crate::status::WcStatus;
use crate::wr::{SendOp, SendWr, Sge, WrData};
use wire::Srqn;

/// Bytes of an atomic's result, and of an ATOMIC WRITE.
pub(super) const ATOMIC_LEN: u32 = 8;

/// Puts a posted request at the end of the ring. One with a local fault goes there too: it ends with its status when all
/// before it are complete.
pub(super) fn load<M: Memory>(qp: &mut Qp, ctx: &Ctx<'_, M>, wr: &mut SendWr, srqn: Srqn) {
    let checked = check(qp, wr);
    let (first_psn, pd) = (qp.req.sent_end, qp.pd);
    let mtu = if qp.qp_type == QpType::Ud { qp.port_mtu } else { qp.attr.path_mtu };

    // The place is filled field by field: most of it, in most requests, is unused room for SGEs and inline data.
    let wqe = qp.req.flight.push();
    wqe.wr_id = wr.wr_id;
    wqe.srqn = srqn;
    wqe.flags = wr.flags;
    wqe.first_psn = first_psn;
    wqe.packets = 0;
    wqe.len = 0;
    wqe.started = false;
    wqe.read_from = 0;
    wqe.spans.clear();
    wqe.inline.clear();
    let prepared = checked.and_then(|len| {
        wqe.len = len;
        attach(
            wqe,
            &wr.data,
            |sge, need| {
                let span = ctx.keys.local(sge.lkey, pd, sge.addr, sge.len, need);
                span.map_err(|_| WcStatus::LocProtErr)
            },
            wr.op.returns_data(),
        )
    });
    wqe.op = std::mem::replace(&mut wr.op, SendOp::Send);
    wqe.fault = prepared.err();
    if wqe.fault.is_some() {
        return;
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
    if wqe.started {
        qp.req.cursor.seq = qp.req.flight.tail();
    }
}

/// The checks that need no memory. Gives the bytes of the message.
fn check(qp: &Qp, wr: &SendWr) -> Result<u32, WcStatus> {
    let len = wr.data.len().filter(|&len| len <= MAX_MESSAGE).ok_or(WcStatus::LocLenErr)?;
    if !qp.qp_type.supports(&wr.op) {
        return Err(WcStatus::LocQpOpErr);
    }
    match &wr.op {
        SendOp::CompareSwap { .. } | SendOp::FetchAdd { .. } | SendOp::AtomicWrite(_)
            if len != ATOMIC_LEN =>
        {
            Err(WcStatus::LocLenErr)
        }
        SendOp::Flush { .. } if len != 0 => Err(WcStatus::LocLenErr),
        op if op.awaits_response() && qp.attr.max_rd_atomic == 0 => Err(WcStatus::LocQpOpErr),
        op if op.returns_data() && matches!(wr.data, WrData::Inline(_)) => Err(WcStatus::LocQpOpErr),
        SendOp::UdSend { ah, .. } if ah.pd != qp.pd || ah.is_withdrawn() => Err(WcStatus::LocQpOpErr),
        _ => Ok(len),
    }
}

/// Puts the data into the request: spans of checked SGEs, or the inline bytes.
fn attach(
    wqe: &mut Wqe,
    data: &WrData,
    mut resolve: impl FnMut(&Sge, Access) -> Result<crate::Span, WcStatus>,
    returns_data: bool,
) -> Result<(), WcStatus> {
    let need = if returns_data { Access::LOCAL_WRITE } else { Access::empty() };
    match data {
        WrData::Inline(bytes) => {
            // Both have the same capacity, so this cannot fail.
            let copied = wqe.inline.try_extend_from_slice(bytes);
            copied.map_err(|_| WcStatus::LocLenErr)
        }
        // An empty SGE touches nothing, so its key does not matter.
        WrData::Sges(sges) => {
            for sge in sges.iter().filter(|sge| sge.len > 0) {
                wqe.spans.push(resolve(sge, need)?);
            }
            Ok(())
        }
    }
}
