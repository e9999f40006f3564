//! Taking a posted request: its checks, its spans, its PSNs (rocev2 facts, transport section 11, requester side).

use super::{Ctx, Qp, QpAttr, QpType};
use crate::access::Access;
use crate::memory::Memory;
use crate::mr::{MrTable, PdId};
use crate::queue::Wqe;
use crate::status::WcStatus;
use crate::wr::{SendFlags, SendOp};

/// Bytes of an atomic's result, and of an ATOMIC WRITE.
pub(super) const ATOMIC_LEN: u32 = 8;

/// What became of the oldest posted request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Loaded {
    /// There is none.
    Nothing,
    /// It was taken, and nothing but the window can keep its first packet back.
    Ready,
    /// The same, and it is plain: see [`plain`](super::plain).
    Plain,
    /// It was taken, and has to be looked at.
    Taken,
}

/// Takes the oldest posted request. One with a local fault goes there too: it ends with its status when all
/// before it are complete.
#[inline]
pub(super) fn load<M: Memory>(qp: &mut Qp, ctx: &Ctx<'_, M>) -> Loaded {
    let (first_psn, pd) = (qp.req.sent_end, qp.pd);
    let Some(wqe) = qp.req.flight.take() else { return Loaded::Nothing };
    wqe.take_plain(first_psn, qp.sq_sig_all);
    if qp.qp_type == QpType::Rc && wqe.is_plain(qp.attr.path_mtu.bytes()) {
        // None of the checks can find fault with it, but that of its memory.
        return match attach_plain(wqe, ctx.keys, pd) {
            Ok(()) => Loaded::Plain,
            Err(fault) => {
                wqe.packets = 0;
                wqe.fault = Some(fault);
                Loaded::Taken
            }
        };
    }
    wqe.packets = 0;
    wqe.quiet = false;
    load_other(qp, ctx)
}

/// The rest for one that is not plain.
fn load_other<M: Memory>(qp: &mut Qp, ctx: &Ctx<'_, M>) -> Loaded {
    let pd = qp.pd;
    let mtu = if qp.qp_type == QpType::Ud { qp.port_mtu } else { qp.attr.path_mtu };
    let seq = qp.req.flight.tail().wrapping_sub(1);
    let wqe = qp.req.flight.get_mut(seq);
    let len = match check((qp.qp_type, pd, &qp.attr), wqe)
        .and_then(|len| attach(wqe, ctx.keys, pd).map(|()| len))
    {
        Ok(len) => len,
        Err(fault) => {
            wqe.fault = Some(fault);
            return Loaded::Taken;
        }
    };
    match &wqe.op {
        SendOp::LocalInv(_) | SendOp::BindMw(_) => {}
        SendOp::RegMr(reg) => match reg.mr.register(pd, reg.key, reg.addr, reg.len, reg.access) {
            Ok(()) => wqe.started = true,
            Err(_) => wqe.fault = Some(WcStatus::LocQpOpErr),
        },
        // IBA C10-93.1.1 (as rocev2 facts, wire section 8, cite it): a datagram above the port MTU emits nothing and
        // completes successfully.
        SendOp::UdSend { .. } if len > mtu.bytes() => wqe.started = true,
        SendOp::CompareSwap { .. } | SendOp::FetchAdd { .. } => wqe.packets = 1,
        _ => wqe.packets = wire::packets(len, mtu),
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
fn check((qp_type, pd, attr): (QpType, PdId, &QpAttr), wqe: &Wqe) -> Result<u32, WcStatus> {
    let len = wqe.checked_len().ok_or(WcStatus::LocLenErr)?;
    if !qp_type.supports(&wqe.op) {
        return Err(WcStatus::LocQpOpErr);
    }
    match &wqe.op {
        SendOp::CompareSwap { .. } | SendOp::FetchAdd { .. } | SendOp::AtomicWrite(_)
            if len != ATOMIC_LEN =>
        {
            Err(WcStatus::LocLenErr)
        }
        SendOp::Flush { .. } if len != 0 => Err(WcStatus::LocLenErr),
        op if op.awaits_response() && attr.max_rd_atomic == 0 => Err(WcStatus::LocQpOpErr),
        op if op.returns_data() && wqe.is_inline() => Err(WcStatus::LocQpOpErr),
        SendOp::UdSend { ah, .. } if ah.pd != pd || ah.is_withdrawn() => Err(WcStatus::LocQpOpErr),
        _ => Ok(len),
    }
}

/// Finds the memory of a plain message. By itself, so that what the key's check gives stays in registers.
#[inline(always)]
fn attach_plain(wqe: &mut Wqe, keys: &MrTable, pd: PdId) -> Result<(), WcStatus> {
    if let Some(sge) = wqe.plain_sge() {
        let span = keys.local(sge.lkey, pd, sge.addr, sge.len, Access::empty());
        wqe.set_plain_span(span.map_err(|_| WcStatus::LocProtErr)?);
    }
    Ok(())
}

/// Finds the memory of the message.
fn attach(wqe: &mut Wqe, keys: &MrTable, pd: PdId) -> Result<(), WcStatus> {
    let need = if wqe.op.returns_data() { Access::LOCAL_WRITE } else { Access::empty() };
    let found = wqe.resolve(|sge| keys.local(sge.lkey, pd, sge.addr, sge.len, need));
    found.map_err(|_| WcStatus::LocProtErr)
}
