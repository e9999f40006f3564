//! What is fixed when a [`Cm`](crate::Cm) is made: who we are, how long things may take, how much there may be.

use wire::{Mtu, PKey};

const MS: u64 = 1_000_000;

/// How a message that nobody answers is repeated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timing {
    /// Nanoseconds between two sendings of a message.
    pub interval_ns: u64,
    /// How often it is sent in all, 1 or more. After the last one the same interval passes before its peer counts as gone.
    pub tries: u32,
}

impl Timing {
    /// Nanoseconds until a silent peer is reported.
    pub const fn patience_ns(&self) -> u64 {
        self.interval_ns.saturating_mul(self.tries as u64)
    }
}

/// Five sendings, 200 ms apart: a dead peer is reported after one second.
impl Default for Timing {
    fn default() -> Self {
        Timing { interval_ns: 200 * MS, tries: 5 }
    }
}

/// How much there may be. What is full refuses the new, never the old.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Connections that are not in timewait.
    pub connections: usize,
    /// Connections in timewait; the oldest leaves early when there are more.
    pub timewait: usize,
    /// Requests of one peer (one remote GID) that are not established yet.
    pub half_open_per_peer: usize,
    /// Datagram requests of both sides, answered ones that wait for duplicates among them.
    pub sidr: usize,
    /// Listeners.
    pub listeners: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            connections: 65_536,
            timewait: 65_536,
            half_open_per_peer: 1_024,
            sidr: 4_096,
            listeners: 4_096,
        }
    }
}

/// Everything that is fixed at creation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// GUID of this node: non-zero, stable, unique to it.
    pub ca_guid: u64,
    /// Seed of communication IDs, transaction IDs and request numbers: unpredictable, or fixed for a test.
    pub seed: [u8; 32],
    /// Largest path MTU of the port; a request for more is rejected.
    pub mtu: Mtu,
    /// Partition of the port.
    pub pkey: PKey,
    /// Of every message that is repeated, where its call or [`Cm::set_timing`](crate::Cm::set_timing) says nothing else. REPs keep
    /// to what the peer has announced if it answers sooner.
    pub timing: Timing,
    /// Nanoseconds that the application may think about a request or a reply, before it counts as refused.
    pub think_ns: u64,
    /// Longest time that a peer's MRA can make us wait for its next message, in nanoseconds.
    pub mra_max_ns: u64,
    /// Shortest and longest timewait, in nanoseconds; in between it is the connection's ACK timeout.
    pub timewait_ns: (u64, u64),
    /// Capacities.
    pub limits: Limits,
}

impl Config {
    /// Defaults for a node.
    pub fn new(ca_guid: u64, seed: [u8; 32]) -> Config {
        Config {
            ca_guid,
            seed,
            mtu: Mtu::Mtu4096,
            pkey: PKey::DEFAULT,
            timing: Timing::default(),
            think_ns: 30_000 * MS,
            mra_max_ns: 70_000 * MS,
            timewait_ns: (100 * MS, 2_000 * MS),
            limits: Limits::default(),
        }
    }
}
