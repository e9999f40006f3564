//! The receiving side of a flow: each receive completes once and in order, and tells of its message.

use super::drive::Stage;
use super::flow::{Flow, gather, imm};
use super::shared;
use super::verify::Progress;
use crate::plan::{Fault, Kind, Op, Service};
use engine::limits::UD_GRH_BYTES;
use engine::{Cqe, DropReason, QpState, WcOpcode, WcStatus};

pub(super) fn check(stage: &Stage, flow: &Flow, progress: &Progress) -> Result<(), String> {
    if !flow.pools.is_empty() {
        return shared::check(stage, flow, progress);
    }
    let posted: Vec<usize> = flow.receives_posted().collect();
    let good = flow.recv_cqes.iter().take_while(|cqe| cqe.status == WcStatus::Success).count();
    for (cqe, &at) in flow.recv_cqes.iter().zip(&posted) {
        if cqe.wr_id != u64::from(flow.ops[at].id) {
            return Err(format!(
                "receive {} completed in the place of receive {}",
                cqe.wr_id, flow.ops[at].id
            ));
        }
    }
    if flow.recv_cqes.len() > posted.len() {
        return Err(format!("{} receives were posted, {} completed", posted.len(), flow.recv_cqes.len()));
    }
    match flow.service {
        Service::Rc | Service::Xrc => reliable(stage, flow, progress, &posted, good)?,
        Service::Uc | Service::Ud => {
            let inbox = stage.world.content(&flow.regions[&super::flow::Area::Inbox]);
            let header = if flow.service == Service::Ud { UD_GRH_BYTES as usize } else { 0 };
            let messages = flow.recv_cqes[..good].iter().zip(&posted).map(|(cqe, &at)| Message {
                cqe,
                bytes: gather(&inbox, &flow.spots[at].receive).split_off(header),
            });
            unreliable(stage, flow, messages.collect())?;
        }
    }
    the_rest(stage, flow, progress, &posted, good)
}

/// RC: the n-th receive has the n-th message, and at least what the sender knows to be done.
fn reliable(
    stage: &Stage,
    flow: &Flow,
    progress: &Progress,
    posted: &[usize],
    good: usize,
) -> Result<(), String> {
    for (cqe, &at) in flow.recv_cqes[..good].iter().zip(posted) {
        let op = &flow.ops[at];
        if at >= progress.maybe {
            return Err(format!("op {} was delivered, which the peer had to refuse", op.id));
        }
        if !tells_of(stage, flow, cqe, op) {
            return Err(format!("{cqe:?} for op {} ({} of {} bytes)", op.id, op.kind.word(), op.len));
        }
    }
    let least = posted.iter().filter(|&&at| at < progress.done).count();
    let taking = (flow.start..progress.done).filter(|&at| flow.ops[at].kind.takes_receive()).count();
    if good < taking || least < taking {
        return Err(format!("{taking} messages were acknowledged, {good} delivered"));
    }
    Ok(())
}

/// A receive that completed, and what is in it.
pub(super) struct Message<'a> {
    pub cqe: &'a Cqe,
    pub bytes: Vec<u8>,
}

/// UC, UD: each receive has one of the messages, whole; on UC in order and once, and without harm all of them.
pub(super) fn unreliable(stage: &Stage, flow: &Flow, messages: Vec<Message<'_>>) -> Result<(), String> {
    let harmed = stage.world.taps.harmed(stage.world.qpn(flow.far)) > 0 || stage.darkness;
    let good = messages.len();
    let mut next = flow.start;
    for Message { cqe, bytes } in messages {
        let from = if harmed { flow.start } else { next };
        let found = (from..flow.posted).find(|&at| is_message(stage, flow, cqe, at, &bytes));
        next = found.ok_or_else(|| format!("{cqe:?} is no message that was sent"))? + 1;
    }
    let taking = flow.ops[flow.start..flow.posted].iter().filter(|op| op.kind.takes_receive()).count();
    let counters = stage.world.qp_counters(flow.far);
    let failed = stage.has_failed(flow.connection);
    if !harmed
        && !failed
        && counters.dropped(DropReason::NoReceive) == 0
        && counters.dropped(DropReason::UcBroken) == 0
        && good < taking
    {
        return Err(format!("{taking} messages were sent, {good} delivered, and no link did harm"));
    }
    Ok(())
}

fn is_message(stage: &Stage, flow: &Flow, cqe: &Cqe, at: usize, received: &[u8]) -> bool {
    let op = &flow.ops[at];
    if !op.kind.takes_receive() || !tells_of(stage, flow, cqe, op) {
        return false;
    }
    let (area, pieces) = &flow.spots[at].local;
    let sent = gather(&stage.world.content(&flow.regions[area]), pieces);
    op.kind == Kind::WriteImm || received.starts_with(&sent)
}

/// Whether a completion says what this message's must.
pub(super) fn tells_of(stage: &Stage, flow: &Flow, cqe: &Cqe, op: &Op) -> bool {
    let ud = flow.service == Service::Ud;
    let opcode = if op.kind == Kind::WriteImm { WcOpcode::RecvRdmaWithImm } else { WcOpcode::Recv };
    let invalidated = match op.kind {
        Kind::SendInv => op.key_of.and_then(|id| stage.keys.get(&id)).map(|grant| grant.key),
        _ => None,
    };
    let srqn = match flow.service {
        Service::Xrc => flow.pool_of(op).and_then(|pool| stage.world.srqn(stage.pools[pool].srq)),
        _ => None,
    };
    cqe.opcode == opcode
        && cqe.byte_len == op.len + if ud { UD_GRH_BYTES } else { 0 }
        && cqe.imm == op.kind.has_imm().then(|| imm(op))
        && cqe.solicited == op.solicited
        && cqe.has_grh == ud
        && cqe.invalidated == invalidated
        && cqe.srqn == srqn
        && cqe.qpn == stage.world.qpn(flow.far)
        && (!ud || cqe.src_qp == stage.world.qpn(flow.near))
}

/// Behind the successes: one error with a reason, then flushes, and then all have completed; or they wait still.
fn the_rest(
    stage: &Stage,
    flow: &Flow,
    progress: &Progress,
    posted: &[usize],
    good: usize,
) -> Result<(), String> {
    let rest = &flow.recv_cqes[good..];
    for (nth, (cqe, &at)) in rest.iter().zip(&posted[good..]).enumerate() {
        let op = &flow.ops[at];
        let right = match cqe.status {
            WcStatus::WrFlushErr => true,
            _ if nth > 0 || at < progress.done => false,
            WcStatus::LocLenErr => op.fault == Some(Fault::ShortReceive),
            WcStatus::LocProtErr => op.fault == Some(Fault::BadReceive),
            WcStatus::RemAccessErr => {
                op.fault.is_some() || stage.fortunes[flow.connection].lost_target[flow.side as usize]
            }
            _ => false,
        };
        if !right {
            return Err(format!("receive {} ended with {:?}", cqe.wr_id, cqe.status));
        }
    }
    let failed = stage.world.state(flow.far) == QpState::Err;
    if failed && flow.recv_cqes.len() < posted.len() {
        return Err(format!(
            "the QP failed with {} receives posted, {} completed",
            posted.len(),
            flow.recv_cqes.len()
        ));
    }
    if !failed && !rest.is_empty() {
        return Err("receives were flushed, and the QP is well".into());
    }
    let waiting = posted.len() - flow.recv_cqes.len();
    let held = waiting.wrapping_sub(stage.world.receives_waiting(flow.far));
    // One may be taken by a message that did not come to its end.
    let broken = progress.error.is_some() || !flow.service.is_reliable();
    if held > usize::from(broken) {
        return Err(format!("{waiting} receives are left, {} wait", stage.world.receives_waiting(flow.far)));
    }
    Ok(())
}
