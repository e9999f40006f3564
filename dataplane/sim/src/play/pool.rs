//! Receives that several QPs share: an SRQ of an endpoint, or an XRC SRQ.
//!
//! Which QP's message takes which receive is known only when it completes. So each is looked at then, as an application would:
//! it was posted and had not completed, and its memory has the message and no byte more.

use super::flow::{Pieces, chance_of, gather, noise};
use crate::endpoint::{EndpointId, Region};
use crate::plan::{Plan, Srq};
use crate::srq::SrqId;
use crate::world::World;
use engine::limits::UD_GRH_BYTES;
use engine::{Access, Cqe, Nanos, RecvWr, WcOpcode, WcStatus};
use std::collections::{BTreeMap, VecDeque};

/// A completion of a pool's receive.
#[derive(Clone, Debug)]
pub(super) struct Received {
    pub cqe: Cqe,
    /// Which of the flow's pools it was of.
    pub nth: usize,
    /// What lies in the receive's memory, as far as the completion says.
    pub bytes: Vec<u8>,
}

/// One such queue, with its memory.
pub(super) struct Pool {
    pub srq: SrqId,
    pub endpoint: EndpointId,
    /// Of those that XRC requests name.
    pub xrc: bool,
    of: Srq,
    region: Region,
    shadow: Vec<u8>,
    room: u32,
    free: VecDeque<u32>,
    /// Receives that have not completed, in the order of posting: their place in the region.
    posted: BTreeMap<u64, u32>,
    next: u64,
    pub next_at: Nanos,
    /// Receives that QPs may have kept when they were reset.
    pub lost: usize,
    /// Times that the limit was set, and events that told of it.
    armed: u64,
    pub told: u64,
    /// The flow whose message took a receive last.
    pub latest: Option<usize>,
}

/// Between one receive's memory and the next.
const GAP: u32 = 3;

impl Pool {
    /// A queue of an endpoint for this many messages at most, the longest of `longest` bytes.
    pub fn new(
        world: &mut World,
        plan: &Plan,
        of: &Srq,
        endpoint: EndpointId,
        xrc: bool,
        (messages, longest): (usize, u32),
    ) -> Pool {
        let srq = if xrc { world.create_xrc_srq(endpoint, of.depth) } else { world.create_srq(of.depth) };
        let room = longest + UD_GRH_BYTES + 1;
        let slots = of.depth + messages as u32;
        let content = noise(plan.seed, 0x5209_0000 | srq.0 as u64, (slots * (room + GAP)) as usize);
        let region = world.register(endpoint, content.clone(), Access::LOCAL_WRITE);
        let mut pool = Pool {
            srq,
            endpoint,
            xrc,
            of: of.clone(),
            region,
            shadow: content,
            room,
            free: (0..slots).collect(),
            posted: BTreeMap::new(),
            next: 0,
            next_at: 0,
            lost: 0,
            armed: 0,
            told: 0,
            latest: None,
        };
        pool.arm(world);
        pool
    }

    /// Where the bytes of a receive lie: two pieces that lie in the wrong order.
    fn pieces(&self, slot: u32) -> Pieces {
        let begin = u64::from(slot * (self.room + GAP));
        let first = self.room / 3;
        vec![(begin + u64::from(self.room - first + 1), first), (begin, self.room - first)]
    }

    /// Whether a receive can be posted, at `next_at`.
    pub fn wants(&self, world: &World) -> bool {
        world.srq_level(self.srq).0 < self.of.depth as usize
    }

    /// Posts what there is room and time for. True when anything was posted.
    pub fn post(&mut self, world: &mut World, seed: u64) -> bool {
        let mut any = false;
        while self.wants(world) && self.next_at <= world.now() {
            let Some(slot) = self.free.pop_front() else { break };
            let sges = self.pieces(slot).iter().map(|&(at, len)| self.region.sge(at, len)).collect();
            if world.post_srq_recv(self.srq, RecvWr { wr_id: self.next, sges }).is_err() {
                break;
            }
            self.posted.insert(self.next, slot);
            if self.of.receive_delay_ns > 0 {
                let later = chance_of(seed, self.next, 15, self.of.receive_delay_ns + 1);
                self.next_at = world.now() + 1 + later;
            }
            self.next += 1;
            any = true;
        }
        self.arm(world);
        any
    }

    /// Sets the limit, unless it is set or that would be told at once.
    fn arm(&mut self, world: &mut World) {
        let (level, limit) = world.srq_level(self.srq);
        if limit == 0 && self.of.limit > 0 && level >= self.of.limit as usize {
            world.arm_srq(self.srq, self.of.limit);
            self.armed += 1;
        }
    }

    /// A receive has completed: its memory is looked at, and free again.
    pub fn complete(&mut self, world: &World, cqe: Cqe, nth: usize) -> Result<Received, String> {
        let Some(slot) = self.posted.remove(&cqe.wr_id) else {
            return Err(format!("receive {} of an SRQ completed twice, or was never posted", cqe.wr_id));
        };
        let begin = (slot * (self.room + GAP)) as usize;
        let range = begin..begin + (self.room + GAP) as usize;
        let now = world.memory(self.region.endpoint).piece(self.region.id, range.clone());
        let pieces = self.pieces(slot).iter().map(|&(at, len)| (at - begin as u64, len)).collect();
        let mut bytes = gather(&now, &pieces);
        let (good, write) = (cqe.status == WcStatus::Success, cqe.opcode == WcOpcode::RecvRdmaWithImm);
        // The data of a WRITE went elsewhere. What failed may have left any beginning of a message.
        let filled = if write { 0 } else { cqe.byte_len as usize };
        if good {
            let before = gather(&self.shadow[range.clone()], &pieces);
            if filled > bytes.len() || bytes[filled..] != before[filled..] {
                return Err(format!("receive {} of an SRQ has more than its message", cqe.wr_id));
            }
        }
        self.shadow[range].copy_from_slice(&now);
        bytes.truncate(filled);
        self.free.push_back(slot);
        Ok(Received { cqe, nth, bytes })
    }

    /// At rest: what is posted waits, but for receives that at most `broken` QPs hold; its memory is as it was; and the limit
    /// was told each time that it was reached.
    pub fn check(&self, world: &World, broken: usize) -> Result<(), String> {
        let (waiting, limit) = world.srq_level(self.srq);
        let held = self.posted.len().checked_sub(waiting).ok_or("more receives wait than were posted")?;
        if held > self.lost + broken {
            return Err(format!("{} receives are left of an SRQ, {waiting} wait", self.posted.len()));
        }
        if self.told + u64::from(limit > 0) != self.armed {
            return Err(format!("an SRQ's limit was set {} times and told {} times", self.armed, self.told));
        }
        if waiting < limit as usize {
            return Err(format!(
                "{waiting} receives wait in an SRQ, and nobody was told of its limit {limit}"
            ));
        }
        let is = world.content(&self.region);
        let stride = (self.room + GAP) as usize;
        // Oldest first: what does not wait was taken before what does.
        let taken: Vec<u32> = self.posted.values().take(held).copied().collect();
        for (slot, (is, should)) in (0..).zip(is.chunks(stride).zip(self.shadow.chunks(stride))) {
            if is != should && !taken.contains(&slot) {
                return Err(format!("an SRQ's memory changed in place {slot} without a completion"));
            }
        }
        Ok(())
    }
}
