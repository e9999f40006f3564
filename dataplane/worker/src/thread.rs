//! A worker on a thread of its own.

use crate::handle::WorkerHandle;
use crate::worker::Worker;
use dpdk::{Eal, EalError};
use std::sync::atomic::Ordering;
use std::sync::mpsc::sync_channel;
use std::thread::JoinHandle;

/// Why a worker's thread did not start.
#[derive(Debug, thiserror::Error)]
pub enum SpawnError {
    /// The system makes no more threads.
    #[error("the worker's thread cannot be made: {0}")]
    Thread(#[from] std::io::Error),
    /// The thread cannot run on that core.
    #[error("the worker cannot be pinned to core {0}: it does not exist or is not allowed to this process")]
    Pin(usize),
    /// DPDK does not take the thread.
    #[error(transparent)]
    Eal(#[from] EalError),
    /// The thread ended before it began.
    #[error("the worker's thread ended at once")]
    Died,
}

/// A worker on its thread. Dropping this stops it and waits for its end.
#[derive(Debug)]
pub struct WorkerThread {
    handle: WorkerHandle,
    thread: Option<JoinHandle<()>>,
}

impl Worker {
    /// Runs the worker on a thread of its own, pinned to `core` if one is given.
    pub fn spawn(self, eal: &Eal, core: Option<usize>) -> Result<WorkerThread, SpawnError> {
        let handle = self.handle();
        let (started, start) = sync_channel(1);
        let eal = eal.clone();
        let name = self.name().chars().take(15).collect();
        let thread = std::thread::Builder::new().name(name).spawn(move || {
            // Pinned first: DPDK notes where the thread runs.
            if let Some(core) = core.filter(|&core| !pin(core)) {
                let _ = started.send(Err(SpawnError::Pin(core)));
                return;
            }
            match eal.register_thread() {
                Ok(_registered) => {
                    let _ = started.send(Ok(()));
                    self.run();
                }
                Err(error) => {
                    let _ = started.send(Err(error.into()));
                }
            }
        })?;
        if let Err(error) = start.recv().unwrap_or(Err(SpawnError::Died)) {
            // The queues are free again when this returns.
            let _ = thread.join();
            return Err(error);
        }
        Ok(WorkerThread { handle, thread: Some(thread) })
    }
}

/// Binds this thread to a core; false when there is no such core for it.
fn pin(core: usize) -> bool {
    let allowed = core_affinity::get_core_ids().unwrap_or_default();
    allowed.into_iter().find(|id| id.id == core).is_some_and(core_affinity::set_for_current)
}

impl WorkerThread {
    /// Speaks to it.
    pub fn handle(&self) -> WorkerHandle {
        self.handle.clone()
    }

    /// Stops the worker and waits until it has let go of its queues. False when it ended by a panic.
    pub fn stop(mut self) -> bool {
        self.end()
    }

    fn end(&mut self) -> bool {
        let Some(thread) = self.thread.take() else { return true };
        self.handle.shared.stop.store(true, Ordering::Release);
        self.handle.shared.waker.wake();
        thread.join().is_ok()
    }
}

impl Drop for WorkerThread {
    fn drop(&mut self) {
        self.end();
    }
}
