//! Ctrl-C: the work ends early and what there is is printed; a second one ends the program at once.

use super::failure::Failure;
use rockhopper::perf::Shared;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::sync::Arc;

/// What signals stop from now on.
pub fn on_signal() -> Result<Arc<Shared>, Failure> {
    let mut signals = Signals::new([SIGINT, SIGTERM]).map_err(|why| {
        Failure::setup(format!("signals cannot be caught: {why}; raise the limit of open files"))
    })?;
    let shared = Arc::new(Shared::default());
    let stopped = Arc::clone(&shared);
    std::thread::spawn(move || {
        for signal in &mut signals {
            if stopped.is_stopped() {
                std::process::exit(128 + signal);
            }
            stopped.stop();
        }
    });
    Ok(shared)
}
