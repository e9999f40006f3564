//! Waiting for a completion, with an eye on whoever wants to stop.

use super::ProgramError;
use crate::perf::Shared;
use crate::verbs::Cq;
use engine::Cqe;
use std::time::{Duration, Instant};

/// Between two looks whether to go on.
const LOOK: Duration = Duration::from_millis(20);

/// The next completion, which came in time.
pub(super) fn completion(cq: &Cq, patience: Duration, stop: &Shared) -> Result<Cqe, ProgramError> {
    let end = Instant::now() + patience;
    loop {
        let left = end.saturating_duration_since(Instant::now());
        if let Some(cqe) = cq.wait(LOOK.min(left)) {
            return Ok(cqe);
        }
        if stop.is_stopped() {
            return Err(ProgramError::Stopped);
        }
        if left.is_zero() {
            return Err(ProgramError::Silent(patience));
        }
    }
}
