//! Standard output. A reader that went away (`| head`) is no reason to panic, but neither is it success.

use std::fmt::Display;
use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};

static LOST: AtomicBool = AtomicBool::new(false);

/// Prints a line.
pub fn say(line: impl Display) {
    print(format_args!("{line}\n"));
}

/// Prints a part of a line, at once.
pub fn print(part: impl Display) {
    let mut out = std::io::stdout().lock();
    if write!(out, "{part}").and_then(|()| out.flush()).is_err() {
        LOST.store(true, Ordering::Relaxed);
    }
}

/// True when something could not be printed.
pub fn is_lost() -> bool {
    LOST.load(Ordering::Relaxed)
}
