//! The bandwidth tests: the client keeps its windows full until all is sent; of SENDs the server counts as many.

use super::super::error::RunError;
use super::super::op::Verb;
use super::super::poster::untag;
use super::super::protocol::{Received, Sent};
use super::super::sender::failed;
use super::content::{Arrivals, Looks};
use super::{Did, Run};
use engine::{Cqe, Nanos, WcOpcode};
use std::time::Duration;

/// How long nothing may move. A reliable QP retries for seconds by itself.
pub(super) const STALLED: Duration = Duration::from_secs(20);
/// Between two looks whether somebody wants the run to stop.
const LOOK: Nanos = 50_000_000;

impl Run<'_> {
    /// The client's part.
    pub(super) fn stream(&mut self) -> Result<Did, RunError> {
        let (iters, qps) = (self.iters(), self.ends.qps.len());
        let window = u64::from(self.ends.window);
        let (mut posted, mut completed) = (vec![0; qps], vec![0; qps]);
        let mut fetched = self.arrivals(Looks::Repeats);
        let mut sums = Additions::new(qps);
        let start = self.drive.now();
        for (qp, posted) in posted.iter_mut().enumerate() {
            while *posted < iters.min(window) {
                self.ends.post(qp, *posted)?;
                *posted += 1;
            }
        }
        while completed.iter().any(|&done| done < iters) {
            let cqe = self.completion()?;
            let (qp, number) = untag(cqe.wr_id);
            if !cqe.is_success() {
                return Err(failed(&cqe, qp, format!("message {number}")));
            }
            completed[qp] += 1;
            self.check_fetched(qp, number, &mut fetched, &mut sums);
            if posted[qp] < iters {
                self.ends.post(qp, posted[qp])?;
                posted[qp] += 1;
            }
            self.shared.set_messages(completed.iter().sum());
        }
        let nanos = self.drive.now() - start;
        let received = Received { faults: fetched.faults, ..Received::default() };
        Ok(Did { sent: Sent { messages: completed, nanos, ..Sent::default() }, received, ..Did::default() })
    }

    /// Looks at what a READ or an atomic has brought.
    pub(super) fn check_fetched(&self, qp: usize, number: u64, fetched: &mut Arrivals, sums: &mut Additions) {
        let offset = self.ends.local_offset(qp, number);
        match self.params.op.verb {
            Verb::Send | Verb::Write => {}
            // The peer's memory does not change: each READ brings the same.
            Verb::Read => fetched.check_same(qp, &self.ends.local, offset),
            Verb::Atomic => {
                let original = self.ends.local.buffer().load_u64(offset as usize).unwrap_or_default();
                let check = sums.note(qp, number, original);
                fetched.faults.expect(qp, check);
            }
        }
    }

    /// The server's part for SENDs: counts and compares as many as the client sends.
    pub(super) fn count(&mut self) -> Result<Did, RunError> {
        let (iters, qps) = (self.iters(), self.ends.qps.len());
        let mut arrived = vec![0; qps];
        let mut arrivals = self.arrivals(Looks::Repeats);
        while arrived.iter().any(|&count| count < iters) {
            let cqe = self.completion()?;
            self.arrival(&cqe, &mut arrived, &mut arrivals)?;
            self.shared.set_messages(arrived.iter().sum());
        }
        Ok(self.counted(arrived, arrivals))
    }

    /// What was counted, and which bytes the peer must have sent first.
    pub(super) fn counted(&self, arrived: Vec<u64>, arrivals: Arrivals) -> Did {
        let first = (0..arrived.len()).filter_map(|qp| arrivals.first_crc(qp)).collect();
        let Arrivals { faults, compared, .. } = arrivals;
        let received = Received { messages: Some(arrived), faults, compared };
        Did { received, first, ..Did::default() }
    }

    /// Takes a receive's completion: compares, posts it again. Its QP.
    pub(super) fn arrival(
        &self,
        cqe: &Cqe,
        arrived: &mut [u64],
        arrivals: &mut Arrivals,
    ) -> Result<usize, RunError> {
        let (qp, slot) = untag(cqe.wr_id);
        if !cqe.is_success() {
            return Err(failed(cqe, qp, "a receive".into()));
        }
        let skip = self.ends.skip();
        let expected = self.params.size + skip;
        if cqe.byte_len != expected {
            arrivals.faults.add(|| format!("QP {qp}: a message of {} bytes, not {expected}", cqe.byte_len));
        }
        let offset = self.ends.target_offset(qp, slot) + u64::from(skip);
        arrivals.check(qp, arrived[qp], &self.ends.target, offset);
        arrived[qp] += 1;
        self.ends.post_recv(qp, slot)?;
        Ok(qp)
    }

    /// The next completion.
    pub(super) fn completion(&mut self) -> Result<Cqe, RunError> {
        let begin = self.drive.now();
        let mut look = begin + LOOK;
        loop {
            self.drive.poll();
            if let Some(cqe) = self.ends.cq.poll_one() {
                self.drive.worked();
                return Ok(cqe);
            }
            let now = self.drive.now();
            if now > look {
                look = now + LOOK;
                self.still_wanted(now - begin)?;
            }
            self.drive.pause();
        }
    }

    /// An error when there is no use in waiting on.
    pub(super) fn still_wanted(&self, waited: Nanos) -> Result<(), RunError> {
        if self.shared.is_stopped() {
            return Err(RunError::Stopped);
        }
        if waited > STALLED.as_nanos() as Nanos {
            return Err(RunError::Stalled(STALLED));
        }
        Ok(())
    }

    pub(super) fn iters(&self) -> u64 {
        self.params.iters().unwrap_or(1)
    }

    pub(super) fn arrivals(&self, looks: Looks) -> Arrivals {
        Arrivals::new(looks, self.params.size, self.ends.patterns())
    }

    /// The additions of all QPs of a peer to our memory, which began as zeros.
    pub(super) fn added(&self) -> u64 {
        let memory = self.ends.target.buffer();
        let words = (0..memory.len() / 8 * 8).step_by(8);
        words.map(|at| memory.load_u64(at).unwrap_or_default()).fold(0, u64::wrapping_add)
    }
}

/// Whether a receive ended.
pub(super) fn is_arrival(cqe: &Cqe) -> bool {
    matches!(cqe.opcode, WcOpcode::Recv | WcOpcode::RecvRdmaWithImm)
}

/// What fetched-and-added values have to be: each QP adds 1 to a word of its own, in order.
pub(super) struct Additions {
    first: Vec<Option<u64>>,
}

impl Additions {
    pub fn new(qps: usize) -> Additions {
        Additions { first: vec![None; qps] }
    }

    /// Addition `number` of a QP brought this original.
    pub fn note(&mut self, qp: usize, number: u64, original: u64) -> Result<(), String> {
        let first = *self.first[qp].get_or_insert(original.wrapping_sub(number));
        let expected = first.wrapping_add(number);
        if original == expected {
            Ok(())
        } else {
            Err(format!("addition {number} brought {original}, not {expected}"))
        }
    }
}
