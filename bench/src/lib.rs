//! What no endpoint in software can pass on this machine: the measurements of memory, CRC, cores and rings that
//! `rockhopper-perf suite` sets beside those of Rockhopper, and what its workers do by themselves. The examples use them as well.
#![forbid(unsafe_code)]
#![warn(missing_docs)]

pub mod limits;
pub mod workers;
