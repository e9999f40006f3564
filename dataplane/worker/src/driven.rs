//! A worker without a thread: whoever calls drives it.

use crate::handle::WorkerHandle;
use crate::worker::Worker;
use std::sync::{Arc, Mutex, PoisonError, TryLockError};

/// The place of a driven worker, shared with its handles.
#[derive(Debug)]
pub(crate) struct Core(Mutex<Option<Worker>>);

impl Core {
    pub fn new(worker: Worker) -> Core {
        Core(Mutex::new(Some(worker)))
    }

    /// Polls once; `None` when another thread is at it or the worker is gone.
    pub fn poll_once(&self) -> Option<bool> {
        let mut place = match self.0.try_lock() {
            Ok(place) => place,
            Err(TryLockError::Poisoned(place)) => place.into_inner(),
            Err(TryLockError::WouldBlock) => return None,
        };
        poll(&mut place)
    }

    /// As [`poll_once`](Self::poll_once), but waits for its turn while another thread is at it.
    fn poll_in_turn(&self) -> Option<bool> {
        poll(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn take(&self) -> Option<Worker> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

fn poll(place: &mut Option<Worker>) -> Option<bool> {
    let worker = place.as_mut()?;
    let busy = worker.poll_once();
    if worker.is_stopping() {
        worker.flush();
        *place = None;
    }
    Some(busy)
}

/// A worker that its callers drive: for programs that run to completion on one thread. Any thread may drive it, one at
/// a time; commands drive it themselves, so that a program with one thread cannot wait for itself.
#[derive(Debug)]
pub struct DrivenWorker {
    handle: WorkerHandle,
}

impl Worker {
    /// Leaves the driving to callers.
    pub fn into_driven(self) -> DrivenWorker {
        let handle = self.handle();
        let shared = Arc::clone(&handle.shared);
        // A worker is made driven once: it is consumed, and `into_worker` is its end.
        let _ = shared.core.set(Core::new(self));
        DrivenWorker { handle }
    }
}

impl DrivenWorker {
    /// Polls once. True when there was something to do; false also while another thread drives.
    pub fn poll_once(&self) -> bool {
        self.handle.shared.core.get().and_then(Core::poll_once).unwrap_or(false)
    }

    /// As [`poll_once`](Self::poll_once), but waits for its turn while another thread drives.
    pub fn poll_in_turn(&self) -> bool {
        self.handle.shared.core.get().and_then(Core::poll_in_turn).unwrap_or(false)
    }

    /// Speaks to it.
    pub fn handle(&self) -> WorkerHandle {
        self.handle.clone()
    }

    /// Ends the worker.
    fn end(&self) {
        drop(self.handle.shared.core.get().and_then(Core::take));
    }
}

impl Drop for DrivenWorker {
    fn drop(&mut self) {
        self.end();
    }
}
