//! The receiving side of a flow whose receives others use, too: what completed belongs to its messages, in order.

use super::drive::Stage;
use super::flow::Flow;
use super::pool::{Pool, Received};
use super::receives::{Message, tells_of, unreliable};
use super::verify::Progress;
use crate::plan::{Op, Plan, Service, Side};
use crate::world::World;
use engine::limits::UD_GRH_BYTES;
use engine::{QpState, WcStatus};

/// Which of the endpoint's queues a request meets.
fn queue_of(flow: &Flow, op: &Op) -> usize {
    op.id as usize % flow.pools.len().max(1)
}

impl Flow {
    /// The SRQ that an XRC request names, by its place among the plan's pools.
    pub fn pool_of(&self, op: &Op) -> Option<usize> {
        self.pools.get(queue_of(self, op)).copied()
    }
}

/// The pools of a plan's endpoints: an SRQ where a side shares, two XRC SRQs where a target lives.
pub(super) fn pools(world: &mut World, plan: &Plan, endpoints: &[crate::EndpointId]) -> Vec<Pool> {
    let Some(srq) = &plan.srq else { return Vec::new() };
    let mut all = Vec::new();
    for (number, &endpoint) in endpoints.iter().enumerate() {
        for xrc in [false, true] {
            let ends = plan.connections.iter().enumerate().flat_map(|(at, of)| {
                Side::BOTH.map(|from| (at, from)).into_iter().filter(move |&(_, from)| {
                    usize::from(of.ends[from.other() as usize]) == number
                        && of.service.senders().contains(&from)
                        && of.meets_shared(from)
                        && (of.service == Service::Xrc) == xrc
                })
            });
            let ends: Vec<(usize, Side)> = ends.collect();
            let ops = plan.ops.iter().filter(|op| ends.contains(&(op.connection as usize, op.from)));
            let taking: Vec<u32> = ops.filter(|op| op.kind.takes_receive()).map(|op| op.len).collect();
            let size = (taking.len(), taking.iter().copied().max().unwrap_or(0));
            if !ends.is_empty() {
                let queues = if xrc { 2 } else { 1 };
                all.extend((0..queues).map(|_| Pool::new(world, plan, srq, endpoint, xrc, size)));
            }
        }
    }
    all
}

/// Receive completions of a flow are what its messages must have brought; and its QP says once that it is the last.
pub(super) fn check(stage: &Stage, flow: &Flow, progress: &Progress) -> Result<(), String> {
    let failed = stage.world.state(flow.far) == QpState::Err;
    if flow.last_wqe != u64::from(failed) {
        return Err(format!("{} last WQE events, and the QP's failure is {failed}", flow.last_wqe));
    }
    let good: Vec<&Received> = flow.received.iter().filter(|it| it.cqe.status == WcStatus::Success).collect();
    if !flow.service.is_reliable() {
        let header = if flow.service == Service::Ud { UD_GRH_BYTES as usize } else { 0 };
        let messages = good
            .iter()
            .map(|it| Message { cqe: &it.cqe, bytes: it.bytes.get(header..).unwrap_or_default().to_vec() });
        unreliable(stage, flow, messages.collect())?;
        return errors_of_unreliable(stage, flow, failed);
    }
    for queue in 0..flow.pools.len() {
        let of_queue: Vec<&&Received> = good.iter().filter(|it| it.nth == queue).collect();
        let mut taking = taking(flow, queue);
        for received in &of_queue {
            let at = taking.next().ok_or_else(|| format!("{:?} and no message is left", received.cqe))?;
            let op = &flow.ops[at];
            if at >= progress.maybe {
                return Err(format!("op {} was delivered, which the peer had to refuse", op.id));
            }
            if !tells_of(stage, flow, &received.cqe, op) {
                return Err(format!("{:?} for op {} ({})", received.cqe, op.id, op.kind.word()));
            }
        }
        if let Some(at) = taking.next().filter(|&at| at < progress.done) {
            return Err(format!("op {} was acknowledged and not delivered", flow.ops[at].id));
        }
    }
    errors_of_reliable(stage, flow, progress, failed)
}

/// Requests of this round, in order, that take a receive of this queue.
fn taking(flow: &Flow, queue: usize) -> impl Iterator<Item = usize> {
    (flow.start..flow.posted)
        .filter(move |&at| flow.ops[at].kind.takes_receive() && queue_of(flow, &flow.ops[at]) == queue)
}

/// The messages in the receives of a reliable flow are what the model says was sent: `message` gives what request `at` carried.
pub(super) fn message(flow: &Flow, at: usize, sent: &[u8]) -> Result<(), String> {
    let op = &flow.ops[at];
    let queue = queue_of(flow, op);
    let Some(nth) = taking(flow, queue).position(|other| other == at) else { return Ok(()) };
    let mut received = flow.received.iter();
    let found = received.by_ref().filter(|it| it.nth == queue && it.cqe.status == WcStatus::Success).nth(nth);
    match found {
        Some(it) if op.kind.is_send() && it.bytes != sent => {
            Err(format!("the receive of op {} has another message", op.id))
        }
        _ => Ok(()),
    }
}

/// At most the one receive that a message had taken ends in another way.
fn errors_of_reliable(stage: &Stage, flow: &Flow, progress: &Progress, failed: bool) -> Result<(), String> {
    let mut bad = flow.received.iter().filter(|it| it.cqe.status != WcStatus::Success);
    let Some(first) = bad.next() else { return Ok(()) };
    let refused = flow.ops[progress.done..flow.posted].iter().any(|op| op.fault.is_some());
    let explained = match first.cqe.status {
        WcStatus::WrFlushErr => failed,
        WcStatus::RemAccessErr => refused || stage.fortunes[flow.connection].lost_target[flow.side as usize],
        _ => false,
    };
    match bad.next() {
        _ if !explained || !failed => Err(format!("receive {} ended with {:?}", first.cqe.wr_id, first.cqe)),
        Some(second) => Err(format!("a second receive ended with {:?}", second.cqe.status)),
        None => Ok(()),
    }
}

/// UC: a message that is not whole ends its receive, for others could not use it.
fn errors_of_unreliable(stage: &Stage, flow: &Flow, failed: bool) -> Result<(), String> {
    let harmed = stage.world.taps.harmed(stage.world.qpn(flow.far)) > 0 || stage.darkness;
    let broken = flow.service == Service::Uc && (harmed || stage.has_failed(flow.connection));
    let wrong = flow.received.iter().find(|it| match it.cqe.status {
        WcStatus::Success => false,
        WcStatus::WrFlushErr => !failed,
        WcStatus::RemInvReqErr => !broken,
        _ => true,
    });
    wrong.map_or(Ok(()), |it| Err(format!("receive {} ended with {:?}", it.cqe.wr_id, it.cqe.status)))
}

/// At rest, every queue.
pub(super) fn pools_at_rest(stage: &Stage, all: &[Progress]) -> Result<(), String> {
    for (number, pool) in stage.pools.iter().enumerate() {
        let broken = stage.flows.iter().zip(all).filter(|(flow, progress)| {
            flow.pools.contains(&number)
                && (progress.error.is_some()
                    || !flow.service.is_reliable()
                    || stage.has_failed(flow.connection))
        });
        pool.check(&stage.world, broken.count())?;
    }
    Ok(())
}
