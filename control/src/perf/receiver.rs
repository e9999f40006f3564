//! The receiving half of an end: keeps receives posted, counts what arrives, and compares it when asked.

use super::bandwidth::Bandwidth;
use super::error::RunError;
use super::layout::Layout;
use super::op::Verb;
use super::params::Params;
use super::pattern::{Pattern, inside};
use super::poster::{tag, untag};
use super::protocol::{Faults, Received};
use super::sender::{MANY_QPS, failed};
use crate::verbs::{Mr, Qp};
use arrayvec::ArrayVec;
use engine::queue::{PostError, RecvList};
use engine::{Cqe, RecvWr, Sge};

/// One QP's arrivals.
struct Inflow {
    qp: Qp,
    /// Messages so far.
    arrived: u64,
    /// The number that the next message has, if none is lost.
    expected: u64,
    pattern: Pattern,
}

/// What an end receives.
pub(super) struct Receiver {
    size: u32,
    verify: bool,
    /// Each message's immediate tells its number.
    imm: bool,
    /// Messages land in receives; otherwise (WRITE) where the peer says, and a receive only tells of them.
    lands: bool,
    /// Nothing is lost.
    reliable: bool,
    layout: Layout,
    target: Mr,
    inflows: Vec<Inflow>,
    /// Receives to be posted again: QP and slot.
    free: Vec<(usize, u64)>,
    arrived: u64,
    compared: u64,
    faults: Faults,
}

impl Receiver {
    /// A receiver on these QPs.
    pub fn new(params: &Params, qps: &[Qp], target: Mr, is_server: bool) -> Receiver {
        let inflow = |(index, qp): (usize, &Qp)| Inflow {
            qp: qp.clone(),
            arrived: 0,
            expected: 0,
            pattern: Pattern::new(params.seed, index, is_server),
        };
        Receiver {
            size: params.size,
            verify: params.verify,
            imm: params.imm,
            lands: params.op.verb == Verb::Send,
            reliable: params.transport.is_reliable(),
            layout: Layout::of(params),
            target,
            inflows: qps.iter().enumerate().map(inflow).collect(),
            free: Vec::with_capacity(Bandwidth::BATCH),
            arrived: 0,
            compared: 0,
            faults: Faults::default(),
        }
    }

    /// Posts every receive for the first time: to be done before the peer may send.
    pub fn start(&mut self) -> Result<(), RunError> {
        for index in 0..self.inflows.len() {
            self.free.extend((0..self.layout.receives).map(|slot| (index, slot.into())));
            self.refill()?;
        }
        Ok(())
    }

    /// Asks for what these completions, and the posts that follow from them, will need: of many QPs it comes from memory.
    pub fn expect(&self, cqes: &[Cqe]) {
        if self.inflows.len() <= MANY_QPS {
            return;
        }
        for (count, run) in cqes.chunk_by(|one, next| one.qpn == next.qpn).map(|run| (run.len(), &run[0])) {
            if let Some(inflow) = self.inflows.get(untag(run.wr_id).0) {
                inflow.qp.fetch_receives(count as u32);
            }
        }
    }

    /// Takes a receive completion. Its receive is posted again by [`refill`](Self::refill).
    #[inline]
    pub fn on_completion(&mut self, cqe: &Cqe) -> Result<(), RunError> {
        let (index, slot) = untag(cqe.wr_id);
        if !cqe.is_success() {
            return Err(failed(cqe, index, "a receive".into()));
        }
        if index >= self.inflows.len() {
            return Ok(());
        }
        if self.verify {
            self.check(index, slot, cqe);
        }
        self.inflows[index].arrived += 1;
        self.arrived += 1;
        self.free.push((index, slot));
        Ok(())
    }

    /// Posts the receives that have completed: those of one QP in a row in one list.
    #[inline]
    pub fn refill(&mut self) -> Result<(), RunError> {
        for run in self.free.chunk_by(|(one, _), (next, _)| one == next) {
            let index = run[0].0;
            let posted = self.inflows[index].qp.post_recv_list(|list| {
                run.iter().try_for_each(|&(index, slot)| self.post(list, index, slot))
            });
            posted.and_then(|all| all).map_err(|why| RunError::Post { qp: index, why })?;
        }
        self.free.clear();
        Ok(())
    }

    /// Messages so far.
    pub fn arrived(&self) -> u64 {
        self.arrived
    }

    /// The account of what arrived.
    pub fn account(self) -> Received {
        Received {
            messages: Some(self.inflows.iter().map(|inflow| inflow.arrived).collect()),
            faults: self.faults,
            compared: self.compared,
        }
    }

    #[inline]
    fn post(&self, list: &mut RecvList<'_>, index: usize, slot: u64) -> Result<(), PostError> {
        let wr_id = tag(index, slot);
        if !self.lands {
            return list.push(&RecvWr { wr_id, sges: ArrayVec::new() });
        }
        let addr = self.target.addr() + self.layout.target_offset(index, slot);
        let len = self.size + self.layout.target_skip;
        list.push_piece(wr_id, Sge { addr, len, lkey: self.target.lkey() })
    }

    /// Compares a message with what was sent.
    fn check(&mut self, index: usize, slot: u64, cqe: &Cqe) {
        let inflow = &mut self.inflows[index];
        let expected = inflow.expected;
        let (number, offset) = if self.lands {
            let offset = self.layout.target_offset(index, slot) + u64::from(self.layout.target_skip);
            let mut head = [0; 8];
            let head = &mut head[..(self.size as usize).min(8)];
            inside(self.target.read(offset as usize, head));
            (inflow.pattern.number_of(head, expected), offset)
        } else {
            let low = u32::from_be_bytes(cqe.imm.unwrap_or_default());
            let number = expected + u64::from(low.wrapping_sub(expected as u32));
            (number, self.layout.target_offset(index, number))
        };
        let len = self.size + if self.lands { self.layout.target_skip } else { 0 };
        // A number that is far ahead is a head that was spoilt: the comparison below tells where.
        let number = if self.reliable || number - expected > 1 << 32 { expected } else { number };
        inflow.expected = number + 1;
        if cqe.byte_len != len {
            self.faults.add(|| format!("QP {index}, message {number}: {} bytes, not {len}", cqe.byte_len));
        }
        if self.imm && cqe.imm != Some((number as u32).to_be_bytes()) {
            self.faults.add(|| format!("QP {index}, message {number}: its immediate is {:?}", cqe.imm));
        }
        let check = inflow.pattern.check(number, self.target.buffer(), offset, self.size);
        if check.is_err() && !self.reliable && !self.lands && self.is_overwritten(index, number, offset) {
            return;
        }
        self.faults.expect(index, check);
        self.compared += 1;
    }

    /// Nothing holds a sender of unreliable WRITEs back: it may have come round to the slot before we looked.
    /// A later message that belongs into the slot is no fault, only one that could not be compared.
    fn is_overwritten(&self, index: usize, number: u64, offset: u64) -> bool {
        let mut head = [0; 8];
        let head = &mut head[..(self.size as usize).min(8)];
        inside(self.target.read(offset as usize, head));
        let there = self.inflows[index].pattern.number_of(head, number + 1);
        there - number < 1 << 32 && (there - number).is_multiple_of(self.layout.target_slots.into())
    }
}
