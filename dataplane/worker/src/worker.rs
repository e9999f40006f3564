//! The worker and its loop.

use crate::command::{CallError, Command, Envelope};
use crate::config::{LaneConfig, PollMode, SetupError, WorkerConfig};
use crate::handle::{Shared, WorkerHandle};
use crate::idle::Idle;
use crate::lane::Lane;
use crate::waker::Waker;
use crossbeam_queue::ArrayQueue;
use dpdk::tsc::Clock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

/// One core's share of the work: a lane per port.
#[derive(Debug)]
pub struct Worker {
    name: String,
    clock: Clock,
    pub(crate) lanes: Vec<Lane>,
    pub(crate) shared: Arc<Shared>,
    idle: Idle,
}

/// Commands per poll: then packets have their turn.
const COMMANDS: usize = 8;

impl Worker {
    /// A worker with a lane for each port. It begins to work when it is [spawned](Self::spawn),
    /// [driven](Self::into_driven) or polled.
    pub fn new(config: WorkerConfig, lanes: Vec<LaneConfig>) -> Result<(Worker, WorkerHandle), SetupError> {
        let waker = Arc::new(Waker::new().map_err(SetupError::EventFd)?);
        let lanes = lanes.into_iter().map(|lane| Lane::new(lane, &waker)).collect::<Result<_, _>>()?;
        let shared = Arc::new(Shared {
            commands: ArrayQueue::new(config.commands.max(1)),
            waker,
            poll: config.poll,
            closed: AtomicBool::new(false),
            stop: AtomicBool::new(false),
            core: OnceLock::new(),
        });
        let worker = Worker { name: config.name, clock: config.clock, lanes, shared, idle: Idle::default() };
        let handle = worker.handle();
        Ok((worker, handle))
    }

    /// The path of a packet, once for every lane. True when there was something to do.
    pub fn poll_once(&mut self) -> bool {
        let now = self.clock.now_ns();
        let mut busy = false;
        for lane in &mut self.lanes {
            busy |= lane.receive(now);
            busy |= lane.receive_looped(now);
            busy |= lane.take_handed_over(now);
            busy |= lane.answer_doorbells(now);
            busy |= lane.transmit(now);
            lane.engine.on_timeout(now);
            lane.quiesce();
        }
        busy | self.run_commands()
    }

    /// Polls until stopped, and rests when the configuration allows.
    pub(crate) fn run(mut self) {
        while !self.is_stopping() {
            if self.poll_once() {
                self.idle.reset();
            } else if self.shared.poll == PollMode::Adaptive {
                self.rest();
            } else {
                std::hint::spin_loop();
            }
        }
        self.flush();
    }

    /// Speaks to this worker.
    pub fn handle(&self) -> WorkerHandle {
        WorkerHandle { shared: Arc::clone(&self.shared) }
    }

    /// The name given.
    pub fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn now(&self) -> engine::Nanos {
        self.clock.now_ns()
    }

    pub(crate) fn is_stopping(&self) -> bool {
        self.shared.stop.load(Ordering::Acquire)
    }

    fn run_commands(&mut self) -> bool {
        let mut busy = false;
        for _ in 0..COMMANDS {
            if self.shared.commands.is_empty() {
                break;
            }
            let Some(Envelope { command, reply, claim }) = self.shared.commands.pop() else { break };
            busy = true;
            if claim.take() {
                let stop = matches!(command, Command::Stop);
                let outcome =
                    if self.is_stopping() { Err(CallError::Stopped) } else { self.execute(command) };
                // A caller that has given up meanwhile is gone: nobody to tell.
                let _ = reply.send(outcome);
                if stop {
                    self.shared.stop.store(true, Ordering::Release);
                }
            }
        }
        busy
    }

    /// Nothing to do: a pause, or a sleep that doorbells, commands, frames of other workers and timers end, and arriving frames
    /// where the driver has a file for it.
    fn rest(&mut self) {
        let now = self.clock.now_ns();
        let lanes = &self.lanes;
        match self.idle.next_sleep(now, || lanes.iter().filter_map(Lane::next_timeout).min()) {
            None => std::hint::spin_loop(),
            Some(limit) => {
                let shared = &self.shared;
                let arrivals = lanes.iter().filter_map(|lane| lane.rx.file());
                shared.waker.sleep_beside(arrivals, limit, || {
                    lanes.iter().all(Lane::is_quiet)
                        && shared.commands.is_empty()
                        && !shared.stop.load(Ordering::Acquire)
                });
            }
        }
    }

    /// Sends what is sealed already, for a bounded number of tries: a port that takes nothing does not keep us.
    pub(crate) fn flush(&mut self) {
        let now = self.clock.now_ns();
        for lane in &mut self.lanes {
            lane.flush(now);
        }
    }
}

impl Drop for Worker {
    /// Callers that wait learn that nobody will answer.
    fn drop(&mut self) {
        self.shared.closed.store(true, Ordering::SeqCst);
        while self.shared.commands.pop().is_some() {}
    }
}
