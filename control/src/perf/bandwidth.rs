//! The loop of the bandwidth tests: drive the worker, take completions, post what has room; once a
//! millisecond, look up.
//!
//! Both ends run it. What differs is who sends and who receives.

use super::drive::Drive;
use super::error::RunError;
use super::protocol::{Received, Sent};
use super::receiver::Receiver;
use super::sender::Sender;
use super::watch::Watch;
use crate::verbs::Cq;
use engine::{Cqe, Nanos, WcOpcode};
use std::time::Duration;

/// How long a receiver of an unreliable service waits for messages that are still under way.
const STRAGGLERS_NS: Nanos = 50_000_000;
/// How long it waits with a reliable one, where every message that was sent arrives.
const PATIENCE_NS: Nanos = 5_000_000_000;

/// One end of a bandwidth run.
pub(super) struct Bandwidth<'a> {
    pub cq: &'a Cq,
    pub sender: Option<Sender>,
    pub receiver: Option<Receiver>,
    /// How long to send, unless messages are counted.
    pub duration: Option<Duration>,
    pub is_client: bool,
    pub reliable: bool,
    /// Room for completions.
    pub taken: Vec<Cqe>,
}

/// Where a run stands.
#[derive(Default)]
struct Course {
    /// When to stop sending, from when it has begun.
    stop_at: Option<Nanos>,
    wound_up: bool,
    said_done: bool,
    /// When receives were first seen to be waited for, and how many there were.
    waiting: Option<(Nanos, u64)>,
}

impl Bandwidth<'_> {
    /// Completions taken before the worker has its turn again.
    pub const BATCH: usize = 128;

    /// Runs to the end on both sides.
    pub fn run(mut self, drive: &mut Drive, watch: &mut Watch<'_>) -> Result<(Sent, Received), RunError> {
        let mut course = Course::default();
        loop {
            let mut busy = drive.poll();
            let now = drive.now();
            busy |= self.take_completions(now)?;
            if watch.is_due(now) {
                watch.look(now, self.messages())?;
                if self.look(now, watch, &mut course)? {
                    break;
                }
            }
            if busy {
                drive.worked();
            } else {
                self.rest(drive, watch);
            }
        }
        let sent = self.sender.map(Sender::account).unwrap_or_default();
        Ok((sent, self.receiver.map(Receiver::account).unwrap_or_default()))
    }

    #[inline]
    fn take_completions(&mut self, now: Nanos) -> Result<bool, RunError> {
        // Taken out and put back, so that its room is kept.
        let mut taken = std::mem::take(&mut self.taken);
        let count = self.cq.poll(&mut taken, Self::BATCH);
        if let Some(sender) = &self.sender {
            sender.expect(&taken);
        }
        if let Some(receiver) = &self.receiver {
            receiver.expect(&taken);
        }
        for cqe in &taken {
            // An error does not tell what kind of request it was; then it ends the run whoever takes it.
            let is_receive = matches!(cqe.opcode, WcOpcode::Recv | WcOpcode::RecvRdmaWithImm);
            match (&mut self.sender, &mut self.receiver) {
                (_, Some(receiver)) if is_receive => receiver.on_completion(cqe)?,
                (Some(sender), _) => sender.take(now, cqe)?,
                (None, Some(receiver)) => receiver.on_completion(cqe)?,
                (None, None) => {}
            }
        }
        taken.clear();
        self.taken = taken;
        if let Some(sender) = &mut self.sender {
            sender.fill_due()?;
        }
        if let Some(receiver) = &mut self.receiver {
            receiver.refill()?;
        }
        if count < Self::BATCH
            && let Some(sender) = &mut self.sender
        {
            sender.retry()?;
        }
        Ok(count > 0)
    }

    /// Looks whether it is time to begin or to stop; true when both ends are done.
    fn look(&mut self, now: Nanos, watch: &mut Watch<'_>, course: &mut Course) -> Result<bool, RunError> {
        if let Some(sender) = &mut self.sender {
            let Some(stop_at) = course.stop_at else {
                if watch.has_begun {
                    course.stop_at =
                        Some(self.duration.map_or(Nanos::MAX, |time| now + time.as_nanos() as Nanos));
                    sender.start(now)?;
                } else if watch.is_stopped() {
                    return Err(RunError::Stopped);
                }
                return Ok(false);
            };
            sender.sample(now);
            if !course.wound_up && (now >= stop_at || watch.is_stopped()) {
                course.wound_up = true;
                sender.wind_up(now)?;
            }
            if !sender.is_done() {
                return Ok(false);
            }
        }
        if !self.is_client {
            let Some(peer) = &watch.peer_sent else {
                return if watch.is_stopped() { Err(RunError::Stopped) } else { Ok(false) };
            };
            return Ok(self.has_all(now, peer.total(), course));
        }
        if !course.said_done {
            course.said_done = true;
            let sent = self.sender.as_ref().map(Sender::summary).unwrap_or_default();
            watch.say_done(&sent)?;
        }
        let Some(result) = &watch.peer_result else { return Ok(false) };
        Ok(self.has_all(now, result.sent.total(), course))
    }

    /// Whether all messages that the peer has sent have arrived, or will not come any more.
    fn has_all(&self, now: Nanos, sent: u64, course: &mut Course) -> bool {
        let Some(receiver) = &self.receiver else { return true };
        let arrived = receiver.arrived();
        if arrived >= sent {
            return true;
        }
        let patience = if self.reliable { PATIENCE_NS } else { STRAGGLERS_NS };
        match course.waiting {
            Some((since, then)) if then == arrived => now.saturating_sub(since) > patience,
            _ => {
                course.waiting = Some((now, arrived));
                false
            }
        }
    }

    fn messages(&self) -> u64 {
        let sent = self.sender.as_ref().map_or(0, Sender::completed);
        sent + self.receiver.as_ref().map_or(0, Receiver::arrived)
    }

    /// Nothing happened. An end that neither sends nor receives only waits for the peer's word.
    fn rest(&self, drive: &mut Drive, watch: &mut Watch<'_>) {
        let is_passive = self.sender.is_none() && self.receiver.is_none();
        if is_passive && !drive.is_driver() {
            watch.nap();
        } else {
            drive.pause();
        }
    }
}
