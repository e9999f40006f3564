//! A completion channel: where completion queues report that something came.

use crate::error::CreateError;
use crossbeam_queue::ArrayQueue;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::eventfd::{EfdFlags, EventFd};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::time::Duration;

/// Reports of completion queues. Clones are the same channel; any thread may wait.
#[derive(Clone, Debug)]
pub struct CompChannel {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    event: EventFd,
    /// Ids of the queues that reported.
    reports: ArrayQueue<u32>,
}

/// Reports that may wait. Each is one arming of a queue, so more would take as many queues.
const REPORTS: usize = 65_536;

impl CompChannel {
    pub(super) fn new() -> Result<CompChannel, CreateError> {
        let event =
            EventFd::from_flags(EfdFlags::EFD_NONBLOCK | EfdFlags::EFD_CLOEXEC | EfdFlags::EFD_SEMAPHORE)?;
        Ok(CompChannel { shared: Arc::new(Shared { event, reports: ArrayQueue::new(REPORTS) }) })
    }

    /// The [id](super::Cq::id) of the next queue that reported, waiting up to `timeout`. Arm a queue with
    /// [`Cq::arm`](super::Cq::arm) before each report.
    pub fn next(&self, timeout: Duration) -> Option<u32> {
        let timeout = PollTimeout::try_from(timeout).unwrap_or(PollTimeout::MAX);
        let mut fds = [PollFd::new(self.shared.event.as_fd(), PollFlags::POLLIN)];
        // A signal looks like a timeout.
        poll(&mut fds, timeout).ok().filter(|&ready| ready > 0)?;
        self.shared.event.read().ok()?;
        self.shared.reports.pop()
    }

    /// The file descriptor, readable while a report waits: for a program's own poll loop.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.shared.event.as_fd()
    }

    /// A queue reports. Runs on the core that completes.
    pub(super) fn report(&self, cq: u32) {
        if self.shared.reports.push(cq).is_ok() {
            // Fails only after 2^64 reports that nobody took.
            let _ = self.shared.event.write(1);
        }
    }
}
