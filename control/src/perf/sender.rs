//! The sending half of an end: keeps each QP's window full, takes the completions, checks what was fetched.
//!
//! Nothing here allocates, locks or makes a system call once a run is under way.

use super::atomics::AtomicCheck;
use super::error::RunError;
use super::layout::{Cursor, Layout};
use super::op::Verb;
use super::params::Params;
use super::pattern::{Pattern, inside};
use super::protocol::{Faults, Sent};
use super::side::{Peer, inline_bytes, spoil};
use crate::verbs::{Mr, Qp};
use engine::queue::{PostError, SendList};
use engine::wr::Remote;
use engine::{Cqe, Nanos, SendFlags, SendOp, SendWr, Sge, WrData, fetch};
use std::sync::Arc;
use wire::{LKey, RKey};

/// The bits of a `wr_id` that carry a message number or slot; the QP's index is above them.
pub(super) const NUMBER_BITS: u32 = 48;
/// Longer than any run: a limit that is not reached.
const ENDLESS: u64 = u64::MAX;
/// Over how long the peak bandwidth is taken, at least.
const PEAK_NS: Nanos = 10_000_000;
/// And over how many completions, since each tells of several messages that may be older than the stretch.
const PEAK_COMPLETIONS: u64 = 16;

/// A `wr_id`.
pub(super) fn tag(qp: usize, number: u64) -> u64 {
    (qp as u64) << NUMBER_BITS | number
}

/// The QP's index and the number of a `wr_id`.
#[inline]
pub(super) fn untag(wr_id: u64) -> (usize, u64) {
    ((wr_id >> NUMBER_BITS) as usize, wr_id & ((1 << NUMBER_BITS) - 1))
}

/// More QPs than a core's second cache holds.
pub(super) const MANY_QPS: usize = 128;
/// Places of send queues that are asked for before their QP's turn, at most.
const FETCHED: u32 = 4;

/// One QP's messages.
struct Flow {
    peer: Peer,
    /// Posted so far, and so the number of the next message.
    posted: u64,
    /// Known to be complete.
    completed: u64,
    /// How many there will be.
    limit: u64,
    local: Cursor,
    target: Cursor,
    pattern: Pattern,
    /// Messages posted since the last one that gives a completion.
    unsignaled: u64,
}

/// What an end sends.
pub(super) struct Sender {
    verb: Verb,
    size: u32,
    verify: bool,
    imm: bool,
    inline: bool,
    /// The last byte of each message tells its number: the peer polls it.
    marks: bool,
    window: u64,
    post_list: u64,
    cq_mod: u64,
    /// Places of a send queue that are asked for ahead.
    fetched: u32,
    layout: Layout,
    local: Mr,
    local_addr: u64,
    lkey: LKey,
    qps: Vec<Qp>,
    /// By QP.
    flows: Vec<Flow>,
    /// The QP that has room for messages since its last completions were taken.
    due: Option<usize>,
    /// QPs that have messages to come.
    unfinished: usize,
    /// A queue was full although the window was not: its QP needs another try.
    refused: bool,
    atomics: AtomicCheck,
    faults: Faults,
    tamper: Option<u64>,
    completed: u64,
    started: Nanos,
    ended: Nanos,
    peak: Peak,
}

impl Sender {
    /// A sender on these QPs. `tamper` is a message whose content is spoilt, for those who want to see a
    /// check fail.
    pub fn new(
        params: &Params,
        qps: &[Qp],
        peers: Vec<Peer>,
        local: Mr,
        from_client: bool,
        tamper: Option<u64>,
    ) -> Sender {
        let layout = Layout::of(params);
        // What is fetched is the peer's content, and what is sent goes to it.
        let to_server = from_client != (params.op.verb == Verb::Read);
        let post_list = params.post_list.min(layout.window);
        // While a list waits for room, what came before it must have been signaled.
        let cq_mod = params.cq_mod.min(layout.window - post_list + 1);
        let flow = |(index, peer): (usize, Peer)| Flow {
            peer,
            posted: 0,
            completed: 0,
            limit: params.iters().unwrap_or(ENDLESS),
            local: layout.local_cursor(index),
            target: layout.target_cursor(index),
            pattern: Pattern::new(params.seed, index, to_server),
            unsignaled: 0,
        };
        Sender {
            verb: params.op.verb,
            size: params.size,
            verify: params.verify,
            imm: params.imm,
            marks: params.op.is_ping_pong() && params.op.verb == Verb::Write,
            inline: params.size <= params.inline && matches!(params.op.verb, Verb::Send | Verb::Write),
            window: layout.window.into(),
            post_list: post_list.into(),
            cq_mod: cq_mod.into(),
            fetched: layout.window.min(FETCHED),
            layout,
            local_addr: local.addr(),
            lkey: local.lkey(),
            local,
            qps: qps.to_vec(),
            flows: peers.into_iter().take(qps.len()).enumerate().map(flow).collect(),
            due: None,
            unfinished: qps.len(),
            refused: false,
            atomics: AtomicCheck::new(qps.len()),
            faults: Faults::default(),
            tamper,
            completed: 0,
            started: 0,
            ended: 0,
            peak: Peak::default(),
        }
    }

    /// Fills every window for the first time.
    pub fn start(&mut self, now: Nanos) -> Result<(), RunError> {
        self.started = now;
        self.peak.begin(now);
        (0..self.flows.len()).try_for_each(|index| self.fill(index))
    }

    /// Begins a run of single messages, each posted by [`post_single`](Self::post_single).
    pub fn start_single(&mut self, now: Nanos) {
        self.started = now;
        self.peak.begin(now);
        self.unfinished = 0;
        for flow in &mut self.flows {
            flow.limit = 0;
        }
    }

    /// One more message on the first QP, posted as soon as the one before it is complete.
    #[inline]
    pub fn post_single(&mut self) -> Result<(), RunError> {
        let Some(flow) = self.flows.first_mut() else { return Ok(()) };
        self.unfinished += usize::from(flow.completed == flow.limit);
        flow.limit += 1;
        self.fill(0)
    }

    /// The last byte of the newest message, where it serves as marker.
    #[inline]
    pub fn marker(&self) -> u8 {
        self.flows.first().map_or(0, |flow| flow.limit as u8)
    }

    /// Takes a send completion: all messages of its QP up to it are complete. Posts what has room now.
    #[inline]
    pub fn on_completion(&mut self, now: Nanos, cqe: &Cqe) -> Result<(), RunError> {
        self.take(now, cqe)?;
        self.fill_due()
    }

    /// Asks for what these completions, and the posts that follow from them, will need: of many QPs it comes from memory.
    pub fn expect(&self, cqes: &[Cqe]) {
        if self.flows.len() <= MANY_QPS {
            return;
        }
        let mut last = usize::MAX;
        for cqe in cqes {
            let (index, _) = untag(cqe.wr_id);
            if index != last
                && let (Some(flow), Some(qp)) = (self.flows.get(index), self.qps.get(index))
            {
                fetch(flow);
                qp.fetch_sends(self.fetched);
                last = index;
            }
        }
    }

    /// Takes a send completion. What has room now is posted with the completions that follow of the same QP, before those of another are
    /// taken, or by [`fill_due`](Self::fill_due).
    #[inline]
    pub fn take(&mut self, now: Nanos, cqe: &Cqe) -> Result<(), RunError> {
        let (index, number) = untag(cqe.wr_id);
        if !cqe.is_success() {
            return Err(failed(cqe, index, format!("message {}", number.saturating_sub(1))));
        }
        if self.due.is_some_and(|due| due != index) {
            self.fill_due()?;
        }
        let Some(flow) = self.flows.get_mut(index) else { return Ok(()) };
        let before = std::mem::replace(&mut flow.completed, number);
        self.completed += number - before;
        if self.verify {
            self.check_fetched(index, before, number);
        }
        if self.flows[index].completed == self.flows[index].limit {
            self.unfinished -= 1;
            self.ended = now;
            return Ok(());
        }
        self.due = Some(index);
        Ok(())
    }

    /// Posts what has room since completions were taken.
    #[inline]
    pub fn fill_due(&mut self) -> Result<(), RunError> {
        self.due.take().map_or(Ok(()), |index| self.fill(index))
    }

    /// Another try for QPs whose queue was full.
    #[inline]
    pub fn retry(&mut self) -> Result<(), RunError> {
        if !std::mem::take(&mut self.refused) {
            return Ok(());
        }
        (0..self.flows.len()).try_for_each(|index| self.fill(index))
    }

    /// No new messages, but for one per QP that has to tell when those before it are complete.
    pub fn wind_up(&mut self, now: Nanos) -> Result<(), RunError> {
        for index in 0..self.flows.len() {
            let flow = &mut self.flows[index];
            if flow.limit != ENDLESS && flow.posted == flow.limit {
                continue;
            }
            flow.limit = flow.posted + u64::from(flow.unsignaled > 0);
            if flow.completed == flow.limit {
                self.unfinished -= 1;
                self.ended = now;
            }
            self.fill(index)?;
        }
        Ok(())
    }

    /// True when all is sent and complete.
    #[inline]
    pub fn is_done(&self) -> bool {
        self.unfinished == 0
    }

    /// Messages complete.
    pub fn completed(&self) -> u64 {
        self.completed
    }

    /// Notes how fast it goes, now and then.
    pub fn sample(&mut self, now: Nanos) {
        self.peak.sample(now, self.completed, PEAK_COMPLETIONS * self.cq_mod);
    }

    /// Sets when the sending ended, where that is not the last completion.
    pub fn end_at(&mut self, now: Nanos) {
        self.ended = now;
    }

    /// What was sent so far.
    pub fn summary(&self) -> Sent {
        let nanos = self.ended.saturating_sub(self.started).max(1);
        let average = self.completed as f64 * 1e9 / nanos as f64;
        Sent {
            messages: self.flows.iter().map(|flow| flow.completed).collect(),
            nanos,
            peak_bytes_per_second: self.peak.best.max(average) * f64::from(self.size),
            unanswered: 0,
            faults: self.faults.clone(),
        }
    }

    /// The account of this end's sending, once it is done.
    pub fn account(mut self) -> Sent {
        if self.verify && self.verb == Verb::Atomic {
            self.atomics.finish(self.completed, &mut self.faults);
        }
        self.summary()
    }

    /// Posts on a QP while its window has room: all of it in one list.
    #[inline]
    fn fill(&mut self, index: usize) -> Result<(), RunError> {
        let flow = &self.flows[index];
        let left = flow.limit - flow.posted;
        let room = self.window - (flow.posted - flow.completed);
        // Whole post lists, but for the last messages.
        let count =
            if left < self.post_list { left } else { room.min(left) / self.post_list * self.post_list };
        if count == 0 || room < count {
            return Ok(());
        }
        // Taken out and put back, so that the rest can be used meanwhile.
        let qps = std::mem::take(&mut self.qps);
        let posted = qps[index].post_send_list(|list| {
            for _ in 0..count {
                if !self.post(index, list)? {
                    self.refused = true;
                    break;
                }
            }
            Ok(())
        });
        self.qps = qps;
        posted.unwrap_or_else(|why| Err(RunError::Post { qp: index, why }))
    }

    /// Posts the next message of a QP; false when the queue was full.
    #[inline]
    fn post(&mut self, index: usize, list: &mut SendList<'_>) -> Result<bool, RunError> {
        let number = self.flows[index].posted;
        let offset = self.flows[index].local.step();
        let target = self.flows[index].target.step();
        if self.verify {
            self.prepare(index, number, offset);
        }
        if self.marks {
            let last = offset as usize + self.size as usize - 1;
            inside(self.local.buffer().write(last, &[(number + 1) as u8]));
        }
        let flow = &mut self.flows[index];
        let next = number + 1;
        let signaled = flow.unsignaled + 1 >= self.cq_mod || next == flow.limit;
        let wr_id = tag(index, next);
        let flags = if signaled { SendFlags::SIGNALED } else { SendFlags::empty() };
        let piece = Sge { addr: self.local_addr + offset, len: self.size, lkey: self.lkey };
        let imm = self.imm.then(|| (number as u32).to_be_bytes());
        let peer = &flow.peer;
        let pushed = match self.verb {
            _ if self.inline => {
                let data = WrData::Inline(inline_bytes(&self.local, offset, self.size));
                list.push(SendWr { wr_id, op: operation(self.verb, peer, target, imm), data, flags })
            }
            // What is known of the operation spares a copy of the request.
            Verb::Write if !self.imm => {
                list.push_piece(wr_id, SendOp::Write(remote(peer, target)), piece, flags)
            }
            verb => list.push_piece(wr_id, operation(verb, peer, target, imm), piece, flags),
        };
        match pushed {
            Ok(()) => {
                flow.posted = next;
                flow.unsignaled = if signaled { 0 } else { flow.unsignaled + 1 };
                Ok(true)
            }
            Err(PostError::Full) => {
                flow.local.back();
                flow.target.back();
                Ok(false)
            }
            Err(why) => Err(RunError::Post { qp: index, why }),
        }
    }

    /// The content of a message to send, or a slot in which nothing looks like what will be fetched.
    fn prepare(&self, index: usize, number: u64, offset: u64) {
        match self.verb {
            Verb::Send | Verb::Write => {
                self.flows[index].pattern.write(number, self.local.buffer(), offset, self.size);
                if self.tamper == Some(number) && index == 0 {
                    spoil(&self.local, offset, self.size);
                }
            }
            Verb::Read => inside(self.local.buffer().fill(offset as usize, self.size as usize, 0)),
            Verb::Atomic => inside(self.local.buffer().store_u64(offset as usize, 0)),
        }
    }

    /// Looks at what the messages `from..to` of a QP have fetched.
    fn check_fetched(&mut self, index: usize, from: u64, to: u64) {
        for number in from..to {
            let offset = self.layout.local_offset(index, number);
            match self.verb {
                Verb::Send | Verb::Write => return,
                Verb::Read => {
                    if self.tamper == Some(number) && index == 0 {
                        spoil(&self.local, offset, self.size);
                    }
                    // The peer's slots do not change: each holds the message with its own number.
                    let slot = number % u64::from(self.layout.target_slots);
                    let check = self.flows[index].pattern.check(slot, self.local.buffer(), offset, self.size);
                    self.faults.expect(index, check);
                }
                Verb::Atomic => {
                    let spoilt = u64::from(self.tamper == Some(number) && index == 0);
                    self.atomics.note(
                        index,
                        self.local.buffer().load_u64(offset as usize).unwrap_or_default() + spoilt,
                        &mut self.faults,
                    );
                }
            }
        }
    }
}

#[inline]
fn operation(verb: Verb, peer: &Peer, target: u64, imm: Option<[u8; 4]>) -> SendOp {
    let remote = remote(peer, target);
    match (verb, &peer.datagram) {
        (Verb::Send, Some(datagram)) => SendOp::UdSend {
            ah: Arc::clone(&datagram.ah),
            remote_qpn: datagram.qpn,
            qkey: datagram.qkey,
            imm,
        },
        (Verb::Send, None) => imm.map_or(SendOp::Send, SendOp::SendImm),
        (Verb::Write, _) => imm.map_or(SendOp::Write(remote), |imm| SendOp::WriteImm(remote, imm)),
        (Verb::Read, _) => SendOp::Read(remote),
        (Verb::Atomic, _) => SendOp::FetchAdd { remote: Remote { addr: peer.target_addr, ..remote }, add: 1 },
    }
}

/// A place in the peer's memory.
#[inline]
fn remote(peer: &Peer, target: u64) -> Remote {
    Remote { addr: peer.target_addr + target, rkey: RKey::new(peer.target_rkey) }
}

/// A completion in error.
#[cold]
pub(super) fn failed(cqe: &Cqe, qp: usize, what: String) -> RunError {
    RunError::Completion { qp, what, status: cqe.status, vendor_err: cqe.vendor_err }
}

/// The best rate over a stretch of time.
#[derive(Debug, Default)]
struct Peak {
    since: Nanos,
    messages: u64,
    /// Messages a second.
    best: f64,
}

impl Peak {
    fn begin(&mut self, now: Nanos) {
        self.since = now;
    }

    fn sample(&mut self, now: Nanos, messages: u64, least: u64) {
        let nanos = now.saturating_sub(self.since);
        if nanos >= PEAK_NS && messages - self.messages >= least {
            let rate = (messages - self.messages) as f64 * 1e9 / nanos as f64;
            self.best = self.best.max(rate);
            (self.since, self.messages) = (now, messages);
        }
    }
}
