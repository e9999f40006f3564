//! The loops of the latency tests: one message at a time.
//!
//! SEND and WRITE go to and fro, each end answering the other's message with its own; half of the round trip
//! is recorded. READ and atomics are round trips by themselves. The answering end never gives up by itself:
//! the peer says when it is over.

use super::drive::Drive;
use super::error::RunError;
use super::op::Verb;
use super::params::Params;
use super::pattern::Pattern;
use super::protocol::{Received, Sent};
use super::receiver::Receiver;
use super::sender::Sender;
use super::watch::Watch;
use crate::verbs::{Cq, Mr};
use engine::{Nanos, WcOpcode};
use hdrhistogram::Histogram;
use std::time::Duration;

/// How long an answer may take on an unreliable service before the message counts as lost.
const LOST_NS: Nanos = 100_000_000;
/// How long on a reliable one; it retries by itself, for seconds.
const STALLED: Duration = Duration::from_secs(20);
/// Longest latency told apart, nanoseconds.
const LONGEST_NS: u64 = 60_000_000_000;

/// An empty histogram of nanoseconds, three digits exact. It does not grow when values are recorded.
pub(crate) fn histogram() -> Histogram<u64> {
    // The bounds are constants that the library takes.
    Histogram::new_with_bounds(1, LONGEST_NS, 3).unwrap_or_else(|why| panic!("histogram bounds: {why}"))
}

/// One end of a latency run.
pub(super) struct Latency<'a> {
    pub params: &'a Params,
    pub cq: &'a Cq,
    pub target: &'a Mr,
    pub sender: Sender,
    pub receiver: Option<Receiver>,
    /// What the peer's messages look like.
    pub pattern: Pattern,
    pub is_client: bool,
    /// Messages of the peer that were seen (ping-pong of WRITEs).
    pub seen: u64,
    /// What was wrong with them.
    pub received: Received,
}

/// What ended a wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wait {
    Came,
    Lost,
    Over,
}

impl Latency<'_> {
    /// The measuring end. Records nanoseconds.
    pub fn measure(
        mut self,
        drive: &mut Drive<'_>,
        watch: &mut Watch<'_>,
        record: &mut Histogram<u64>,
    ) -> Result<(Sent, Received), RunError> {
        let iters = self.params.iters().unwrap_or(u64::MAX);
        let start = drive.now();
        let stop_at = self.params.duration().map_or(Nanos::MAX, |time| start + time.as_nanos() as Nanos);
        let parts = if self.params.op.is_ping_pong() { 2 } else { 1 };
        let (mut done, mut unanswered, mut now) = (0, 0, start);
        self.sender.start_single(start);
        while done < iters && now < stop_at {
            let before = drive.now();
            self.sender.post_single()?;
            let answered = self.wait(drive, watch, before)?;
            now = drive.now();
            done += 1;
            match answered {
                Wait::Came => record.saturating_record((now - before) / parts),
                Wait::Lost => unanswered += 1,
                Wait::Over => break,
            }
            self.check_answer();
        }
        self.finish(drive, watch, now, unanswered)
    }

    /// The answering end: a message for each of the peer's.
    pub fn answer(
        mut self,
        drive: &mut Drive<'_>,
        watch: &mut Watch<'_>,
    ) -> Result<(Sent, Received), RunError> {
        let now = drive.now();
        self.sender.start_single(now);
        if self.params.op.is_ping_pong() {
            while self.wait(drive, watch, Nanos::MAX)? == Wait::Came {
                self.check_answer();
                self.sender.post_single()?;
            }
        } else {
            while watch.peer_sent.is_none() {
                self.turn(drive, watch)?;
                if !drive.is_driver() {
                    watch.nap();
                }
            }
        }
        self.complete(drive, watch)?;
        Ok(self.accounts(0))
    }

    /// Messages of the peer so far.
    fn arrived(&self) -> u64 {
        self.receiver.as_ref().map_or(self.seen, Receiver::arrived)
    }

    /// Whether what this end waits for is there.
    #[inline]
    fn came(&self, answers: u64) -> bool {
        match self.params.op.verb {
            Verb::Send => self.arrived() > answers,
            Verb::Read | Verb::Atomic => self.sender.is_done(),
            Verb::Write => {
                let last = self.params.size as usize - 1;
                let byte = self.target.buffer().load_u8(last).unwrap_or_default();
                if self.is_client { byte == self.sender.marker() } else { byte != self.seen as u8 }
            }
        }
    }

    /// Waits for the peer's message, or for our own to be complete. `since` is when the wait began; an end
    /// that only answers waits without end.
    fn wait(&mut self, drive: &mut Drive<'_>, watch: &mut Watch<'_>, since: Nanos) -> Result<Wait, RunError> {
        let answers = self.arrived();
        loop {
            drive.poll();
            // Once a turn: the answer is seen half a turn late on average, and a clock takes its part of that.
            let now = drive.now();
            self.take_completions(now)?;
            if self.came(answers) {
                drive.worked();
                self.note_seen();
                return Ok(Wait::Came);
            }
            if watch.is_due(now) {
                watch.look(now, self.sender.completed())?;
                if self.is_client && watch.is_stopped() {
                    return Ok(Wait::Over);
                }
                if watch.peer_sent.is_some() {
                    return self.last_turn(drive, answers);
                }
                if watch.is_stopped() {
                    return Err(RunError::Stopped);
                }
                let waited = now.saturating_sub(since);
                if waited > LOST_NS && !self.params.transport.is_reliable() {
                    return Ok(Wait::Lost);
                }
                if waited > STALLED.as_nanos() as Nanos {
                    return Err(RunError::Stalled(STALLED));
                }
            }
            drive.pause();
        }
    }

    /// The peer has sent all: a message that came since this end last looked is still its message.
    fn last_turn(&mut self, drive: &mut Drive<'_>, answers: u64) -> Result<Wait, RunError> {
        drive.poll();
        self.take_completions(drive.now())?;
        if self.came(answers) {
            self.note_seen();
            return Ok(Wait::Came);
        }
        Ok(Wait::Over)
    }

    /// The marker of a WRITE tells its number's low byte, and so how many the peer has sent.
    fn note_seen(&mut self) {
        if self.params.op.verb == Verb::Write {
            let last = self.params.size as usize - 1;
            let byte = self.target.buffer().load_u8(last).unwrap_or_default();
            self.seen += u64::from(byte.wrapping_sub(self.seen as u8));
        }
    }

    /// Compares the peer's WRITE that was just seen; SENDs were compared as they arrived.
    fn check_answer(&mut self) {
        if self.params.verify && self.params.op.verb == Verb::Write && self.seen > 0 {
            let len = self.params.size - 1;
            let check = self.pattern.check(self.seen - 1, self.target.buffer(), 0, len);
            self.received.faults.expect(0, check);
            self.received.compared += 1;
        }
    }

    fn take_completions(&mut self, now: Nanos) -> Result<(), RunError> {
        while let Some(cqe) = self.cq.poll_one() {
            match &mut self.receiver {
                Some(receiver) if matches!(cqe.opcode, WcOpcode::Recv | WcOpcode::RecvRdmaWithImm) => {
                    receiver.on_completion(&cqe)?;
                    receiver.refill()?;
                }
                _ => self.sender.on_completion(now, &cqe)?,
            }
        }
        Ok(())
    }

    /// One turn of a loop that only has to keep things going.
    fn turn(&mut self, drive: &mut Drive<'_>, watch: &mut Watch<'_>) -> Result<(), RunError> {
        drive.poll();
        let now = drive.now();
        self.take_completions(now)?;
        if watch.is_due(now) {
            watch.look(now, self.sender.completed())?;
            if watch.is_stopped() && !self.is_client {
                return Err(RunError::Stopped);
            }
        }
        Ok(())
    }

    /// Tells the peer, and hears what it saw.
    fn finish(
        mut self,
        drive: &mut Drive<'_>,
        watch: &mut Watch<'_>,
        ended: Nanos,
        unanswered: u64,
    ) -> Result<(Sent, Received), RunError> {
        self.complete(drive, watch)?;
        self.sender.end_at(ended);
        watch.say_done(&self.sender.summary())?;
        while watch.peer_result.is_none() {
            self.turn(drive, watch)?;
        }
        Ok(self.accounts(unanswered))
    }

    /// Waits until the last message is complete: then it counts.
    fn complete(&mut self, drive: &mut Drive<'_>, watch: &mut Watch<'_>) -> Result<(), RunError> {
        let give_up = drive.now() + STALLED.as_nanos() as Nanos;
        while !self.sender.is_done() {
            self.turn(drive, watch)?;
            if drive.now() > give_up {
                return Err(RunError::Stalled(STALLED));
            }
        }
        Ok(())
    }

    fn accounts(self, unanswered: u64) -> (Sent, Received) {
        let mut received = self.received;
        if let Some(receiver) = self.receiver {
            received = receiver.account();
        } else if self.params.op.is_ping_pong() {
            received.messages = Some(vec![self.seen]);
        }
        (Sent { unanswered, ..self.sender.account() }, received)
    }
}
