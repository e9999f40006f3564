//! What no endpoint in software can pass on this machine: the measurements of memory, CRC, cores and rings that
//! `rockhopper-perf suite` sets beside those of Rockhopper. The examples use them as well.
#![forbid(unsafe_code)]
#![warn(missing_docs)]

pub mod limits;
