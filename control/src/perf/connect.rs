//! Rounds of connect, transfer and disconnect between two endpoints of one process: how many a second, and whether the last are as
//! quick, and take as much memory, as the first.

use crate::cm::{CmError, CmEvent, CmEventKind, CmId, ConnParam, EventChannel, PortSpace};
use crate::{Access, Cq, Endpoint, Mr, Pd, Qp, QpCaps, QpOptions, QpType, RecvWr, SendWr};
use hdrhistogram::Histogram;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

/// What to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConnectPlan {
    /// Connections in all.
    pub rounds: u64,
    /// Connections at a time.
    pub at_once: usize,
    /// Where the server listens; port 0 for any.
    pub server: SocketAddr,
}

/// A tenth of the rounds.
#[derive(Clone, Debug)]
pub struct Tenth {
    /// Rounds in it.
    pub rounds: u64,
    /// How long it took.
    pub took: Duration,
    /// Nanoseconds of a round: from the new identifier to the end of its connection.
    pub latency_ns: Histogram<u64>,
}

/// Bytes of a round's message: its number.
const MESSAGE: usize = 8;
/// Connections whose passive side may still be ending while new ones begin.
const SLACK: usize = 64;
/// Nothing happening for so long is a failure.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long to wait for an event before looking for completions again.
const NAP: Duration = Duration::from_micros(50);

/// Makes the rounds; `on_tenth` hears of each tenth of them when it is over. Every message is compared where it arrives.
///
/// Errors: the first thing that is not as it should be ends the rounds.
pub fn connect_rounds(
    client: &Endpoint,
    server: &Endpoint,
    plan: &ConnectPlan,
    mut on_tenth: impl FnMut(&Tenth),
) -> Result<(), CmError> {
    let mut rounds = Rounds::new(client, server, *plan)?;
    let each = plan.rounds.div_ceil(10).max(1);
    while rounds.done < plan.rounds {
        let goal = (rounds.done + each).min(plan.rounds);
        let (begin, before) = (Instant::now(), rounds.done);
        rounds.until(goal)?;
        on_tenth(&Tenth {
            rounds: rounds.done - before,
            took: begin.elapsed(),
            latency_ns: std::mem::replace(&mut rounds.latency_ns, histogram()),
        });
    }
    rounds.finish()
}

fn histogram() -> Histogram<u64> {
    // Up to a minute; bounds that cannot fail.
    Histogram::new_with_bounds(1, 60_000_000_000, 3).unwrap_or_else(|_| unreachable!("constant bounds"))
}

/// What one side has for all of its connections.
struct Side {
    pd: Pd,
    cq: Cq,
}

impl Side {
    fn of(endpoint: &Endpoint, depth: usize) -> Result<Side, CmError> {
        let device = endpoint.device(0).ok_or(CmError::NoQp)?;
        let cq = device.create_cq((depth * 4) as u32)?;
        Ok(Side { pd: device.alloc_pd(), cq })
    }

    fn qp(&self, id: &CmId) -> Result<Qp, CmError> {
        let caps = QpCaps { max_send_wr: 4, max_recv_wr: 4, ..QpCaps::default() };
        id.create_qp(&self.pd, &QpOptions { caps, ..QpOptions::new(QpType::Rc, &self.cq) })
    }
}

struct Active {
    id: CmId,
    number: u64,
    begun: Instant,
}

struct Passive {
    id: CmId,
    slot: usize,
}

/// A place for a message: free again when both are true.
#[derive(Clone, Copy, Default)]
struct Slot {
    heard: bool,
    closed: bool,
}

struct Rounds<'a> {
    client: &'a Endpoint,
    plan: ConnectPlan,
    to: SocketAddr,
    /// Of both sides.
    channel: EventChannel,
    _listener: CmId,
    ours: Side,
    theirs: Side,
    memory: Mr,
    active: Vec<Active>,
    passive: Vec<Passive>,
    slots: Vec<Slot>,
    free: Vec<usize>,
    started: u64,
    done: u64,
    received: u64,
    latency_ns: Histogram<u64>,
}

impl<'a> Rounds<'a> {
    fn new(client: &'a Endpoint, server: &Endpoint, plan: ConnectPlan) -> Result<Self, CmError> {
        let channel = EventChannel::new()?;
        let listener = server.create_id(&channel, PortSpace::Tcp);
        listener.bind(plan.server)?;
        listener.listen(plan.at_once + SLACK)?;
        let to = listener.local_addr().unwrap_or(plan.server);
        let depth = plan.at_once + SLACK;
        let (ours, theirs) = (Side::of(client, depth)?, Side::of(server, depth)?);
        let memory = theirs.pd.reg_mr(depth * MESSAGE, Access::LOCAL_WRITE)?;
        Ok(Rounds {
            client,
            plan,
            to,
            channel,
            _listener: listener,
            ours,
            theirs,
            memory,
            active: Vec::new(),
            passive: Vec::new(),
            slots: vec![Slot::default(); depth],
            free: (0..depth).collect(),
            started: 0,
            done: 0,
            received: 0,
            latency_ns: histogram(),
        })
    }

    /// Goes on until so many rounds are done.
    fn until(&mut self, goal: u64) -> Result<(), CmError> {
        let mut last = Instant::now();
        while self.done < goal {
            while self.active.len() < self.plan.at_once
                && self.started < self.plan.rounds
                && self.free.len() > self.active.len()
            {
                self.begin()?;
            }
            if self.step(NAP)? {
                last = Instant::now();
            } else if last.elapsed() > PATIENCE {
                return Err(CmError::Timeout);
            }
        }
        Ok(())
    }

    /// Waits until the passive sides have heard, too.
    fn finish(mut self) -> Result<(), CmError> {
        let begin = Instant::now();
        while !self.passive.is_empty() || self.received < self.plan.rounds {
            if !self.step(NAP)? && begin.elapsed() > PATIENCE {
                return Err(CmError::Timeout);
            }
        }
        Ok(())
    }

    fn begin(&mut self) -> Result<(), CmError> {
        let begun = Instant::now();
        let id = self.client.create_id(&self.channel, PortSpace::Tcp);
        id.resolve_addr(None, self.to, PATIENCE)?;
        self.active.push(Active { id, number: self.started, begun });
        self.started += 1;
        Ok(())
    }

    /// Events and completions that are there, or an event that comes soon. True when there was something.
    fn step(&mut self, nap: Duration) -> Result<bool, CmError> {
        let mut busy = false;
        while let Some(event) = self.channel.poll() {
            self.on_event(event)?;
            busy = true;
        }
        while let Some(cqe) = self.ours.cq.poll_one() {
            busy = true;
            // The message has arrived: that is all that this connection was for.
            let sent = self.active.iter().find(|active| active.number == cqe.wr_id);
            match sent.filter(|_| cqe.is_success()) {
                Some(active) => active.id.disconnect()?,
                None => return Err(CmError::Ended(format!("a message was not sent: {cqe:?}"))),
            }
        }
        while let Some(cqe) = self.theirs.cq.poll_one() {
            busy = true;
            if cqe.is_success() {
                self.on_message(cqe.wr_id as usize)?;
            }
        }
        if !busy && let Some(event) = self.channel.wait(nap) {
            self.on_event(event)?;
            busy = true;
        }
        Ok(busy)
    }

    /// The message is one that was sent, and has not come before.
    fn on_message(&mut self, slot: usize) -> Result<(), CmError> {
        let mut bytes = [0; MESSAGE];
        let read = self.memory.read(slot * MESSAGE, &mut bytes);
        let number = u64::from_le_bytes(bytes);
        if read.is_err() || number >= self.started {
            return Err(CmError::Ended(format!("a message says {number}, and {} were sent", self.started)));
        }
        // So that one that comes twice, or not at all, is not taken for this one.
        let _ = self.memory.write(slot * MESSAGE, &[0xFF; MESSAGE]);
        self.received += 1;
        self.slots[slot].heard = true;
        self.release(slot);
        Ok(())
    }

    fn release(&mut self, slot: usize) {
        if self.slots[slot].heard && self.slots[slot].closed {
            self.slots[slot] = Slot::default();
            self.free.push(slot);
        }
    }

    fn on_event(&mut self, event: CmEvent) -> Result<(), CmError> {
        let CmEvent { id, kind, .. } = event;
        let active = self.active.iter().position(|active| active.id == id);
        match (kind, active) {
            (CmEventKind::AddrResolved, Some(_)) => id.resolve_route(PATIENCE),
            (CmEventKind::RouteResolved, Some(_)) => {
                self.ours.qp(&id)?;
                id.connect(&ConnParam::default())
            }
            (CmEventKind::ConnectRequest { .. }, None) => self.accept(id),
            (CmEventKind::Established { .. }, Some(at)) => {
                let number = self.active[at].number;
                let qp = id.qp().ok_or(CmError::NoQp)?;
                let sent = qp.post_send(SendWr::send(number).inline(&number.to_le_bytes()));
                sent.map_err(|why| CmError::Ended(why.to_string()))
            }
            (CmEventKind::Disconnected, Some(at)) => {
                let over = self.active.swap_remove(at);
                let took = over.begun.elapsed().as_nanos() as u64;
                self.latency_ns.saturating_record(took);
                self.done += 1;
                Ok(())
            }
            (CmEventKind::Disconnected, None) => {
                if let Some(at) = self.passive.iter().position(|passive| passive.id == id) {
                    let slot = self.passive.swap_remove(at).slot;
                    self.slots[slot].closed = true;
                    self.release(slot);
                }
                Ok(())
            }
            (CmEventKind::Established { .. } | CmEventKind::TimewaitExit, _) => Ok(()),
            (other, _) => Err(CmError::Ended(format!("a round ended in {other}: {other:?}"))),
        }
    }

    fn accept(&mut self, id: CmId) -> Result<(), CmError> {
        // One for every active side, and some to spare: a round begins only while one is free.
        let slot = self.free.pop().ok_or(CmError::TooMany)?;
        let qp = self.theirs.qp(&id)?;
        let receive = RecvWr::new(slot as u64).sge(self.memory.sge(slot * MESSAGE..(slot + 1) * MESSAGE));
        qp.post_recv(receive).map_err(|why| CmError::Ended(why.to_string()))?;
        id.accept(&ConnParam::default())?;
        self.passive.push(Passive { id, slot });
        Ok(())
    }
}
