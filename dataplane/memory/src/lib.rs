//! Registered memory: what keys lead to, copied and never referenced.
//!
//! | type | whose | what |
//! | --- | --- | --- |
//! | [`Buffer`] | the application's | zeroed memory with safe, copying access |
//! | [`Regions`] | the control thread's | adds regions, withdraws them, and frees them when no reader can be in them |
//! | [`HostMemory`] | each worker's | the engine's [`Memory`](engine::Memory): copies and atomics without a lock |
//! | [`Lender`] | each worker's | lends bytes out to packets |
//!
//! An application may write its memory at any moment, while a peer's packet is copied into it. So no Rust reference
//! to registered bytes is ever made; `copy.rs` moves them by accesses that may race, and `area.rs` bounds each move.
//!
//! # When memory is freed
//!
//! Readers take no lock and count no references. A withdrawn region is unreachable for every copy that begins
//! later; a copy that is under way ends before its reader next calls [`HostMemory::quiesce`], which a worker does
//! once per burst. [`Regions`] keeps the memory until every reader has done so. Nobody has to be trusted for this: a
//! worker that is never driven again keeps memory from being freed, and that is all.
//!
//! Unsafe code is in `copy.rs` and `summed/` (the moves; those that sum in one pass are the crate `crc`'s), `area.rs` and `source.rs` (bounds before moves), `map.rs` (guard pages) and `host.rs`, `lender.rs` (which memory is alive);
//! `regions.rs` only offers [`Regions::register_raw`], whose caller promises.
//!
//! Under Miri: `scripts/miri.sh memory`.
#![warn(missing_docs)]
#![deny(unsafe_op_in_unsafe_fn)]

mod area;
mod buffer;
mod copy;
mod host;
mod lender;
mod map;
mod regions;
mod source;
mod summed;

pub use area::OutOfRange;
pub use buffer::{Buffer, BufferError};
pub use crc::Lead;
pub use host::{HostMemory, Region};
pub use lender::Lender;
pub use regions::{PartError, Regions, TableFull};
pub use source::Source;
pub use summed::copy_lent;
