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

/// Where the end of a run stands.
#[derive(Default)]
struct Ending {
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
        let start = drive.now();
        let stop_at = self.duration.map_or(Nanos::MAX, |duration| start + duration.as_nanos() as Nanos);
        let mut ending = Ending::default();
        if let Some(sender) = &mut self.sender {
            sender.start(start)?;
        }
        loop {
            let mut busy = drive.poll();
            let now = drive.now();
            busy |= self.take_completions(now)?;
            if watch.is_due(now) {
                watch.look(now, self.messages())?;
                if self.look(now, stop_at, watch, &mut ending)? {
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

    /// Looks whether it is time to stop; true when both ends are done.
    fn look(
        &mut self,
        now: Nanos,
        stop_at: Nanos,
        watch: &mut Watch<'_>,
        ending: &mut Ending,
    ) -> Result<bool, RunError> {
        if let Some(sender) = &mut self.sender {
            sender.sample(now);
            if !ending.wound_up && (now >= stop_at || watch.is_stopped()) {
                ending.wound_up = true;
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
            return Ok(self.has_all(now, peer.total(), ending));
        }
        if !ending.said_done {
            ending.said_done = true;
            let sent = self.sender.as_ref().map(Sender::summary).unwrap_or_default();
            watch.say_done(&sent)?;
        }
        let Some(result) = &watch.peer_result else { return Ok(false) };
        Ok(self.has_all(now, result.sent.total(), ending))
    }

    /// Whether all messages that the peer has sent have arrived, or will not come any more.
    fn has_all(&self, now: Nanos, sent: u64, ending: &mut Ending) -> bool {
        let Some(receiver) = &self.receiver else { return true };
        let arrived = receiver.arrived();
        if arrived >= sent {
            return true;
        }
        let patience = if self.reliable { PATIENCE_NS } else { STRAGGLERS_NS };
        match ending.waiting {
            Some((since, then)) if then == arrived => now.saturating_sub(since) > patience,
            _ => {
                ending.waiting = Some((now, arrived));
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
