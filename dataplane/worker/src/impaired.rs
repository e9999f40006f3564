//! A bad link on purpose: what an impairment plan does to frames between the port and the rest of the lane.
//!
//! The decisions are `impair`'s; here they are done to packet buffers. Both ways are alike: frames go through the stage, those
//! that pass wait in `ready` for the burst that takes them, held ones on the shelf. Everything is bounded, made at the start,
//! and freed with the lane: what is held when a worker ends is lost, as on a link that is cut.
//! Packets that a port sends to itself never see the link, and pass unharmed.

use crate::rx::{RX_BURST, head};
use crate::tx::TX_BURST;
use arrayvec::ArrayVec;
use dpdk::{Mbuf, MbufBurst, Mempool, RxQueue};
use engine::Nanos;
use impair::{Counters, Direction, Effect, MAX_CLAUSES, Shelf, Stage, Verdict};
use std::collections::VecDeque;
use std::sync::Arc;
use wire::HEAD_LEN;

/// Frames held, each way.
const HELD: usize = 1024;
/// Frames that one burst can become: each with a copy by every clause, and all that were held.
const READY: usize = BURST * (1 + MAX_CLAUSES) + HELD;
/// The longer of both bursts.
const BURST: usize = if RX_BURST > TX_BURST { RX_BURST } else { TX_BURST };

/// A lane's impairments.
#[derive(Debug)]
pub(crate) struct Impaired {
    stage: Stage,
    pool: Arc<Mempool>,
    rx: Way,
    /// Fresh from the port.
    arrived: MbufBurst<RX_BURST>,
    tx: Way,
    /// To be given to the port.
    leaving: MbufBurst<TX_BURST>,
}

/// Frames that go one way, behind the stage.
#[derive(Debug)]
struct Way {
    direction: Direction,
    shelf: Shelf<Mbuf>,
    /// Those that pass, in order.
    ready: VecDeque<Mbuf>,
}

impl Impaired {
    /// Copies of frames come from `pool`.
    pub fn new(stage: Stage, pool: Arc<Mempool>) -> Impaired {
        let (rx, tx) = (Way::new(Direction::Rx), Way::new(Direction::Tx));
        Impaired { stage, pool, rx, arrived: MbufBurst::new(), tx, leaving: MbufBurst::new() }
    }

    /// Takes a burst from the port and puts what passes into `received`, which is empty. Gives how many frames moved.
    pub fn receive(&mut self, now: Nanos, port: &mut RxQueue, received: &mut MbufBurst<RX_BURST>) -> usize {
        if !self.stage.acts_on(Direction::Rx) {
            return port.burst(received);
        }
        let mut moved = 0;
        // No further burst before the last one is through: `ready` is bounded.
        if self.rx.ready.is_empty() {
            moved = port.burst(&mut self.arrived);
            for mbuf in self.arrived.drain() {
                self.rx.take(now, mbuf, &mut self.stage, &self.pool);
            }
        }
        self.rx.release(now);
        self.rx.fill(received);
        moved.max(received.len())
    }

    /// What the port is to be given next: `sealed` goes through the stage, unless frames before it still wait.
    pub fn next_burst<'a>(
        &'a mut self,
        now: Nanos,
        sealed: &'a mut MbufBurst<TX_BURST>,
    ) -> &'a mut MbufBurst<TX_BURST> {
        if !self.stage.acts_on(Direction::Tx) {
            return sealed;
        }
        if self.tx.ready.is_empty() {
            for mbuf in sealed.drain() {
                self.tx.take(now, mbuf, &mut self.stage, &self.pool);
            }
        }
        self.tx.release(now);
        self.tx.fill(&mut self.leaving);
        &mut self.leaving
    }

    /// Frames wait for the port already, or their time on the shelf is over.
    pub fn has_to_send(&self, now: Nanos) -> bool {
        let due = self.tx.shelf.next_due().is_some_and(|due| due <= now);
        due || !self.leaving.is_empty() || !self.tx.ready.is_empty()
    }

    /// No frame waits for anything but its time.
    pub fn is_quiet(&self) -> bool {
        self.rx.ready.is_empty() && self.tx.ready.is_empty() && self.leaving.is_empty()
    }

    /// When the next held frame leaves.
    pub fn next_due(&self) -> Option<Nanos> {
        self.rx.shelf.next_due().into_iter().chain(self.tx.shelf.next_due()).min()
    }

    pub fn counters(&self) -> &Counters {
        self.stage.counters()
    }
}

impl Way {
    fn new(direction: Direction) -> Way {
        Way { direction, shelf: Shelf::with_capacity(HELD), ready: VecDeque::with_capacity(READY) }
    }

    /// A frame goes through the stage: it ends in `ready`, on the shelf, or nowhere.
    fn take(&mut self, now: Nanos, mut mbuf: Mbuf, stage: &mut Stage, pool: &Mempool) {
        let mut scratch = [0; HEAD_LEN];
        let len = mbuf.pkt_len();
        let verdict = stage.decide(now, self.direction, head(&mbuf, &mut scratch), len);
        let mut copies = ArrayVec::<Mbuf, MAX_CLAUSES>::new();
        for _ in 0..verdict.copies() {
            match copy(&mbuf, pool) {
                // A clause copies once.
                Some(copy) => copies.push(copy),
                None => stage.count(Effect::NotCopied),
            }
        }
        if !verdict.is_dropped() {
            change(&mut mbuf, &verdict);
            let passing = match verdict.hold() {
                None => Some(mbuf),
                Some(hold) => {
                    let full = self.shelf.hold(now, hold, mbuf).err();
                    full.inspect(|_| stage.count(Effect::NotHeld))
                }
            };
            passing.into_iter().for_each(|mbuf| self.pass(now, mbuf));
        }
        copies.into_iter().for_each(|mbuf| self.pass(now, mbuf));
    }

    fn pass(&mut self, now: Nanos, mbuf: Mbuf) {
        self.ready.push_back(mbuf);
        self.shelf.frame_passed(now);
        self.release(now);
    }

    /// Held frames whose time has come pass.
    fn release(&mut self, now: Nanos) {
        while let Some(mbuf) = self.shelf.pop(now) {
            self.ready.push_back(mbuf);
        }
    }

    /// As many as the burst takes.
    fn fill<const N: usize>(&mut self, burst: &mut MbufBurst<N>) {
        while !burst.is_full() {
            let Some(mbuf) = self.ready.pop_front() else { break };
            // There is room, as just seen.
            let _ = burst.push(mbuf);
        }
    }
}

/// A packet with the same bytes, in one buffer; `None` when the pool has none, or only shorter ones.
fn copy(mbuf: &Mbuf, pool: &Mempool) -> Option<Mbuf> {
    let mut copy = pool.alloc()?;
    mbuf.segments().all(|bytes| copy.extend_from_slice(bytes)).then_some(copy)
}

fn change(mbuf: &mut Mbuf, verdict: &Verdict) {
    for change in verdict.changes() {
        if let Some(byte) = mbuf.byte_mut(change.at.into()) {
            *byte ^= change.flip;
        }
    }
    if let Some(len) = verdict.len() {
        mbuf.truncate(len);
    }
}
