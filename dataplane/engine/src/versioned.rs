//! A version counter over values that one core changes now and then while others read them: readers see the values of one
//! change, never a mixture, and take no lock.

use std::sync::atomic::{AtomicU32, Ordering, fence};

/// Odd while a writer is at work.
#[derive(Debug, Default)]
pub(crate) struct Version(AtomicU32);

/// How often a reader looks again, and a writer tries. A writer holds the version for a few stores, which this outlasts;
/// and a packet that is refused is what the peer would have got a moment earlier or later anyway.
const TRIES: u32 = 64;

impl Version {
    /// What `look` reads, as one consistent set; `None` when writers were at work all the time. The reads are relaxed ones.
    #[inline(always)]
    pub fn read<T>(&self, look: impl Fn() -> T) -> Option<T> {
        match self.try_read(&look) {
            None => self.read_again(look),
            seen => seen,
        }
    }

    /// One attempt. What it gives stays in registers, where the caller needs little of it.
    #[inline(always)]
    fn try_read<T>(&self, look: impl Fn() -> T) -> Option<T> {
        let before = self.0.load(Ordering::Acquire);
        if before & 1 != 0 {
            return None;
        }
        let seen = look();
        fence(Ordering::Acquire);
        (self.0.load(Ordering::Relaxed) == before).then_some(seen)
    }

    #[cold]
    #[inline(never)]
    fn read_again<T>(&self, look: impl Fn() -> T) -> Option<T> {
        (1..TRIES).find_map(|_| {
            std::hint::spin_loop();
            self.try_read(&look)
        })
    }

    /// The version now, unless a writer is at work: what is read before it [no longer stands](Self::is) may be a mixture.
    #[inline(always)]
    pub fn now(&self) -> Option<u32> {
        let now = self.0.load(Ordering::Acquire);
        (now & 1 == 0).then_some(now)
    }

    /// Whether what was read at a version is what would be read now.
    #[inline(always)]
    pub fn is(&self, version: u32) -> bool {
        fence(Ordering::Acquire);
        self.0.load(Ordering::Acquire) == version
    }

    /// Runs `change` as the only writer; `None` when other writers were at work all the time. The stores are relaxed ones.
    pub fn exclusively<R>(&self, change: impl FnOnce() -> R) -> Option<R> {
        let before = (0..TRIES).find_map(|_| {
            let before = self.0.load(Ordering::Relaxed);
            let taken = before & 1 == 0
                && self
                    .0
                    .compare_exchange(before, before.wrapping_add(1), Ordering::Acquire, Ordering::Relaxed)
                    .is_ok();
            if !taken {
                std::hint::spin_loop();
            }
            taken.then_some(before)
        })?;
        fence(Ordering::Release);
        let result = change();
        self.0.store(before.wrapping_add(2), Ordering::Release);
        Some(result)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_writer_and_a_reader_in_between_get_nothing() {
        let version = Version::default();
        let inner = version.exclusively(|| (version.exclusively(|| 1), version.read(|| 2)));
        assert_eq!(inner, Some((None, None)));
        assert_eq!(version.read(|| 3), Some(3));
        assert_eq!(version.exclusively(|| 4), Some(4));
    }

    #[test]
    fn what_was_read_before_a_change_does_not_stand() {
        let version = Version::default();
        let before = version.now().expect("nobody writes");
        assert!(version.is(before));
        version.exclusively(|| assert!(version.now().is_none() && !version.is(before)));
        assert!(!version.is(before));
        assert!(version.is(version.now().expect("nobody writes")));
    }
}
