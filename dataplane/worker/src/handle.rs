//! How other threads speak to a worker.

use crate::command::{CallError, Claim, Command, Envelope, Outcome, Reply};
use crate::config::PollMode;
use crate::driven::Core;
use crate::waker::Waker;
use crossbeam_queue::ArrayQueue;
use std::sync::Arc;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, TryRecvError, sync_channel};
use std::time::{Duration, Instant};

/// What a worker and its handles share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub commands: ArrayQueue<Envelope>,
    pub waker: Arc<Waker>,
    pub poll: PollMode,
    /// The worker has ended: nobody takes commands any more.
    pub closed: AtomicBool,
    /// The worker is to end after this poll.
    pub stop: AtomicBool,
    /// The worker itself, when callers drive it.
    pub core: OnceLock<Core>,
}

/// Speaks to a worker from any thread.
#[derive(Clone, Debug)]
pub struct WorkerHandle {
    pub(crate) shared: Arc<Shared>,
}

/// How long [`WorkerHandle::call`] waits. A worker looks at its commands every few microseconds, asleep every
/// millisecond.
const PATIENCE: Duration = Duration::from_secs(5);

/// While driving: how long to leave the core to whoever else has it.
const STEP: Duration = Duration::from_micros(50);

impl WorkerHandle {
    /// Has the worker execute a command and waits for the reply. A worker that callers drive is driven by this one as
    /// far as needed. After an error nothing was changed, but for [`CallError::Stopped`], which leaves it open.
    pub fn call(&self, command: Command) -> Result<Reply, CallError> {
        self.call_within(command, PATIENCE)
    }

    /// [`call`](Self::call) with a patience of its own.
    pub fn call_within(&self, command: Command, patience: Duration) -> Result<Reply, CallError> {
        let (reply, answer) = sync_channel(1);
        let claim = Arc::new(Claim::default());
        let envelope = Envelope { command, reply, claim: Arc::clone(&claim) };
        if self.is_stopped() {
            return Err(CallError::Stopped);
        }
        self.shared.commands.push(envelope).map_err(|_| CallError::Full)?;
        if self.is_stopped() {
            // The worker may have emptied the ring before the push: nobody would.
            while self.shared.commands.pop().is_some() {}
        }
        self.shared.waker.wake();
        self.await_reply(&answer, &claim, Instant::now() + patience)
    }

    /// True once the worker has ended.
    pub fn is_stopped(&self) -> bool {
        self.shared.closed.load(Ordering::SeqCst)
    }

    fn await_reply(&self, answer: &Receiver<Outcome>, claim: &Claim, end: Instant) -> Outcome {
        while let Some(core) = self.shared.core.get() {
            match answer.try_recv() {
                Ok(outcome) => return outcome,
                Err(TryRecvError::Disconnected) => return Err(CallError::Stopped),
                Err(TryRecvError::Empty) => {}
            }
            if Instant::now() >= end {
                break;
            }
            if core.poll_once().is_none() {
                // Another thread drives: it may be about to take our command, or be long in something else.
                std::thread::sleep(STEP);
            }
        }
        match answer.recv_timeout(end.saturating_duration_since(Instant::now())) {
            Ok(outcome) => outcome,
            Err(RecvTimeoutError::Disconnected) => Err(CallError::Stopped),
            Err(RecvTimeoutError::Timeout) if claim.withdraw() => Err(CallError::Timeout),
            // It is being executed this moment.
            Err(RecvTimeoutError::Timeout) => answer.recv().unwrap_or(Err(CallError::Stopped)),
        }
    }
}
