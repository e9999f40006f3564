//! Tests of connection management through its public API, one scenario per file, in one binary so that they link once.

mod bounds;
mod connects;
mod dead_peers;
mod drops;
mod links;
mod lost;
mod refusals;
mod retries;
mod sidr;
mod sim;
mod stale;
mod support;
mod table;
mod thinking;
