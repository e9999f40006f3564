//! Why DPDK did not start, or a device did not come up, with what to do about it.

use crate::errno::Errno;
use crate::log;

/// Why an EAL operation failed. `Display` is a sentence that says what to do.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EalError {
    /// [`crate::Eal::init`] was called before in this process.
    #[error("DPDK starts once per process and was started before; share the first Eal instead")]
    AlreadyStarted,
    /// An argument contains a NUL byte.
    #[error("the EAL argument {0:?} contains a NUL byte; remove it")]
    NulInArgument(String),
    /// EAL refused its arguments.
    #[error(
        "DPDK refuses its arguments ({said}); check the [eal] settings, above all extra arguments, and device names"
    )]
    BadArguments {
        /// What DPDK printed.
        said: String,
    },
    /// Hugepages were asked for and there are none free.
    #[error(
        "there are no free hugepages ({said}); reserve some (as root: sysctl vm.nr_hugepages=512) or run without (memory = no-huge)"
    )]
    NoHugepages {
        /// What DPDK printed.
        said: String,
    },
    /// The process may not do what was asked.
    #[error(
        "permission denied ({said}); run as root or give the program CAP_NET_ADMIN, CAP_NET_RAW and CAP_IPC_LOCK"
    )]
    Permission {
        /// What DPDK printed.
        said: String,
    },
    /// The memory asked for could not be reserved.
    #[error("not enough memory ({said}); ask for fewer megabytes or free some")]
    OutOfMemory {
        /// What DPDK printed.
        said: String,
    },
    /// EAL failed otherwise.
    #[error("DPDK did not start: {errno} ({said})")]
    Failed {
        /// The reason as a number.
        errno: Errno,
        /// What DPDK printed.
        said: String,
    },
    /// The operating system refused a thread.
    #[error("no thread to start DPDK in: {0}")]
    Thread(String),
    /// A virtual device did not come up.
    #[error("the device {device} does not come up{}{}; {}", device_reason(*errno), in_parentheses(said), device_hint(*errno))]
    Device {
        /// The device's name and arguments.
        device: String,
        /// The reason as a number, if the driver gives one.
        errno: Option<Errno>,
        /// What DPDK and the driver printed.
        said: String,
    },
    /// The thread is registered already.
    #[error("this thread is registered with DPDK already; keep the first registration")]
    RegisteredTwice,
    /// No more threads can be registered.
    #[error(
        "DPDK cannot register this thread: {errno}; at most {} can be at a time",
        dpdk_sys::RTE_MAX_LCORE
    )]
    ThreadRegistration {
        /// The reason as a number.
        errno: Errno,
    },
}

fn device_reason(errno: Option<Errno>) -> String {
    errno.map_or_else(String::new, |errno| format!(": {errno}"))
}

/// What was printed, if anything, as part of a sentence.
pub(crate) fn in_parentheses(said: &str) -> String {
    if said.is_empty() { String::new() } else { format!(" ({said})") }
}

fn device_hint(errno: Option<Errno>) -> &'static str {
    match errno {
        Some(Errno::EACCES) => "run as root or give the program CAP_NET_ADMIN and CAP_NET_RAW",
        Some(Errno::EEXIST) => "a device of that name exists already; choose another name",
        Some(Errno::EINVAL) => "check its arguments",
        Some(Errno::ENOMEM) => "give DPDK more memory",
        _ => {
            "check that its driver is installed, that the interface, socket or file in its arguments exists, and \
             that you may use it (root, or CAP_NET_ADMIN and CAP_NET_RAW)"
        }
    }
}

impl EalError {
    /// A device that failed just now. Drivers without a reason return -1, which would read as EPERM.
    pub(crate) fn device(device: String, errno: Errno) -> EalError {
        let errno = (errno != Errno::EPERM).then_some(errno);
        EalError::Device { device, errno, said: log::said() }
    }

    /// Sorts a failed `rte_eal_init` by its number; `hugepages` says whether hugepages were asked for and none
    /// are free, which DPDK reports under several numbers.
    pub(super) fn from_init(errno: Errno, said: String, no_hugepages: bool) -> EalError {
        let said = if said.is_empty() { errno.to_string() } else { said };
        match errno {
            _ if no_hugepages => EalError::NoHugepages { said },
            Errno::EINVAL => EalError::BadArguments { said },
            Errno::EPERM | Errno::EACCES => EalError::Permission { said },
            Errno::ENOMEM => EalError::OutOfMemory { said },
            errno => EalError::Failed { errno, said },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_reason_says_what_to_do() {
        let said = || "EAL: so".to_owned();
        let text = |errno, none_free| EalError::from_init(errno, said(), none_free).to_string();
        assert!(text(Errno::EACCES, true).contains("vm.nr_hugepages"));
        assert!(text(Errno::EACCES, false).contains("root"));
        assert!(text(Errno::EINVAL, false).contains("arguments"));
        assert!(text(Errno::ENOMEM, false).contains("memory"));
        assert!(text(Errno::EBUSY, false).contains("EAL: so"));
    }
}
