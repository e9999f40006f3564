//! The sending half of an end: keeps each QP's window full, takes the completions, checks what was fetched.
//!
//! Nothing here allocates, locks or makes a system call once a run is under way.

use super::atomics::AtomicCheck;
use super::error::RunError;
use super::layout::Layout;
use super::op::Verb;
use super::params::Params;
use super::poster::{ENDLESS, Flow, Poster, untag};
use super::protocol::{Faults, Sent};
use super::side::{Peer, spoil};
use crate::verbs::{Mr, Qp};
use engine::{Cqe, Nanos, fetch};

/// Over how long the peak bandwidth is taken, at least.
const PEAK_NS: Nanos = 10_000_000;
/// And over how many completions, since each tells of several messages that may be older than the stretch.
const PEAK_COMPLETIONS: u64 = 16;

/// More QPs than a core's second cache holds.
pub(super) const MANY_QPS: usize = 128;
/// Places of send queues that are asked for before their QP's turn, at most.
const FETCHED: u32 = 4;

/// What an end sends.
pub(super) struct Sender {
    poster: Poster,
    window: u64,
    post_list: u64,
    /// Places of a send queue that are asked for ahead.
    fetched: u32,
    layout: Layout,
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
        let flow = |(index, peer)| Flow::new(index, peer, params, &layout, to_server);
        Sender {
            poster: Poster::new(params, cq_mod.into(), local, tamper),
            window: layout.window.into(),
            post_list: post_list.into(),
            fetched: layout.window.min(FETCHED),
            qps: qps.to_vec(),
            flows: peers.into_iter().take(qps.len()).enumerate().map(flow).collect(),
            layout,
            due: None,
            unfinished: qps.len(),
            refused: false,
            atomics: AtomicCheck::new(qps.len()),
            faults: Faults::default(),
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
        if self.poster.verify {
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
            if flow.limit != ENDLESS && flow.next.posted == flow.limit {
                continue;
            }
            flow.limit = flow.next.posted + u64::from(flow.next.unsignaled > 0);
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
        self.peak.sample(now, self.completed, PEAK_COMPLETIONS * self.poster.cq_mod);
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
            peak_bytes_per_second: self.peak.best.max(average) * f64::from(self.poster.size()),
            unanswered: 0,
            faults: self.faults.clone(),
        }
    }

    /// The account of this end's sending, once it is done.
    pub fn account(mut self) -> Sent {
        if self.poster.verify && self.poster.verb == Verb::Atomic {
            self.atomics.finish(self.completed, &mut self.faults);
        }
        self.summary()
    }

    /// Posts on a QP while its window has room: all of it in one list.
    #[inline]
    fn fill(&mut self, index: usize) -> Result<(), RunError> {
        let flow = &mut self.flows[index];
        let left = flow.limit - flow.next.posted;
        let room = self.window - (flow.next.posted - flow.completed);
        // Whole post lists, but for the last messages.
        let count =
            if left < self.post_list { left } else { room.min(left) / self.post_list * self.post_list };
        if count == 0 || room < count {
            return Ok(());
        }
        let mut at = flow.next;
        let posted = self.qps[index].post_send_list(|list| {
            self.refused |= !self.poster.post(flow, &mut at, list, count)?;
            Ok(())
        });
        flow.next = at;
        posted.unwrap_or_else(|why| Err(RunError::Post { qp: index, why }))
    }

    /// Looks at what the messages `from..to` of a QP have fetched.
    fn check_fetched(&mut self, index: usize, from: u64, to: u64) {
        let Sender { poster, layout, flows, atomics, faults, .. } = self;
        let (flow, buffer, size) = (&flows[index], poster.local.buffer(), poster.size());
        for number in from..to {
            let offset = layout.local_offset(index, number);
            match poster.verb {
                Verb::Send | Verb::Write => return,
                Verb::Read => {
                    if poster.is_spoilt(flow, number) {
                        spoil(&poster.local, offset, size);
                    }
                    // The peer's slots do not change: each holds the message with its own number.
                    let slot = number % u64::from(layout.target_slots);
                    faults.expect(index, flow.pattern.check(slot, buffer, offset, size));
                }
                Verb::Atomic => {
                    let spoilt = u64::from(poster.is_spoilt(flow, number));
                    let fetched = buffer.load_u64(offset as usize).unwrap_or_default();
                    atomics.note(index, fetched + spoilt, faults);
                }
            }
        }
    }
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
