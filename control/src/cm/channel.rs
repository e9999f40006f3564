//! Event channels: where the events of connection identifiers wait to be read.

use super::event::{CmEvent, Queued};
use super::host::Host;
use super::id::CmId;
use crate::error::CreateError;
use nix::poll::{PollFd, PollFlags};
use nix::sys::eventfd::{EfdFlags, EventFd};
use std::collections::VecDeque;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

/// Events of connection identifiers, after `rdma_event_channel`. Clones are the same channel; any thread may wait. When the
/// last one goes, events that nobody has read go too, and connections that nobody has accepted are rejected.
#[derive(Clone)]
pub struct EventChannel {
    pub(super) shared: Arc<Channel>,
}

impl std::fmt::Debug for EventChannel {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("EventChannel").field("waiting", &self.shared.lock().events.len()).finish()
    }
}

/// What the handles of a channel share.
pub(super) struct Channel {
    event: EventFd,
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    events: VecDeque<Queued>,
    /// Whose work a waiter does: endpoints of its identifiers.
    hosts: Vec<Weak<Host>>,
}

fn any(_: &Queued) -> bool {
    true
}

/// How long a waiter sleeps at most where it drives workers itself.
const DRIVEN_NAP: Duration = Duration::from_micros(50);
/// How long a waiter sleeps while events wait that it does not want.
const SHARED_NAP: Duration = Duration::from_millis(1);
/// Polls without work before such a nap.
const DRIVEN_PATIENCE: u32 = 64;

impl Channel {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds an event and wakes who waits. As many wait as there are identifiers with something to say: each connection
    /// has a handful in its life, and connections that nobody accepts are bounded by their listener's backlog.
    pub fn push(&self, event: Queued) {
        self.lock().events.push_back(event);
        // Fails only after 2^64 events that nobody took.
        let _ = self.event.write(1);
    }

    /// An identifier of this endpoint reports here from now on.
    pub fn serve(&self, host: &Arc<Host>) {
        let mut inner = self.lock();
        inner.hosts.retain(|known| known.strong_count() > 0);
        if !inner.hosts.iter().any(|known| std::ptr::eq(known.as_ptr(), Arc::as_ptr(host))) {
            inner.hosts.push(Arc::downgrade(host));
        }
    }

    /// Takes out the events of one identifier, in order.
    pub fn take_of(&self, id: &CmId) -> Vec<Queued> {
        let mut inner = self.lock();
        let all = std::mem::take(&mut inner.events);
        let (theirs, others): (Vec<_>, Vec<_>) = all.into_iter().partition(|event| event.is_of(id));
        inner.events = others.into();
        theirs
    }

    /// Takes back the connect request that brought an identifier, if nobody has read it, with whatever is queued for it; whether it
    /// was there.
    pub fn withdraw(&self, id: &CmId) -> bool {
        let mut inner = self.lock();
        let unread = inner.events.iter().any(|event| event.brings(id));
        let mut gone = Vec::new();
        if unread {
            let all = std::mem::take(&mut inner.events);
            let (theirs, others): (Vec<_>, Vec<_>) = all.into_iter().partition(|event| event.is_of(id));
            (gone, inner.events) = (theirs, others.into());
        }
        // Without the lock: identifiers go with their events.
        drop(inner);
        drop(gone);
        unread
    }

    /// The oldest event that is wanted.
    fn pop(&self, wanted: &impl Fn(&Queued) -> bool) -> Option<CmEvent> {
        loop {
            let queued = {
                let mut inner = self.lock();
                let queued = inner.events.iter().position(wanted).and_then(|at| inner.events.remove(at));
                if inner.events.is_empty() {
                    let _ = self.event.read();
                }
                queued?
            };
            // One whose identifier was destroyed meanwhile is nobody's. It is dropped without the lock.
            if let Some(event) = queued.into_event() {
                return Some(event);
            }
        }
    }
}

impl EventChannel {
    /// A channel without identifiers. Fails when the process has no file descriptor left.
    pub fn new() -> Result<EventChannel, CreateError> {
        let event = EventFd::from_flags(EfdFlags::EFD_NONBLOCK | EfdFlags::EFD_CLOEXEC)?;
        Ok(EventChannel { shared: Arc::new(Channel { event, inner: Mutex::default() }) })
    }

    /// The oldest event, if there is one. Where the caller drives the workers, their connection management is done first.
    pub fn poll(&self) -> Option<CmEvent> {
        if let Some(event) = self.shared.pop(&any) {
            return Some(event);
        }
        self.work();
        self.shared.pop(&any)
    }

    /// The oldest event, waiting up to `timeout` for one.
    pub fn wait(&self, timeout: Duration) -> Option<CmEvent> {
        self.wait_where(timeout, &any)
    }

    /// The oldest connect request for a listener, waiting up to `timeout` for one.
    pub(super) fn wait_for_request(&self, listener: &CmId, timeout: Duration) -> Option<CmEvent> {
        self.wait_where(timeout, &|event: &Queued| event.is_request_for(listener))
    }

    fn wait_where(&self, timeout: Duration, wanted: &impl Fn(&Queued) -> bool) -> Option<CmEvent> {
        let begin = Instant::now();
        let mut idle = 0;
        loop {
            if let Some(event) = self.shared.pop(wanted) {
                return Some(event);
            }
            let left = timeout.saturating_sub(begin.elapsed());
            if left.is_zero() {
                return None;
            }
            match self.work() {
                None => self.sleep(left),
                Some(true) => idle = 0,
                Some(false) => {
                    idle += 1;
                    if idle > DRIVEN_PATIENCE {
                        self.sleep(left.min(DRIVEN_NAP));
                    }
                }
            }
        }
    }

    /// Readable while an event waits: for a program's own poll loop. An event that another thread reads first, or whose
    /// identifier was destroyed, leaves nothing for [`poll`](Self::poll).
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.shared.event.as_fd()
    }

    /// Does the work of endpoints that callers drive. `None` when there is none; whether something was to do.
    fn work(&self) -> Option<bool> {
        let hosts: Vec<Arc<Host>> = self
            .shared
            .lock()
            .hosts
            .iter()
            .filter_map(Weak::upgrade)
            .filter(|host| host.is_driven())
            .collect();
        if hosts.is_empty() {
            return None;
        }
        Some(hosts.iter().fold(false, |busy, host| busy | host.drive()))
    }

    fn sleep(&self, limit: Duration) {
        if !self.shared.lock().events.is_empty() {
            // What waits is somebody else's, and keeps the descriptor readable.
            return std::thread::sleep(limit.min(SHARED_NAP));
        }
        let mut fds = [PollFd::new(self.shared.event.as_fd(), PollFlags::POLLIN)];
        let limit = nix::sys::time::TimeSpec::from_duration(limit);
        // A signal ends the sleep early, which does no harm.
        let _ = nix::poll::ppoll(&mut fds, Some(limit), None);
    }
}
