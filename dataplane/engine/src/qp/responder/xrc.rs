//! XRC targets: which SRQ a request is for. In all else a target is an RC responder.

use crate::fault::Fault;
use crate::memory::Memory;
use crate::packet::RxPacket;
use crate::qp::{Ctx, Qp, QpType};
use crate::queue::{QpShared, RecvQueue};
use std::sync::Arc;
use wire::{Srqn, XrcEth};

/// Takes the SRQ that a request names, whatever it does: it has to be of the target's domain, and the same all through a message
/// [?]. The request's keys are those of its PD [?]: a target belongs to a domain, not to a PD.
pub(super) fn select<M: Memory>(qp: &mut Qp, ctx: &Ctx<'_, M>, packet: &RxPacket<'_>) -> Result<(), Fault> {
    if qp.qp_type != QpType::XrcTgt {
        return Ok(());
    }
    let header = packet.frame.ext::<XrcEth>(packet.head).ok_or(Fault::PacketLength)?;
    let srqn = Srqn::new(header.srqn);
    if !packet.frame.info.position.begins() && srqn != qp.resp.srqn {
        return Err(Fault::XrcSrq);
    }
    let srq = find(&qp.shared, ctx, srqn)?;
    qp.pd = srq.pd(qp.pd);
    qp.resp.srqn = srqn;
    Ok(())
}

/// The queue that a message takes its receive from.
pub(super) fn queue<'a, M: Memory>(
    qp: &'a QpShared,
    ctx: &Ctx<'a, M>,
    srqn: Srqn,
) -> Result<&'a RecvQueue, Fault> {
    if qp.qp_type() == QpType::XrcTgt { find(qp, ctx, srqn) } else { Ok(qp.rq()) }
}

fn find<'a, M: Memory>(qp: &QpShared, ctx: &Ctx<'a, M>, srqn: Srqn) -> Result<&'a RecvQueue, Fault> {
    let srq: Option<&Arc<RecvQueue>> = ctx.srqs.get(srqn.value());
    srq.filter(|srq| srq.domain() == qp.rq().domain()).map(|srq| &**srq).ok_or(Fault::XrcSrq)
}
