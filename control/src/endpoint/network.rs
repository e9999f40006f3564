//! A port's slow path between threads: the control thread feeds it, applications resolve through it.

use super::peers::Moved;
use super::port::PortCore;
use super::resolve::{PathRequest, ResolvedPath};
use crate::error::ResolveError;
use crate::net::{self, NeighbourEvent, Stack};
use engine::event::EventSource;
use engine::{AsyncEvent, EventKind};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The links of the port, and a bell for those who wait for a neighbour.
pub(crate) struct Network {
    stack: Mutex<Stack>,
    changed: Condvar,
}

/// Frames taken from the slow path per visit, so that a flood cannot hold the lock.
const FRAMES_PER_VISIT: usize = 256;
/// How often a waiter looks again by itself.
const LOOK: Duration = Duration::from_millis(20);

impl Network {
    pub fn new(stack: Stack) -> Self {
        Network { stack: Mutex::new(stack), changed: Condvar::new() }
    }

    pub fn lock(&self) -> MutexGuard<'_, Stack> {
        self.stack.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl PortCore {
    /// One visit of the control thread: frames in, timers, frames out, events. True when there was a frame.
    pub fn visit_network(&self) -> bool {
        let now = self.clock.now_ns();
        let mut stack = self.network.lock();
        let mut bytes = Vec::new();
        let mut count = 0;
        while let Some(frame) = self.link.take_slow() {
            bytes.resize(frame.pkt_len(), 0);
            frame.copy_to(0, &mut bytes);
            stack.on_frame(now, &bytes, frame.stripped_vlan());
            count += 1;
            if count == FRAMES_PER_VISIT {
                break;
            }
        }
        stack.on_timeout(now);
        self.send_waiting(&mut stack);
        self.report(&mut stack);
        drop(stack);
        self.follow_moved();
        self.answer_waiting();
        while let Some(event) = self.raised.poll() {
            if let (EventKind::CommEst, EventSource::Qp(qpn)) = (event.kind, event.source) {
                self.cm_heard(qpn);
            }
            self.inbox.push(event);
        }
        count > 0
    }

    /// Gives the links' frames to a worker. What does not fit is lost, as on any link; the protocols repeat.
    pub fn send_waiting(&self, stack: &mut Stack) {
        while let Some(frame) = stack.poll_transmit() {
            let Some(mut mbuf) = self.pool.alloc() else { continue };
            if mbuf.extend_from_slice(&frame) {
                let _ = self.link.inject(mbuf);
            }
        }
    }

    /// Tells those whom it concerns what has happened.
    pub fn report(&self, stack: &mut Stack) {
        while let Some(event) = stack.poll_event() {
            match event {
                net::Event::Neighbour { vlan, event } => {
                    self.network.changed.notify_all();
                    if let NeighbourEvent::Changed { address, old, new } = event {
                        self.peers.note_moved(Moved { vlan, hop: address, from: old, to: new });
                    }
                }
                net::Event::GidChange { index } => {
                    self.cm.news.note_addresses();
                    self.inbox.push(AsyncEvent {
                        kind: EventKind::GidChange,
                        source: EventSource::Gid { port: self.facts.number, index: index as u16 },
                    });
                }
                // Kept by the link for people; the other station is told by our defence.
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
        let end = Instant::now() + self.patience(request);
        loop {
            // Held until the wait begins, so that no answer slips by in between.
            let mut stack = self.network.lock();
            if let Some(path) = self.try_resolve_in(&mut stack, request)? {
                return Ok(path);
            }
            if Instant::now() >= end {
                return Err(ResolveError::Unreachable(request.destination.address));
            }
            if drive() {
                drop(stack);
                std::thread::sleep(Duration::from_micros(100));
            } else {
                drop(self.network.changed.wait_timeout(stack, LOOK));
            }
        }
    }
}
