//! Linux's software RoCE, replayed: requests that it sent are fed to our responder, which must answer as Linux did; and
//! our requester, given the same work and the answers that Linux gave, must send what Linux sent.
//!
//! The captures lie with the wire crate's tests; both ends of each are Linux. What differs for a known reason is listed in
//! `quirks.rs`, by file and reason. `coverage.rs` holds that no frame of any capture is left out silently.

mod answers;
mod capture;
mod coverage;
mod datagrams;
mod flows;
mod messages;
mod quirks;
mod requester;
mod responder;
mod side;
