//! Error numbers of DPDK's C functions as a type.

use std::ffi::{CStr, c_int};
use std::fmt;

/// A positive `errno`, as DPDK reports them either negated or in its `rte_errno`.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Errno(i32);

impl Errno {
    /// Operation not permitted.
    pub const EPERM: Errno = Errno(1);
    /// No such device or file.
    pub const ENOENT: Errno = Errno(2);
    /// Out of memory.
    pub const ENOMEM: Errno = Errno(12);
    /// Permission denied.
    pub const EACCES: Errno = Errno(13);
    /// Device or resource busy.
    pub const EBUSY: Errno = Errno(16);
    /// Already exists.
    pub const EEXIST: Errno = Errno(17);
    /// No such device.
    pub const ENODEV: Errno = Errno(19);
    /// Invalid argument.
    pub const EINVAL: Errno = Errno(22);
    /// Operation not supported by this driver.
    pub const ENOTSUP: Errno = Errno(95);

    /// The number, positive.
    pub fn number(self) -> i32 {
        self.0
    }

    /// The calling thread's `rte_errno`: the reason of the DPDK call that has just failed.
    pub(crate) fn last() -> Errno {
        // SAFETY: reads a thread-local variable of librte_eal; no precondition.
        Errno(unsafe { dpdk_sys::shim_errno() })
    }

    /// Turns a C return value into a result: negative is a negated errno.
    ///
    /// −1 is `-EPERM` too. DPDK's port functions return negated numbers and set no `rte_errno`, so only a call
    /// that documents `rte_errno` may use [`Errno::last`] instead of this.
    pub(crate) fn check(rc: c_int) -> Result<c_int, Errno> {
        if rc < 0 { Err(Errno(rc.saturating_neg())) } else { Ok(rc) }
    }
}

impl fmt::Display for Errno {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // SAFETY: rte_strerror accepts any number and returns a NUL-terminated string.
        let text = unsafe { dpdk_sys::rte_strerror(self.0) };
        // SAFETY: the string is static or in a buffer of this thread that lives until its next rte_strerror.
        let text = unsafe { CStr::from_ptr(text) };
        write!(f, "{} (errno {})", text.to_string_lossy(), self.0)
    }
}

impl fmt::Debug for Errno {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn negative_return_values_become_the_errno_and_others_pass() {
        assert_eq!(Errno::check(-22), Err(Errno::EINVAL));
        assert_eq!(Errno::check(0), Ok(0));
        assert_eq!(Errno::check(3), Ok(3));
        assert!(Errno::EINVAL.to_string().contains("Invalid argument"));
    }
}
