//! Playing a plan: the world is built, everything in the plan happens, and what comes of it is held against the model.
//!
//! Requests are posted as queues have room. When the world has come to rest everything is verified; connections that
//! failed, as the plan meant them to, are then made anew and their other requests go on. What is not known
//! (how far flushed requests got) may be this way or that, byte by byte; all else is exact.

mod drive;
mod flow;
mod keys;
mod model;
mod pool;
mod receives;
mod shared;
mod stats;
mod verify;

pub use stats::Stats;

use crate::plan::Plan;
use crate::tap::Seen;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// What became of a plan.
#[derive(Debug, Default)]
pub struct Outcome {
    /// What is wrong, in words; nothing when all is as it should be.
    pub failure: Option<String>,
    /// What happened.
    pub stats: Stats,
    /// Every frame, when a trace was asked for.
    pub trace: Vec<Seen>,
}

/// Plays a plan. The same plan gives the same outcome.
///
/// A panic of the engine is a failure like others, and its message is the failure's words.
pub fn play(plan: &Plan, with_trace: bool) -> Outcome {
    let mut stage = match drive::Stage::new(plan, with_trace) {
        Ok(stage) => stage,
        Err(failure) => return Outcome { failure: Some(failure), ..Outcome::default() },
    };
    let played = catch_unwind(AssertUnwindSafe(|| stage.play()));
    let failure = match played {
        Ok(result) => result.err(),
        Err(panic) => Some(format!("the engine panicked: {}", words_of(panic.as_ref()))),
    };
    let (stats, trace) = stage.into_parts();
    Outcome { failure, stats, trace }
}

fn words_of(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or(panic.downcast_ref::<&str>().copied()).unwrap_or("without a word").to_owned()
}
