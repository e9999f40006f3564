//! The perf session: two ends agree over TCP on what to run, run it on QPs of their own, and check what arrived.
//!
//! `rockhopper-perf` is the client (and, without a host, the server); `rockhopper serve` is a server too. The protocol
//! is ours, not part of any specification; what is measured follows perftest's meaning where the names are the same.
//!
//! | question | file |
//! | --- | --- |
//! | what can be asked for, and what is refused | `params.rs` |
//! | which bytes a message has, and whether they arrived | `pattern.rs` |
//! | where messages lie in memory | `layout.rs` |
//! | what the two ends say to each other | `protocol.rs`, `link.rs` |
