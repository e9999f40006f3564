//! Limits of the machine, each measured by itself.
//!
//! | limit | file |
//! | --- | --- |
//! | one copy, one CRC-32, or both of each payload byte, in caches and out of them | `memory.rs` |
//! | a cache line's way to another core and back; how long a thread that only spins is kept from it | `cores.rs` |
//! | frames through `net_ring`, and through a port that forwards | `ports.rs` |
//! | the same with a payload that is copied and summed at either end | `carry.rs` |

mod carry;
mod cores;
mod memory;
mod ports;

pub use cores::{Jitter, pin, round_trip_ns, spin_jitter};
pub use memory::{COLD_BYTES, HOT_BYTES, Work, bytes_per_second};
pub use ports::{Content, Pair, PortRate, forward, hop};
