//! Engine and wire, end to end: real engines, real frames, virtual time, seeded links.

mod clean_links;
mod faulty_links;
mod support;
mod unreliable;
