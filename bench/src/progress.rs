//! A line on the terminal while a run takes long.

use rockhopper::perf::Shared;
use std::io::{IsTerminal, Write};
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Runs that are over before this show nothing.
const PATIENCE: Duration = Duration::from_secs(2);
const PERIOD: Duration = Duration::from_millis(500);

/// The line; it vanishes with this.
pub struct Progress {
    // Dropped before the thread is waited for: that is what ends it.
    alive: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Progress {
    /// Shows how far `shared`'s run is, if stderr is a terminal.
    pub fn show(shared: &Arc<Shared>, what: String) -> Progress {
        if !std::io::stderr().is_terminal() {
            return Progress { alive: None, thread: None };
        }
        let (alive, ended) = channel::<()>();
        let shared = Arc::clone(shared);
        let thread = std::thread::spawn(move || {
            let begin = Instant::now();
            let mut last = (begin, 0);
            let mut wait = PATIENCE;
            while ended.recv_timeout(wait) == Err(RecvTimeoutError::Timeout) {
                wait = PERIOD;
                let (now, messages) = (Instant::now(), shared.messages());
                let rate = messages.saturating_sub(last.1) as f64 / (now - last.0).as_secs_f64();
                last = (now, messages);
                let seconds = begin.elapsed().as_secs();
                let _ = write!(
                    std::io::stderr(),
                    "\r\x1b[K{what}: {seconds} s, {messages} messages, {:.3} M/s",
                    rate / 1e6
                );
            }
            let _ = write!(std::io::stderr(), "\r\x1b[K");
        });
        Progress { alive: Some(alive), thread: Some(thread) }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.alive = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
