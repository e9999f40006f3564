//! DPDK's log, kept quiet and at hand.
//!
//! DPDK and its drivers print to stderr when something fails, and what they print is often the only good reason
//! ("tap0: interface is busy"). This module receives that text instead: the last lines go into the error value
//! of the call that failed, and reach stderr only when the configuration asks for a log level.

use std::collections::VecDeque;
use std::ffi::{c_char, c_int, c_void};
use std::io::Write;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Lines remembered. A failing probe prints one to five; more would bury the reason.
const REMEMBERED_LINES: usize = 16;

struct Sink {
    lines: VecDeque<String>,
    /// Text after the last newline.
    open_line: String,
    echo: bool,
}

static SINK: Mutex<Sink> = Mutex::new(Sink { lines: VecDeque::new(), open_line: String::new(), echo: false });

fn sink() -> MutexGuard<'static, Sink> {
    // A panic while holding the lock leaves at worst half a line of text.
    SINK.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Sink {
    fn write(&mut self, bytes: &[u8]) {
        if self.echo {
            // A closed stderr is no reason to fail a driver.
            let _ = std::io::stderr().write_all(bytes);
        }
        self.open_line.push_str(&String::from_utf8_lossy(bytes));
        while let Some(end) = self.open_line.find('\n') {
            let line: String = self.open_line.drain(..=end).collect();
            let line = line.trim();
            if line.is_empty() {
                continue;
            }
            if self.lines.len() == REMEMBERED_LINES {
                self.lines.pop_front();
            }
            self.lines.push_back(line.to_owned());
        }
    }
}

extern "C" fn receive(_cookie: *mut c_void, text: *const c_char, len: usize) -> dpdk_sys::__ssize_t {
    if !text.is_null() {
        // SAFETY: stdio calls this with `len` readable bytes at `text`, valid during the call.
        let bytes = unsafe { std::slice::from_raw_parts(text.cast::<u8>(), len) };
        sink().write(bytes);
    }
    len as dpdk_sys::__ssize_t
}

/// Sends DPDK's log here from now on; `echo` copies it to stderr. Called once, before EAL starts.
///
/// The stream is never closed: a DPDK thread may be printing at any time.
pub(crate) fn redirect(echo: bool) {
    sink().echo = echo;
    let functions =
        dpdk_sys::cookie_io_functions_t { read: None, write: Some(receive), seek: None, close: None };
    // SAFETY: the mode is a C string, the callbacks match the types fopencookie declares, and no cookie is used.
    let stream = unsafe { dpdk_sys::fopencookie(std::ptr::null_mut(), c"w".as_ptr(), functions) };
    if stream.is_null() {
        return; // Out of memory: DPDK keeps printing to stderr, which is the better of two evils.
    }
    const UNBUFFERED: c_int = 2; // _IONBF
    // SAFETY: `stream` is open and nothing was written to it, as setvbuf asks.
    unsafe { dpdk_sys::setvbuf(stream, std::ptr::null_mut(), UNBUFFERED, 0) };
    // SAFETY: `stream` stays open for the rest of the process.
    unsafe { dpdk_sys::rte_openlog_stream(stream) };
}

/// Forgets what was said, so that [`said`] after a failure tells of that failure only.
pub(crate) fn forget() {
    sink().lines.clear();
}

/// What DPDK has said since [`forget`], one line after the other, joined with "; ".
pub(crate) fn said() -> String {
    let sink = sink();
    let lines: Vec<&str> = sink.lines.iter().map(String::as_str).collect();
    lines.join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn remembers_the_last_whole_lines() {
        let mut sink = Sink { lines: VecDeque::new(), open_line: String::new(), echo: false };
        sink.write(b"EAL: half");
        assert!(sink.lines.is_empty());
        sink.write(b" a line\n\nEAL: two\n");
        assert_eq!(sink.lines, ["EAL: half a line", "EAL: two"]);
        for n in 0..REMEMBERED_LINES {
            sink.write(format!("line {n}\n").as_bytes());
        }
        assert_eq!(sink.lines.len(), REMEMBERED_LINES);
        assert_eq!(sink.lines[0], "line 0");
    }
}
