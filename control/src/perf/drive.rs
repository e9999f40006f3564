//! Who moves the packets while a loop waits, and what time it is.

use super::link::Idle;
use super::watch::Shared;
use crate::verbs::Device;
use dpdk::eal::RegisteredThread;
use dpdk::tsc::Clock;
use engine::Nanos;

/// Turns without work before a thread lets others have its core, and again after as many. A thread that
/// drives the workers waits longer (about 100 µs): its turns are what the latency consists of.
const IDLE_TURNS: u32 = 256;
const IDLE_TURNS_DRIVING: u32 = 4096;

/// The worker's driver where the caller is it; elsewhere a way to wait that leaves the cores to the workers.
pub(super) struct Drive<'a> {
    device: Device,
    clock: Clock,
    shared: &'a Shared,
    is_driver: bool,
    idle_turns: u32,
}

/// Caches of packet buffers for this thread, if it is the one that moves the packets. Without them every
/// buffer is taken under the pool's own lock-free ring, which costs time and nothing else; so a thread that
/// cannot have them goes on.
pub(super) fn thread_caches(device: &Device) -> Option<RegisteredThread> {
    if device.core.is_driven() { crate::eal::register_thread() } else { None }
}

impl<'a> Drive<'a> {
    pub fn new(device: &Device, shared: &'a Shared) -> Self {
        let is_driver = device.core.is_driven();
        Drive { device: device.clone(), clock: device.port.clock, shared, is_driver, idle_turns: 0 }
    }

    /// Whether this thread moves the packets.
    pub fn is_driver(&self) -> bool {
        self.is_driver
    }

    /// Nanoseconds of the worker's clock.
    #[inline]
    pub fn now(&self) -> Nanos {
        self.clock.now_ns()
    }

    /// Moves packets once; true when there was something to do.
    #[inline]
    pub fn poll(&mut self) -> bool {
        self.is_driver && self.device.core.poll_once()
    }

    /// There was something to do.
    #[inline]
    pub fn worked(&mut self) {
        self.idle_turns = 0;
    }

    /// There was nothing to do.
    #[inline]
    pub fn pause(&mut self) {
        self.idle_turns += 1;
        if self.idle_turns >= if self.is_driver { IDLE_TURNS_DRIVING } else { IDLE_TURNS } {
            self.idle_turns = 0;
            std::thread::yield_now();
        }
    }
}

impl Idle for Drive<'_> {
    fn drive(&mut self) -> bool {
        self.poll();
        self.is_driver
    }

    fn stopped(&self) -> bool {
        self.shared.is_stopped()
    }
}
