//! Ctrl-C: the run ends early and its result is printed; a second one ends the program at once.

use crate::failure::Failure;
use rockhopper::perf::Shared;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::sync::Arc;

/// From now on signals stop what `shared` belongs to.
pub fn on_signal(shared: &Arc<Shared>) -> Result<(), Failure> {
    let mut signals = Signals::new([SIGINT, SIGTERM])
        .map_err(|why| Failure::setup(format!("signals cannot be caught: {why}")))?;
    let shared = Arc::clone(shared);
    std::thread::spawn(move || {
        for signal in &mut signals {
            if shared.is_stopped() {
                std::process::exit(128 + signal);
            }
            shared.stop();
        }
    });
    Ok(())
}
