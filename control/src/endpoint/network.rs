//! A port's slow path between threads: the control thread feeds it, applications resolve through it.

use super::port::PortCore;
use super::resolve::{PATIENCE, PathRequest, ResolvedPath};
use crate::error::ResolveError;
use crate::net::{self, Interface};
use engine::event::EventSource;
use engine::{AsyncEvent, EventKind};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The interface, and a bell for those who wait for a neighbour.
pub(crate) struct Network {
    interface: Mutex<Interface>,
    changed: Condvar,
}

/// Frames taken from the slow path per visit, so that a flood cannot hold the lock.
const FRAMES_PER_VISIT: usize = 256;
/// How often a waiter looks again by itself.
const LOOK: Duration = Duration::from_millis(20);

impl Network {
    pub fn new(interface: Interface) -> Self {
        Network { interface: Mutex::new(interface), changed: Condvar::new() }
    }

    pub fn lock(&self) -> MutexGuard<'_, Interface> {
        self.interface.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl PortCore {
    /// One visit of the control thread: frames in, timers, frames out, events. True when there was a frame.
    pub fn visit_network(&self) -> bool {
        let now = self.clock.now_ns();
        let mut interface = self.network.lock();
        let mut bytes = Vec::new();
        let mut count = 0;
        while let Some(frame) = self.link.take_slow() {
            bytes.resize(frame.pkt_len(), 0);
            frame.copy_to(0, &mut bytes);
            interface.on_frame(now, &bytes);
            count += 1;
            if count == FRAMES_PER_VISIT {
                break;
            }
        }
        interface.on_timeout(now);
        self.send_waiting(&mut interface);
        self.report(&mut interface);
        drop(interface);
        self.answer_waiting();
        while let Some(event) = self.raised.poll() {
            if let (EventKind::CommEst, EventSource::Qp(qpn)) = (event.kind, event.source) {
                self.cm_heard(qpn);
            }
            self.inbox.push(event);
        }
        count > 0
    }

    /// Gives the interface's frames to a worker. What does not fit is lost, as on any link; the protocols repeat.
    pub fn send_waiting(&self, interface: &mut Interface) {
        while let Some(frame) = interface.poll_transmit() {
            let Some(mut mbuf) = self.pool.alloc() else { continue };
            if mbuf.extend_from_slice(&frame) {
                let _ = self.link.inject(mbuf);
            }
        }
    }

    fn report(&self, interface: &mut Interface) {
        while let Some(event) = interface.poll_event() {
            match event {
                net::Event::Neighbour(_) => self.network.changed.notify_all(),
                net::Event::GidChange { .. } => {
                    self.cm.news.note_addresses();
                    self.inbox.push(AsyncEvent {
                        kind: EventKind::GidChange,
                        source: EventSource::Port(self.facts.number),
                    });
                }
                // Counted by the interface; the other station is told by our defence.
                net::Event::Conflict { .. } => {}
            }
        }
    }

    /// Finds a path, calling `drive` while the link is asked.
    pub fn resolve(
        &self,
        request: &PathRequest,
        drive: impl Fn() -> bool,
    ) -> Result<ResolvedPath, ResolveError> {
        let end = Instant::now() + request.timeout.map_or(PATIENCE, |timeout| timeout.min(PATIENCE));
        loop {
            // Held until the wait begins, so that no answer slips by in between.
            let mut interface = self.network.lock();
            if let Some(path) = self.try_resolve_in(&mut interface, request)? {
                return Ok(path);
            }
            if Instant::now() >= end {
                return Err(ResolveError::Unreachable(request.destination.address));
            }
            if drive() {
                drop(interface);
                std::thread::sleep(Duration::from_micros(100));
            } else {
                drop(self.network.changed.wait_timeout(interface, LOOK));
            }
        }
    }
}
