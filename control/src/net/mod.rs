//! The slow-path network of one port: what makes a Rockhopper address reachable and finds the way to others.
//!
//! It answers ARP, IPv6 neighbour solicitations and echo requests, resolves addresses to MACs, chooses source
//! addresses and next hops, and keeps the GID table. A port is a [`Stack`] of links, its own and one for each VLAN sub-port; each
//! is an [`Interface`] of its own. Everything is sans-IO: frames go in as bytes, frames
//! come out of a queue, and time is an argument in nanoseconds that never goes back. RoCE itself never passes
//! here.
//!
//! Serves RFC 826 and 5227 (ARP), 4861 (neighbour discovery), 792 and 4443 (echo, and packets that are too big), and section "GIDs and
//! address resolution" of the wire facts. Left out: router discovery (gateways are configured), duplicate
//! address detection of our own addresses before use (conflicts are reported when they show), and reassembly. Clauses of RFCs are cited as unverified: from knowledge of the
//! protocols, not beside the text.
//!
//! Ethernet comes from `wire`, the rest is read and written through `smoltcp::wire`: safe Rust, fuzzed, no
//! allocation. Ours are the checks that belong to a host rather than to a parser.

mod address;
mod bucket;
mod build;
mod cache;
mod choice;
mod counters;
mod gid;
mod interface;
mod membership;
mod parse;
mod route;
mod stack;
mod too_big;

pub use address::{Prefix, PrefixError, link_local, solicited_node};
pub use cache::{CacheLimits, Event as NeighbourEvent, Resolution};
pub use choice::{Choice, Scope, Want, WrongGid};
pub use counters::{Counter, Counters};
pub use gid::{GidEntry, GidTable};
pub use interface::{Config, ConfigError, Conflict, Interface, LinkEvent, MAX_ADDRESSES};
pub use route::{NextHop, Route, RouteError, Router};
pub use stack::{AddressRefused, Event, Stack};
pub use too_big::TooBig;

#[cfg(test)]
mod tests;

/// Nanoseconds of one second: every time and interval of this module counts nanoseconds.
pub const SECOND_NS: u64 = 1_000_000_000;
