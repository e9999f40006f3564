//! The control thread: the slow path of every port, link state, events, and workers whose caller is away.
//!
//! It sleeps until a frame for it arrives, and looks at everything else every few milliseconds; beside a caller that polls, and while
//! nothing comes, every 20.

use super::Drivers;
use super::port::PortCore;
use crate::cm::Host;
use engine::event::EventSource;
use engine::{AsyncEvent, EventKind};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// The sleep, which bounds how late a timer or an event is.
const SLEEP_MS: u8 = 5;
/// The same while a caller drives the workers and nothing has come for some rounds: each round takes microseconds from its core
/// that it would rather poll in. It also bounds how late its leaving is noticed, so it is well below usual ACK timeouts.
const CALM_SLEEP_MS: u8 = 20;
/// The sleep while workers are driven from here, their caller being away: a peer waits for no longer than this for an
/// answer. While the caller is there its core is left alone.
const DRIVEN_SLEEP_MS: u8 = 1;
/// The sleep while somebody waits on a channel and does the work of connection management: then nothing wakes this thread.
const AWAITED_SLEEP: Duration = Duration::from_millis(1);
/// How often links are asked for their state: drivers may take a system call for it.
const LINK_CHECK: Duration = Duration::from_millis(200);
/// How often the next hops of connections are asked about.
const PEER_CHECK: Duration = Duration::from_secs(1);
/// How many rounds of a worker at a time when its caller is away.
const STEP_IN_ROUNDS: usize = 64;

/// The running thread. Dropping this ends it.
pub(crate) struct ControlThread {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl ControlThread {
    pub fn spawn(
        ports: Vec<Arc<PortCore>>,
        drivers: Arc<Drivers>,
        host: Arc<Host>,
    ) -> std::io::Result<ControlThread> {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let thread = std::thread::Builder::new()
            .name("control".into())
            .spawn(move || Rounds::new(ports, drivers, host).run(&stopped))?;
        Ok(ControlThread { stop, thread: Some(thread) })
    }
}

impl Drop for ControlThread {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Release);
        // The last handle of an endpoint may be dropped by anybody, by this thread itself too, with a connection that nobody
        // wants any more: then it ends after this round. A panic was reported when it happened.
        if let Some(thread) =
            self.thread.take().filter(|own| own.thread().id() != std::thread::current().id())
        {
            let _ = thread.join();
        }
    }
}

struct Rounds {
    ports: Vec<Arc<PortCore>>,
    drivers: Arc<Drivers>,
    host: Arc<Host>,
    /// By port: whether its link was up.
    links: Vec<Option<bool>>,
    next_link_check: Instant,
    next_look: Instant,
    polls_seen: u64,
    drives_seen: u64,
    /// The workers' caller has not polled since the last round, or may be about to stop.
    caller_away: bool,
    /// The next sleep while it polls: longer after each that nothing ended.
    sleep_ms: u8,
}

impl Rounds {
    fn new(ports: Vec<Arc<PortCore>>, drivers: Arc<Drivers>, host: Arc<Host>) -> Self {
        Rounds {
            links: vec![None; ports.len()],
            ports,
            drivers,
            host,
            next_link_check: Instant::now(),
            next_look: Instant::now(),
            polls_seen: 0,
            drives_seen: 0,
            caller_away: true,
            sleep_ms: SLEEP_MS,
        }
    }

    fn run(mut self, stop: &AtomicBool) {
        while !stop.load(Ordering::Acquire) {
            let mut busy = false;
            for port in &self.ports {
                busy |= port.visit_network();
            }
            busy |= self.host.visit();
            if Instant::now() >= self.next_link_check {
                self.check_links();
            }
            self.step_in();
            if busy {
                self.sleep_ms = SLEEP_MS;
            } else {
                self.sleep();
            }
        }
    }

    fn check_links(&mut self) {
        self.next_link_check = Instant::now() + LINK_CHECK;
        self.host.tell_of_removal();
        let look_after = Instant::now() >= self.next_look;
        if look_after {
            self.next_look = Instant::now() + PEER_CHECK;
        }
        for (port, was) in self.ports.iter().zip(&mut self.links) {
            port.reclaim();
            if look_after {
                port.look_after_peers();
            }
            let Ok(link) = port.device().link() else { continue };
            if *was == Some(link.up) {
                continue;
            }
            // The first look announces our addresses; it is no news to the application.
            if was.replace(link.up).is_some() {
                let kind = if link.up { EventKind::PortActive } else { EventKind::PortErr };
                port.inbox.push(AsyncEvent { kind, source: EventSource::Port(port.facts.number) });
            }
            if link.up {
                let mut stack = port.network.lock();
                stack.announce(port.clock.now_ns());
                port.send_waiting(&mut stack);
            }
        }
    }

    /// Drives workers whose caller has not polled since the last round.
    fn step_in(&mut self) {
        let polls = self.drivers.polls.load(Ordering::Relaxed);
        self.caller_away = !self.drivers.workers.is_empty() && polls == self.polls_seen;
        if self.caller_away {
            for _ in 0..STEP_IN_ROUNDS {
                if !self.drivers.poll_once() {
                    break;
                }
            }
        }
        self.polls_seen = polls;
    }

    fn sleep(&mut self) {
        let drives = self.host.drives();
        if std::mem::replace(&mut self.drives_seen, drives) != drives {
            // Somebody who waits on a channel does what comes. Not to be woken by it leaves the core to them.
            return std::thread::sleep(AWAITED_SLEEP);
        }
        let wakers = || self.ports.iter().map(|port| port.link.slow_waker());
        wakers().for_each(worker::Waker::prepare);
        let mut fds: Vec<PollFd<'_>> =
            wakers().map(|waker| PollFd::new(waker.fd(), PollFlags::POLLIN)).collect();
        let limit = if self.caller_away { DRIVEN_SLEEP_MS } else { self.sleep_ms };
        // What came before `prepare` woke nobody.
        let quiet = |port: &Arc<PortCore>| port.gsi_is_quiet() && port.link.slow_is_empty();
        if self.ports.iter().all(quiet) {
            // A signal ends the sleep early.
            let woken = poll(&mut fds, PollTimeout::from(limit)) != Ok(0);
            let calm = !woken && !self.caller_away && !self.drivers.workers.is_empty();
            self.sleep_ms = if calm { (self.sleep_ms * 2).min(CALM_SLEEP_MS) } else { SLEEP_MS };
        }
        wakers().for_each(worker::Waker::awake);
    }
}
