//! Rockhopper: a RoCEv2 endpoint in user space.
#![forbid(unsafe_code)]
#![warn(missing_docs)]

pub mod config;
pub mod net;
pub mod perf;
