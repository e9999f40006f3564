//! Engine and wire, end to end: real engines, real frames, virtual time, seeded links.

mod clean_links;
mod dead_link;
mod draining;
mod fairness;
mod faulty_links;
mod flush;
mod moving_home;
mod receiver_not_ready;
mod remote_keys;
mod shared_cell;
mod shared_receives;
mod support;
mod unreliable;
mod windows;
mod xrc;
