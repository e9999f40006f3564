//! `net_tap` without its signals.
//!
//! The driver has the kernel send the process a signal for every frame that arrives at a tap (`O_ASYNC` with a signal of its own
//! choice), and reads only after its handler has counted one: so an empty poll costs no system call. But each frame then costs its
//! sender the delivery and the receiver the signal's frame, in whichever thread the kernel chooses: more than the frame itself.
//! So taps are told to send none, and [`Tap::pull_trigger`] counts before each receive burst, as a signal would have: an empty poll is one
//! `readv`. A thread that would rather sleep sleeps on the queue's file.
//!
//! DPDK offers no way to do this. What is relied on (the driver is the same in this from 22.11 to 25.11) is looked up each time, and
//! where anything differs the port is left as it is: a tap of this name among the process's own files, asynchronous, whose signal
//! has a plain handler that lies in the driver's library.

use std::ffi::c_int;
use std::fs;
use std::os::fd::{BorrowedFd, RawFd};

use super::raw;

/// The driver that this is for.
const DRIVER: &str = "net_tap";
/// Its library: `librte_net_tap.so.23` and the like.
const LIBRARY: &str = "librte_net_tap";
/// What its files are, after being opened.
const DEVICE: &str = "/dev/net/tun";
/// `F_GETSIG` of `fcntl`, the same everywhere; the crate that has the others lacks it.
const F_GETSIG: c_int = 11;

/// A queue of such a tap.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Tap {
    handler: extern "C" fn(c_int),
    file: Option<RawFd>,
}

/// Makes the driver look at its taps in the next receive burst.
#[derive(Debug, Clone, Copy)]
pub(super) struct Trigger(extern "C" fn(c_int));

impl Tap {
    /// The driver's next burst will look.
    #[inline]
    pub fn pull_trigger(self) {
        // Several threads may: the count is one word, and a count that gets lost costs one look.
        (self.handler)(0);
    }

    /// The file that is readable while frames wait, for as long as the port is open, if it was found.
    pub fn file(&self) -> Option<BorrowedFd<'_>> {
        // SAFETY: the driver opened this file for the queue and closes it with its port, which the queue that has `self` keeps open.
        self.file.map(|fd| unsafe { BorrowedFd::borrow_raw(fd) })
    }
}

impl Trigger {
    /// Silences the queues of a port, by its kernel interface. Call it when the port is started, before anybody receives. `None`
    /// leaves everything as it was.
    pub fn instead_of_signals(driver: &str, if_index: u32) -> Option<Trigger> {
        let taps: Vec<RawFd> = taps(driver, if_index).into_iter().filter(|&fd| is_asynchronous(fd)).collect();
        let handler = signal(*taps.first()?).and_then(handler)?;
        taps.into_iter().for_each(silence);
        Some(Trigger(handler))
    }

    /// For the queue that reads this file.
    pub fn queue(self, file: Option<RawFd>) -> Tap {
        Tap { handler: self.0, file }
    }
}

/// This process's files that are queues of the tap behind a port; none for other drivers.
pub(super) fn taps(driver: &str, if_index: u32) -> Vec<RawFd> {
    let interface = (driver == DRIVER).then(|| raw::interface_name(if_index)).flatten();
    interface.map_or_else(Vec::new, |interface| files(&interface))
}

/// This process's files that are queues of a tap.
fn files(interface: &str) -> Vec<RawFd> {
    let is_tap = |fd: RawFd| {
        let device = fs::read_link(format!("/proc/self/fd/{fd}"));
        let about = fs::read_to_string(format!("/proc/self/fdinfo/{fd}")).unwrap_or_default();
        let name = about.lines().find_map(|line| line.strip_prefix("iff:"));
        device.is_ok_and(|path| path.as_os_str() == DEVICE) && name.map(str::trim) == Some(interface)
    };
    let files = fs::read_dir("/proc/self/fd").into_iter().flatten().flatten();
    let numbers = files.filter_map(|file| file.file_name().to_str()?.parse().ok());
    numbers.filter(|&fd| is_tap(fd)).collect()
}

fn flags(fd: RawFd) -> c_int {
    // SAFETY: asks for flags; any number may be given.
    unsafe { libc::fcntl(fd, libc::F_GETFL) }
}

fn is_asynchronous(fd: RawFd) -> bool {
    let flags = flags(fd);
    flags >= 0 && flags & libc::O_ASYNC != 0
}

/// The signal that a file sends.
fn signal(fd: RawFd) -> Option<c_int> {
    // SAFETY: asks for a number; any file may be given.
    match unsafe { libc::fcntl(fd, F_GETSIG) } {
        ..0 => None,
        0 => Some(libc::SIGIO),
        signal => Some(signal),
    }
}

/// The driver's handler of a signal.
fn handler(signal: c_int) -> Option<extern "C" fn(c_int)> {
    // SAFETY: a C struct of numbers, for which zeros are values, to be filled below.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    // SAFETY: asks for what is set; `action` is ours to be filled.
    let asked = unsafe { libc::sigaction(signal, std::ptr::null(), &mut action) };
    let address = action.sa_sigaction;
    if asked != 0 || action.sa_flags & libc::SA_SIGINFO != 0 || !is_of_the_driver(address) {
        return None;
    }
    // SAFETY: without SA_SIGINFO a handler takes the signal's number and returns nothing. This one is code of the driver's library,
    // which stays loaded; a signal may call it at any moment on any thread, so we may, too.
    Some(unsafe { std::mem::transmute::<usize, extern "C" fn(c_int)>(address) })
}

/// Whether an address is code of the driver's library.
fn is_of_the_driver(address: usize) -> bool {
    let maps = fs::read_to_string("/proc/self/maps").unwrap_or_default();
    maps.lines().any(|line| covers(line, address) && line.contains(LIBRARY))
}

/// Whether a line like `7f00-8f00 r-xp 00000000 fe:00 42 /usr/lib/librte_net_tap.so.23` is executable memory around an address.
fn covers(line: &str, address: usize) -> bool {
    let mut words = line.split_whitespace();
    let range = words.next().and_then(|range| {
        let (from, to) = range.split_once('-')?;
        Some(usize::from_str_radix(from, 16).ok()?..usize::from_str_radix(to, 16).ok()?)
    });
    range.is_some_and(|range| range.contains(&address)) && words.next().is_some_and(|mode| mode.contains('x'))
}

fn silence(fd: RawFd) {
    // SAFETY: sets flags of a file that the driver has opened for this port, which nobody else knows; all but one stay as they are.
    // A refusal leaves the signals, which do no harm.
    unsafe { libc::fcntl(fd, libc::F_SETFL, flags(fd) & !libc::O_ASYNC) };
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsRawFd;

    #[test]
    fn only_code_is_a_handler() {
        let code = "7f00-8f00 r-xp 00000000 fe:00 42   /usr/lib/librte_net_tap.so.23";
        assert!(covers(code, 0x7f00) && covers(code, 0x8eff));
        assert!(!covers(code, 0x7eff) && !covers(code, 0x8f00));
        assert!(!covers("7f00-8f00 rw-p 00000000 fe:00 42", 0x7f00));
        assert!(!covers("", 0) && !covers("7f00", 0x7f00));
        assert!(!is_of_the_driver(0) && !is_of_the_driver(only_code_is_a_handler as fn() as usize));
    }

    #[test]
    fn other_ports_and_files_are_left_alone() {
        assert!(Trigger::instead_of_signals("net_ring", 1).is_none());
        assert!(Trigger::instead_of_signals(DRIVER, 0).is_none());
        assert_eq!(files("no-such-tap"), []);
        let file = fs::File::open("/dev/null").unwrap();
        assert!(!is_asynchronous(file.as_raw_fd()) && !is_asynchronous(-1));
        assert_eq!(signal(-1), None);
        assert!(handler(libc::SIGIO).is_none() && handler(-1).is_none());
    }
}
