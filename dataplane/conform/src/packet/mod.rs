//! Packets: built from a script's line, compared with one, and told in words.

pub(crate) mod build;
pub(crate) mod context;
pub mod describe;
pub(crate) mod matcher;

pub(crate) use context::{Context, QpContext};
