//! Properties that hold for any bytes: each function takes some and panics when its property does not hold.
//!
//! The fuzzer (`scripts/fuzz.sh TARGET`) calls them with bytes that it finds; the tests with the corpus in `corpus/`, and with
//! bytes from dice. An input that ever broke a property is added to the corpus.
#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod bytes;
mod connections;
mod dialogue;
mod packets;
mod plain;
mod setup;

pub use connections::connections;
pub use dialogue::{live_engine, requester, responder};
pub use plain::{capture, checker, impair_plan, wire_parser};

/// A property, by the name of its target and its corpus.
pub type Property = (&'static str, fn(&[u8]));

/// Every property.
pub const ALL: [Property; 8] = [
    ("live_engine", live_engine),
    ("responder", responder),
    ("requester", requester),
    ("wire_parser", wire_parser),
    ("impair_plan", impair_plan),
    ("checker", checker),
    ("capture", capture),
    ("connections", connections),
];
