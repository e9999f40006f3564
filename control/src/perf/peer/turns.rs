//! One message at a time: the latency tests, and the pingpongs with a message under way on each QP.

use super::super::error::RunError;
use super::super::latency::histogram;
use super::super::op::Verb;
use super::super::poster::untag;
use super::super::protocol::{Faults, Received, Sent};
use super::super::sender::failed;
use super::content::{Looks, filled_with};
use super::stream::{Additions, is_arrival};
use super::{Did, Run};
use engine::Nanos;

/// Between two looks whether somebody wants the run to stop.
const LOOK: Nanos = 50_000_000;

impl Run<'_> {
    /// READs or atomics, each after the one before it.
    pub(super) fn round_trips(&mut self) -> Result<Did, RunError> {
        let iters = self.iters();
        let mut latency = histogram();
        let mut fetched = self.arrivals(Looks::Repeats);
        let mut sums = Additions::new(1);
        let start = self.drive.now();
        for number in 0..iters {
            let before = self.drive.now();
            self.ends.post(0, number)?;
            let cqe = self.completion()?;
            if !cqe.is_success() {
                return Err(failed(&cqe, 0, format!("message {number}")));
            }
            latency.saturating_record(self.drive.now() - before);
            self.check_fetched(0, number, &mut fetched, &mut sums);
        }
        let sent = Sent { messages: vec![iters], nanos: self.drive.now() - start, ..Sent::default() };
        let received = Received { faults: fetched.faults, ..Received::default() };
        Ok(Did { sent, received, latency: Some(latency), ..Did::default() })
    }

    /// SENDs to and fro: each arrival is answered on its QP, until as many as asked for were sent and have come, on all QPs
    /// together. The client begins, on each QP.
    pub(super) fn ping_pong(&mut self, looks: Looks) -> Result<Did, RunError> {
        let (iters, qps) = (self.iters(), self.ends.qps.len());
        let mut exchange = PingPong {
            posted: vec![0; qps],
            completed: vec![0; qps],
            arrived: vec![0; qps],
            since: vec![None; qps],
        };
        let mut arrivals = self.arrivals(looks);
        let mut latency = histogram();
        let start = self.drive.now();
        if !self.is_server {
            for qp in 0..qps.min(iters as usize) {
                exchange.send(self, qp)?;
            }
        }
        while exchange.completed.iter().sum::<u64>() < iters || exchange.arrived.iter().sum::<u64>() < iters {
            let cqe = self.completion()?;
            if !is_arrival(&cqe) {
                let (qp, number) = untag(cqe.wr_id);
                if !cqe.is_success() {
                    return Err(failed(&cqe, qp, format!("message {number}")));
                }
                exchange.completed[qp] += 1;
                continue;
            }
            let now = self.drive.now();
            let qp = self.arrival(&cqe, &mut exchange.arrived, &mut arrivals)?;
            if let Some(since) = exchange.since[qp].take() {
                latency.saturating_record((now - since) / 2);
            }
            if exchange.posted.iter().sum::<u64>() < iters {
                exchange.send(self, qp)?;
            }
        }
        let nanos = self.drive.now() - start;
        let mut did = self.counted(exchange.arrived, arrivals);
        did.sent = Sent { messages: exchange.completed, nanos, ..Sent::default() };
        did.latency = (!self.is_server).then_some(latency);
        Ok(did)
    }

    /// WRITEs to and fro: the last byte of each is its number, and whoever waits looks at it. The server begins.
    pub(super) fn write_turns(&mut self) -> Result<Did, RunError> {
        let iters = self.iters();
        let mut latency = histogram();
        let mut faults = Faults::default();
        let mut completed = 0;
        let start = self.drive.now();
        let mut since = None;
        for number in 0..iters {
            if self.is_server {
                since = Some(self.drive.now());
                self.ends.post(0, number)?;
            }
            self.wait_for_mark((number + 1) as u8, &mut completed)?;
            if let Some(since) = since {
                latency.saturating_record((self.drive.now() - since) / 2);
            }
            faults.expect(0, filled_with(&self.ends.target, 0, self.params.size - 1, 0));
            if !self.is_server {
                since = Some(self.drive.now());
                self.ends.post(0, number)?;
            }
        }
        while completed < iters {
            let cqe = self.completion()?;
            if !cqe.is_success() {
                return Err(failed(&cqe, 0, format!("message {completed}")));
            }
            completed += 1;
        }
        let sent = Sent { messages: vec![iters], nanos: self.drive.now() - start, ..Sent::default() };
        let received = Received { messages: Some(vec![iters]), faults, compared: iters };
        Ok(Did { sent, received, latency: Some(latency), ..Did::default() })
    }

    /// Waits for the peer's WRITE with this last byte; counts completions of ours meanwhile. They are taken although the WRITE is
    /// there already, as it is time and again when this thread is kept from its core: the queue does not hold many turns.
    fn wait_for_mark(&mut self, mark: u8, completed: &mut u64) -> Result<(), RunError> {
        let last = self.params.size as usize - 1;
        let begin = self.drive.now();
        let mut look = begin + LOOK;
        loop {
            self.drive.poll();
            while let Some(cqe) = self.ends.cq.poll_one() {
                if !cqe.is_success() {
                    return Err(failed(&cqe, 0, format!("message {completed}")));
                }
                *completed += 1;
            }
            if self.ends.target.buffer().load_u8(last).unwrap_or_default() == mark {
                break;
            }
            let now = self.drive.now();
            if now > look {
                look = now + LOOK;
                self.still_wanted(now - begin)?;
            }
            self.drive.pause();
        }
        self.drive.worked();
        Ok(())
    }

    /// Whether the latency test of this operation goes to and fro.
    pub(super) fn latency(&mut self) -> Result<Did, RunError> {
        match self.params.op.verb {
            Verb::Send => self.ping_pong(Looks::Repeats),
            Verb::Write => self.write_turns(),
            Verb::Read | Verb::Atomic => self.round_trips(),
        }
    }
}

/// Messages so far, per QP.
struct PingPong {
    posted: Vec<u64>,
    completed: Vec<u64>,
    arrived: Vec<u64>,
    /// When the last one was posted, while its answer is not here.
    since: Vec<Option<Nanos>>,
}

impl PingPong {
    fn send(&mut self, run: &Run<'_>, qp: usize) -> Result<(), RunError> {
        self.since[qp] = Some(run.drive.now());
        run.ends.post(qp, self.posted[qp])?;
        self.posted[qp] += 1;
        Ok(())
    }
}
