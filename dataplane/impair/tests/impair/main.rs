//! The impairment plan and stage, from outside.

mod dice;
mod effects;
mod refusals;
mod round_trip;
mod shelf;
mod support;
mod which_frames;
