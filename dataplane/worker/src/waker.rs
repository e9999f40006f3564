//! Sleeping without missing anything: an event fd, and a flag that spares the wakers the system call.

use arrayvec::ArrayVec;
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::eventfd::{EfdFlags, EventFd};
use nix::sys::time::TimeSpec;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicBool, Ordering, fence};
use std::time::Duration;

/// Files that a thread sleeps on at most: the event fd, and what [`Waker::sleep_beside`] names.
const FILES: usize = 16;

/// What one thread sleeps on and others wake it by.
#[derive(Debug)]
pub struct Waker {
    event: EventFd,
    asleep: AtomicBool,
}

impl Waker {
    /// A waker nobody sleeps on. Fails when the process has no file descriptor left.
    pub fn new() -> Result<Waker, Errno> {
        let event = EventFd::from_flags(EfdFlags::EFD_NONBLOCK | EfdFlags::EFD_CLOEXEC)?;
        Ok(Waker { event, asleep: AtomicBool::new(false) })
    }

    /// Call after putting something where the sleeper looks. Costs a fence, and a system call only if it sleeps.
    #[inline]
    pub fn wake(&self) {
        // Pairs with the fence in `sleep`: either this sees it asleep, or it sees what was put there.
        fence(Ordering::SeqCst);
        if self.asleep.load(Ordering::Relaxed) {
            self.wake_sleeper();
        }
    }

    #[cold]
    fn wake_sleeper(&self) {
        if self.asleep.swap(false, Ordering::AcqRel) {
            // Fails only when it was woken 2^64 times already.
            let _ = self.event.write(1);
        }
    }

    /// Sleeps for at most `limit`, until woken, unless `idle` says that there is something to do. `idle` is asked after
    /// wakers have been told to wake.
    pub fn sleep(&self, limit: Duration, idle: impl FnOnce() -> bool) {
        self.sleep_beside(std::iter::empty(), limit, idle);
    }

    /// [`sleep`](Self::sleep), until one of these files is readable. Of more than a few the last are not looked at.
    pub fn sleep_beside<'a>(
        &'a self,
        files: impl Iterator<Item = BorrowedFd<'a>>,
        limit: Duration,
        idle: impl FnOnce() -> bool,
    ) {
        self.asleep.store(true, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        if idle() {
            let all = std::iter::once(self.event.as_fd()).chain(files).take(FILES);
            let mut fds: ArrayVec<_, FILES> = all.map(|fd| PollFd::new(fd, PollFlags::POLLIN)).collect();
            // A signal ends the sleep early, which does no harm.
            let _ = ppoll(&mut fds, Some(TimeSpec::from_duration(limit)), None);
        }
        self.asleep.store(false, Ordering::Relaxed);
        let _ = self.event.read();
    }

    /// The event fd, to sleep on together with others: readable once woken. Use [`prepare`](Self::prepare) around it.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.event.as_fd()
    }

    /// Tells wakers to write the event fd from now on. Look once more for work after this, then sleep on
    /// [`fd`](Self::fd), then call [`awake`](Self::awake).
    pub fn prepare(&self) {
        self.asleep.store(true, Ordering::Relaxed);
        fence(Ordering::SeqCst);
    }

    /// Ends what [`prepare`](Self::prepare) began.
    pub fn awake(&self) {
        self.asleep.store(false, Ordering::Relaxed);
        let _ = self.event.read();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::AtomicU64;
    use std::time::Instant;

    #[test]
    fn work_put_before_the_sleep_is_seen() {
        let waker = Waker::new().unwrap();
        let before = Instant::now();
        waker.sleep(Duration::from_secs(5), || false);
        assert!(before.elapsed() < Duration::from_secs(1));
    }

    #[test]
    fn a_file_ends_the_sleep_when_it_is_readable() {
        let (waker, other) = (Waker::new().unwrap(), EventFd::new().unwrap());
        let takes = |limit| {
            let before = Instant::now();
            waker.sleep_beside(std::iter::once(other.as_fd()), limit, || true);
            before.elapsed()
        };
        assert!(takes(Duration::from_millis(20)) >= Duration::from_millis(20));
        other.write(1).unwrap();
        assert!(takes(Duration::from_secs(5)) < Duration::from_secs(1));
    }

    #[test]
    fn no_wake_up_is_lost() {
        let waker = Arc::new(Waker::new().unwrap());
        let work = Arc::new(AtomicU64::new(0));
        let poster = {
            let (waker, work) = (Arc::clone(&waker), Arc::clone(&work));
            std::thread::spawn(move || {
                for n in 1..=20_000 {
                    work.store(n, Ordering::Release);
                    waker.wake();
                    if n % 7 == 0 {
                        std::thread::yield_now();
                    }
                }
            })
        };
        let mut seen = 0;
        while seen < 20_000 {
            let before = Instant::now();
            waker.sleep(Duration::from_secs(5), || work.load(Ordering::Acquire) == seen);
            assert!(before.elapsed() < Duration::from_secs(4), "slept through work at {seen}");
            seen = work.load(Ordering::Acquire);
        }
        poster.join().unwrap();
    }
}
