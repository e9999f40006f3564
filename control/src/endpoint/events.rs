//! Asynchronous events on their way to the application.

use engine::{AsyncEvent, EventKind};
use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Events that nobody has read yet.
pub(crate) struct EventInbox {
    events: Mutex<VecDeque<AsyncEvent>>,
    arrived: Condvar,
}

/// Most events that wait; then the oldest are forgotten, since late news is better than old news.
const MOST: usize = 1024;

impl EventInbox {
    pub fn new() -> Self {
        EventInbox { events: Mutex::new(VecDeque::new()), arrived: Condvar::new() }
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<AsyncEvent>> {
        self.events.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn push(&self, event: AsyncEvent) {
        let mut events = self.lock();
        if events.len() == MOST {
            events.pop_front();
        }
        events.push_back(event);
        self.arrived.notify_all();
    }

    /// The oldest event, waiting up to `timeout` for one.
    pub fn next(&self, timeout: Duration) -> Option<AsyncEvent> {
        let end = Instant::now() + timeout;
        let mut events = self.lock();
        loop {
            if let Some(event) = events.pop_front() {
                return Some(event);
            }
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return None;
            }
            events = self.arrived.wait_timeout(events, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

/// The name under which an event is shown.
pub fn event_name(kind: EventKind) -> &'static str {
    match kind {
        EventKind::CqErr => "CQ error",
        EventKind::QpFatal => "QP fatal error",
        EventKind::QpReqErr => "QP request error",
        EventKind::QpAccessErr => "QP access error",
        EventKind::CommEst => "communication established",
        EventKind::SqDrained => "send queue drained",
        EventKind::PortActive => "port active",
        EventKind::PortErr => "port down",
        EventKind::SrqErr => "SRQ error",
        EventKind::SrqLimitReached => "SRQ limit reached",
        EventKind::QpLastWqeReached => "last receive reached",
        EventKind::GidChange => "GID table changed",
    }
}
