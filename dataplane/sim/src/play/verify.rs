//! The oracles. At rest: every request completed once, in order, with a status that something in the plan or on the links
//! explains; memory is what the model says, byte by byte. At the end: silence, and nothing is held on to.

use super::drive::Stage;
use super::flow::{Area, Flow, Pieces, content, gather};
use super::model::{self, Maybe};
use super::{receives, shared};
use crate::plan::{Fault, Kind, Local, Op, Place};
use crate::world::Step;
use engine::{Counter, Nanos, QpState, WcOpcode, WcStatus};
use std::collections::BTreeMap;

/// How far the requests of a flow got.
#[derive(Clone, Debug)]
pub(super) struct Progress {
    /// All before this one, from the flow's start on, are done.
    pub done: usize,
    /// From `done` to here it is not known.
    pub maybe: usize,
    /// The first that did not succeed, and how.
    pub error: Option<(usize, WcStatus)>,
}

pub(super) fn at_rest(stage: &mut Stage) -> Result<(), String> {
    if let Some(broken) = stage.world.taps.broken_rule() {
        return Err(broken);
    }
    let mut all = Vec::new();
    for number in 0..stage.flows.len() {
        let flow = &stage.flows[number];
        let told = |why: String| format!("connection {} from side {:?}: {why}", flow.connection, flow.side);
        all.push(sends(stage, flow).map_err(told)?);
    }
    for (number, progress) in all.iter().enumerate() {
        let flow = &stage.flows[number];
        let told = |why: String| format!("connection {} from side {:?}: {why}", flow.connection, flow.side);
        if let Some((at, status)) = progress.error {
            let peers = &all[number ^ 1];
            is_explained(stage, flow, at, status, peers).map_err(told)?;
        }
        receives::check(stage, flow, progress).map_err(told)?;
    }
    shared::pools_at_rest(stage, &all)?;
    for (number, progress) in all.iter().enumerate() {
        count(stage, number, progress);
        memory(stage, number, progress)?;
    }
    shared_counters(stage)?;
    needless(stage)
}

/// The send side of a flow: each request at most one completion, in order, none missing.
fn sends(stage: &Stage, flow: &Flow) -> Result<Progress, String> {
    let mut next = flow.start;
    let mut error = None;
    for cqe in &flow.send_cqes {
        let at = (next..flow.posted).find(|&at| u64::from(flow.ops[at].id) == cqe.wr_id);
        let Some(at) = at else {
            return Err(format!("op {} completed out of order, twice, or without being posted", cqe.wr_id));
        };
        let op = &flow.ops[at];
        if let Some(silent) = flow.ops[next..at].iter().find(|op| op.signaled || error.is_some()) {
            return Err(format!("op {} has no completion, but op {} behind it has", silent.id, op.id));
        }
        match (cqe.status, error) {
            (WcStatus::Success, None) if !op.signaled => {
                return Err(format!("op {} is not signaled and completed", op.id));
            }
            (WcStatus::Success, None) => {
                let expected = (opcode(op.kind), if op.kind.returns_data() { op.len } else { 0 });
                if (cqe.opcode, cqe.byte_len) != expected || cqe.qpn != stage.world.qpn(flow.near) {
                    return Err(format!("op {}: {cqe:?} instead of {expected:?}", op.id));
                }
            }
            (status, None) => error = Some((at, status)),
            (WcStatus::WrFlushErr, Some(_)) => {}
            (status, Some((first, _))) => {
                return Err(format!(
                    "op {} ended with {status:?} behind op {} that failed",
                    op.id, flow.ops[first].id
                ));
            }
        }
        next = at + 1;
    }
    let missing = flow.ops[next..flow.posted].iter().find(|op| op.signaled || error.is_some());
    if let Some(op) = missing {
        return Err(format!("op {} ({}) never completed", op.id, op.kind.word()));
    }
    if stage.world.outstanding(flow.near) != 0 {
        return Err("all is complete and the send queue is not empty".into());
    }
    let done = error.map_or(flow.posted, |(at, _)| at);
    if let Some(op) = flow.ops[flow.start..done].iter().find(|op| op.fault.is_some()) {
        return Err(format!("op {} succeeded in spite of {:?}", op.id, op.fault));
    }
    let refused = (done..flow.posted).find(|&at| flow.ops[at].fault.is_some());
    Ok(Progress { done, maybe: refused.unwrap_or(flow.posted), error })
}

fn opcode(kind: Kind) -> WcOpcode {
    match kind {
        Kind::Send | Kind::SendImm | Kind::SendInv => WcOpcode::Send,
        Kind::Write | Kind::WriteImm => WcOpcode::RdmaWrite,
        Kind::Read => WcOpcode::RdmaRead,
        Kind::CompareSwap => WcOpcode::CompSwap,
        Kind::FetchAdd => WcOpcode::FetchAdd,
        Kind::AtomicWrite => WcOpcode::AtomicWrite,
        Kind::Flush => WcOpcode::Flush,
        Kind::LocalInv => WcOpcode::LocalInv,
        Kind::RegMr => WcOpcode::RegMr,
        Kind::BindMw1 | Kind::BindMw2 => WcOpcode::BindMw,
    }
}

/// Whether something explains that request `at` of a flow ended like this.
fn is_explained(
    stage: &Stage,
    flow: &Flow,
    at: usize,
    status: WcStatus,
    peers: &Progress,
) -> Result<(), String> {
    let op = &flow.ops[at];
    let (connection, fortune) = (&stage.plan.connections[flow.connection], &stage.fortunes[flow.connection]);
    let (near, far) = (flow.side as usize, flow.side.other() as usize);
    let harmed = stage.qps[flow.connection]
        .iter()
        .map(|&qp| stage.world.taps.harmed(stage.world.qpn(qp)))
        .sum::<u32>();
    // The peer's QP is in ERROR for a reason of its own, or because it refused something of ours.
    let peer_failed = fortune.gave_up[far]
        || peers.error.is_some()
        || flow.ops[at..flow.posted].iter().any(is_refused(fortune.lost_target[near]));
    let explained = match status {
        WcStatus::WrFlushErr => fortune.gave_up[near] || peers.error.is_some(),
        WcStatus::RetryExcErr => {
            stage.darkness
                || harmed > u32::from(connection.retry_cnt)
                || fortune.gave_up[far]
                || (peer_failed && !is_clean_refusal(op, harmed, peers))
        }
        WcStatus::RnrRetryExcErr => connection.rnr_retry < 7 && op.kind.takes_receive(),
        WcStatus::LocProtErr => {
            matches!(op.fault, Some(Fault::BadLkey | Fault::StaleLkey))
                || (op.local == Local::Doomed && fortune.lost_source[near])
        }
        WcStatus::LocLenErr => op.fault == Some(Fault::AtomicLength),
        WcStatus::RemAccessErr => {
            matches!(
                op.fault,
                Some(Fault::BadRkey | Fault::StaleKey | Fault::Range | Fault::NoRight | Fault::Volatile)
            ) || (op.place == Place::Doomed && fortune.lost_target[near])
        }
        WcStatus::RemInvReqErr => {
            matches!(
                op.fault,
                Some(Fault::Misaligned | Fault::ShortReceive | Fault::NoPlacement | Fault::BadSrqn)
            )
        }
        WcStatus::MwBindErr => op.fault == Some(Fault::BadBind),
        WcStatus::RemOpErr => op.fault == Some(Fault::BadReceive),
        _ => false,
    };
    let reason = op.fault.map_or(String::new(), |fault| format!(", whose mistake is {fault:?}"));
    if explained {
        Ok(())
    } else {
        Err(format!("op {} ({}{reason}) ended with {status:?}", op.id, op.kind.word()))
    }
}

/// Requests that make the peer's QP fail.
fn is_refused(lost_target: bool) -> impl Fn(&Op) -> bool {
    move |op| op.fault.is_some_and(|fault| !fault.is_local()) || (op.place == Place::Doomed && lost_target)
}

/// A refusal that nothing kept from being told.
fn is_clean_refusal(op: &Op, harmed: u32, peers: &Progress) -> bool {
    op.fault.is_some() && harmed == 0 && peers.error.is_none()
}

fn count(stage: &mut Stage, number: usize, progress: &Progress) {
    let flow = &stage.flows[number];
    let service = flow.service;
    for op in &flow.ops[flow.start..progress.done] {
        stage.stats.done(op.kind);
        stage.stats.meet(format!("{service:?} {}", op.kind.word()).to_lowercase(), 1);
        for (is, name) in [
            (op.fenced, "fenced"),
            (op.inline, "inline"),
            (!op.signaled, "unsignaled"),
            (op.solicited, "solicited"),
            (op.uses_window(&stage.plan), "through a window"),
            (op.kind.is_bind() && op.key_of.is_some() && op.len > 0, "window bound anew"),
            (op.kind.is_bind() && op.len == 0, "window unbound"),
        ] {
            stage.stats.meet(name, u64::from(is));
        }
    }
    if let Some((at, status)) = progress.error {
        stage.stats.meet(format!("status {status:?}"), 1);
        if let Some(fault) = flow.ops[at].fault {
            stage.stats.meet(format!("fault {fault:?}"), 1);
        }
    }
    stage.done.extend(flow.ops[flow.start..progress.done].iter().map(|op| op.id));
}

/// Memory is what the model says, everywhere; the model then takes over what it could not know.
fn memory(stage: &mut Stage, number: usize, progress: &Progress) -> Result<(), String> {
    let (seed, world) = (stage.plan.seed, &stage.world);
    let flow = &stage.flows[number];
    let actual = |area: Area, pieces: &Pieces| {
        flow.regions.get(&area).map_or(Vec::new(), |region| gather(&world.content(region), pieces))
    };
    let mut shadow = flow.shadow.clone();
    let mut maybe = Maybe::new();
    let reliable = flow.service.is_reliable();
    for at in flow.start..progress.maybe {
        if reliable && !flow.pools.is_empty() && flow.ops[at].kind.is_send() {
            let (area, pieces) = &flow.spots[at].local;
            shared::message(flow, at, &gather(&shadow[area], pieces))?;
        }
        let effects = model::effects(flow, seed, at, &shadow, actual);
        if at >= progress.done || !reliable {
            // What was there before may be there still.
            for (area, offset, bytes) in &effects {
                let old = gather(&shadow[area], &vec![(*offset, bytes.len() as u32)]);
                model::allow(&mut maybe, &[(*area, *offset, old)]);
            }
            model::allow(&mut maybe, &effects);
        }
        if reliable || flow.spots[at].remote.0 == Area::Target {
            model::apply(&mut shadow, &effects);
        }
    }
    // The first packets of a SEND fit a receive that is too short for all of it.
    if let Some(op) = flow.ops.get(progress.maybe).filter(|op| op.fault == Some(Fault::ShortReceive))
        && progress.maybe < flow.posted
    {
        debug_assert!(op.kind.is_send());
        model::allow(&mut maybe, &model::effects(flow, seed, progress.maybe, &shadow, actual));
    }
    for (&area, region) in &flow.regions {
        if area == Area::Shared || (area == Area::Inbox && !reliable) {
            continue;
        }
        let is = content(world, area, region);
        let Some(should) = shadow.get(&area).filter(|_| !is.is_empty()) else { continue };
        for (at, (is, should)) in is.iter().zip(should).enumerate() {
            let allowed =
                is == should || maybe.get(&(area, at as u64)).is_some_and(|bytes| bytes.contains(is));
            if !allowed {
                let whose = whose(flow, area, at as u64);
                return Err(format!(
                    "connection {} from side {:?}: byte {at} of {area:?} is {is:#04x} instead of {should:#04x} ({whose})",
                    flow.connection, flow.side
                ));
            }
        }
    }
    let contents: BTreeMap<Area, Vec<u8>> =
        flow.shadow.keys().map(|&area| (area, content(world, area, &flow.regions[&area]))).collect();
    note_shared(stage, number, progress);
    stage.flows[number].shadow = contents;
    Ok(())
}

/// The request that a byte belongs to, in words.
fn whose(flow: &Flow, area: Area, at: u64) -> String {
    let covers = |(from, len): (u64, u32)| (from..from + u64::from(len)).contains(&at);
    let found = flow.ops.iter().zip(&flow.spots).find(|(op, spot)| {
        (spot.local.0 == area && spot.local.1.iter().copied().any(covers))
            || (spot.remote.0 == area && covers((spot.remote.1, op.len)))
            || (area == Area::Kept && op.kind == Kind::Flush && covers((spot.remote.1, op.len)))
            || (area == Area::Inbox && spot.receive.iter().copied().any(covers))
    });
    found.map_or("which belongs to no request".into(), |(op, _)| format!("which belongs to op {}", op.id))
}

/// Remembers what fetch-and-adds on the shared counters brought.
fn note_shared(stage: &mut Stage, number: usize, progress: &Progress) {
    let flow = &stage.flows[number];
    let place = stage.world.endpoint_of(flow.far).0;
    for at in flow.start..progress.maybe {
        if flow.ops[at].place != Place::Shared || flow.ops[at].kind != Kind::FetchAdd {
            continue;
        }
        let (area, pieces) = &flow.spots[at].local;
        let bytes = gather(&stage.world.content(&flow.regions[area]), pieces);
        match at < progress.done {
            true => stage.counted[place].0.push(u64::from_ne_bytes(bytes.try_into().unwrap_or_default())),
            false => stage.counted[place].1 += 1,
        }
    }
}

/// Every addition happened once and saw a value of its own.
fn shared_counters(stage: &Stage) -> Result<(), String> {
    for (region, (originals, maybe)) in stage.shared.iter().zip(&stage.counted) {
        let bytes = stage.world.content(region);
        let value = u64::from_ne_bytes(bytes.try_into().unwrap_or_default());
        let mut sorted = originals.clone();
        sorted.sort_unstable();
        sorted.dedup();
        let least = originals.len() as u64;
        if sorted.len() != originals.len() || sorted.last().is_some_and(|&last| last >= value) {
            return Err(format!("fetch-and-adds of one counter, now {value}, brought {originals:?}"));
        }
        if value < least || value > least + maybe {
            return Err(format!(
                "a counter is {value} after {least} additions and {maybe} that may have been"
            ));
        }
    }
    Ok(())
}

/// Where no link did harm and nobody made a mistake, nobody says no and nothing is sent twice.
fn needless(stage: &mut Stage) -> Result<(), String> {
    let world = &stage.world;
    let harmed = stage.qps.iter().flatten().any(|&qp| world.taps.harmed(world.qpn(qp)) > 0);
    let failed =
        (0..stage.qps.len()).any(|number| stage.has_failed(number)) || stage.stats.times("reconnect") > 0;
    if harmed || failed || stage.darkness {
        return Ok(());
    }
    for number in 0..usize::from(stage.plan.endpoints) {
        let counters = world.counters(crate::EndpointId(number));
        let not_ready = counters.get(Counter::RnrNakRetry) + counters.get(Counter::RnrNakSent) > 0;
        let mut needless = vec![
            Counter::NakSent,
            Counter::SeqNakSent,
            Counter::ImpliedNakSeqErr,
            Counter::PacketSeqErr,
            Counter::CqOverflow,
        ];
        if !not_ready {
            needless.extend([
                Counter::Retransmitted,
                Counter::DuplicateRequest,
                Counter::LocalAckTimeoutErr,
                Counter::OutOfSequence,
            ]);
        }
        if not_ready {
            // Packets behind a refused one are out of sequence by nature.
            needless.retain(|counter| !matches!(counter, Counter::SeqNakSent | Counter::PacketSeqErr));
        }
        if let Some(counter) = needless.into_iter().find(|&counter| counters.get(counter) > 0) {
            return Err(format!("endpoint {number} counted {} without a cause", counter.name()));
        }
    }
    Ok(())
}

/// Silence, and nothing is held on to.
pub(super) fn at_the_end(stage: &mut Stage) -> Result<(), String> {
    const LONG: Nanos = 100_000_000_000;
    let world = &mut stage.world;
    let frames = world.frames_sent();
    let until = world.now() + LONG;
    if world.step(until) != Step::Rest || world.frames_sent() != frames {
        return Err("a frame or a timer after the end".into());
    }
    let (plan, keys) = (&stage.plan, &stage.keys);
    super::keys::windows_at_the_end(world, plan, keys, &stage.done, &stage.ever_posted)?;
    for qp in stage.qps.iter().flatten().copied() {
        let qpn = world.qpn(qp);
        if world.state(qp) == QpState::Rts && world.outstanding(qp) > 0 {
            return Err(format!("QP {qpn} has unfinished requests at the end"));
        }
        if world.destroy(qp) {
            return Err(format!("QP {qpn} was destroyed and somebody holds on to it"));
        }
    }
    for flow in &stage.flows {
        if flow.ah.as_ref().is_some_and(|ah| std::sync::Arc::strong_count(ah) > 1) {
            return Err("somebody holds on to an address handle".into());
        }
    }
    // The plan's own handle, one for each engine's table, and one for each flow that works there.
    for (id, region) in stage.keys.iter().map(|(id, grant)| (id, &grant.region)) {
        let users = stage.flows.iter().flat_map(|flow| flow.regions.keys());
        let users =
            users.filter(|area| matches!(area, Area::Window(of) | Area::Registered(of) if of == id)).count();
        let holders = std::sync::Arc::strong_count(&region.mr);
        if holders != 1 + crate::endpoint::WORKERS + users {
            return Err(format!("{holders} hold on to the region of op {id}"));
        }
    }
    Ok(())
}
