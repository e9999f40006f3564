//! Linux' programs over rdma_cm, both roles: what they say to each other once they are connected.
//!
//! None of it is in a specification. The forms were observed on the wire between Linux programs (rdma-core 44).
//!
//! | program | service | port | file |
//! | --- | --- | --- | --- |
//! | rping | RC | 7174 | `rping.rs` |

mod cmatose;
mod error;
mod perftest;
mod rping;
mod udaddy;
#[cfg(test)]
pub(crate) mod testkit;
mod wait;

pub use error::ProgramError;
