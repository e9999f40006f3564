//! The environment abstraction layer: DPDK started once per process, and shut down when its last user goes.
//!
//! `rte_eal_init` pins its caller and makes it "the main core". We run it on a thread that ends right away, so
//! the caller's affinity is untouched and no thread has a pool cache that it did not ask for by
//! [`Eal::register_thread`]. That second point is what makes shutting down sound: see `Inner::drop`.

pub mod config;
mod error;
pub mod hugepages;

pub use config::{EalConfig, LogLevel, Memory, Pci};
pub use error::EalError;
pub(crate) use error::in_parentheses;
pub use hugepages::Hugepages;

use std::cell::Cell;
use std::collections::{HashMap, HashSet};
use std::ffi::{CString, c_char, c_int};
use std::marker::PhantomData;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::errno::Errno;
use crate::lend;
use crate::log;
use crate::mempool::PoolMemory;
use crate::port::{PortId, raw};
use crate::ring::Rings;
use crate::vdev::Vdev;

/// A started DPDK. Clones share it; DPDK is shut down when the last clone, pool, port and thread registration
/// is gone, and cannot be started again in this process.
#[derive(Debug, Clone)]
pub struct Eal(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    ports: Mutex<Ports>,
    pool_memory: PoolMemory,
    memory: Memory,
    runtime_directory: PathBuf,
}

/// What is known of the ports that exist.
#[derive(Debug, Default)]
pub(crate) struct Ports {
    /// Virtual devices that no open port has taken over.
    pub unopened: HashMap<PortId, Device>,
    /// Ports that are open.
    pub open: HashSet<PortId>,
}

/// A virtual device to be removed when its port is closed.
#[derive(Debug)]
pub(crate) struct Device {
    /// Its name on the vdev bus.
    pub name: String,
    /// The longest frame that passes, where the driver has a limit that it does not tell.
    pub longest_frame: Option<u16>,
    /// The rings behind a port made by [`crate::ring::ring_pair`], shared with its twin.
    pub rings: Option<Arc<Rings>>,
}

/// What drivers (mlx5, mlx4) set to 1 in the process's environment while DPDK loads them, wherever they are installed.
const SET_BY_DRIVERS: [&str; 3] =
    ["RDMAV_HUGEPAGES_SAFE", "MLX5_DEVICE_FATAL_CLEANUP", "MLX4_DEVICE_FATAL_CLEANUP"];

static STARTED: AtomicBool = AtomicBool::new(false);

thread_local! {
    /// Whether this thread has a [`RegisteredThread`].
    static REGISTERED: Cell<bool> = const { Cell::new(false) };
}

impl Eal {
    /// Starts DPDK. The calling thread's CPU affinity stays as it is.
    ///
    /// Fails with [`EalError::AlreadyStarted`] on any call after the first one that reached DPDK, even if that
    /// one failed: DPDK does not promise that a second try works.
    pub fn init(config: EalConfig) -> Result<Eal, EalError> {
        let hugepages = Hugepages::detect();
        let memory = config.resolved_memory(&hugepages);
        let arguments = config
            .arguments(memory, &allowed_cpus())
            .into_iter()
            .map(|text| CString::new(text.clone()).map_err(|_| EalError::NulInArgument(text)))
            .collect::<Result<Vec<CString>, EalError>>()?;
        if STARTED.swap(true, Ordering::SeqCst) {
            return Err(EalError::AlreadyStarted);
        }
        log::redirect(config.log_level != LogLevel::Quiet);
        set_for_drivers();
        let started = std::thread::Builder::new()
            .name("eal-init".into())
            .spawn(move || start(&arguments))
            .map_err(|error| EalError::Thread(error.to_string()))?
            .join()
            .unwrap_or(Err(Errno::EINVAL));
        let runtime_directory = runtime_directory(&config.prefix());
        if let Err(errno) = started {
            remove_runtime_directory(&runtime_directory);
            let no_hugepages = memory == Memory::Hugepages && hugepages.free_bytes() == 0;
            return Err(EalError::from_init(errno, log::said(), no_hugepages));
        }
        lend::ask_for_flag();
        let eal = Eal(Arc::new(Inner {
            ports: Mutex::default(),
            pool_memory: PoolMemory::new(own_pool_bytes(memory, &config.pci)),
            memory,
            runtime_directory,
        }));
        for vdev in &config.vdevs {
            adopt(&mut eal.ports(), vdev)?;
        }
        Ok(eal)
    }

    /// Makes a virtual device and returns its port, not yet opened.
    ///
    /// Open it with [`crate::Port::open`]; closing the port removes the device. A device that is never opened is
    /// removed when DPDK is shut down.
    pub fn add_vdev(&self, vdev: &Vdev) -> Result<PortId, EalError> {
        // Held throughout: DPDK does not promise that devices can be plugged from several threads at once.
        let mut ports = self.ports();
        log::forget();
        // DPDK calls it a success to add what is there already, which would give a port two owners.
        if raw::by_name(vdev.name()).is_ok() {
            return Err(device_error(vdev, Errno::EEXIST));
        }
        let name = CString::new(vdev.name()).map_err(|_| EalError::NulInArgument(vdev.name().to_owned()))?;
        let args = CString::new(vdev.args()).map_err(|_| EalError::NulInArgument(vdev.args().to_owned()))?;
        // SAFETY: the three arguments are NUL-terminated strings that outlive the call, and EAL is started.
        let rc = unsafe { dpdk_sys::rte_eal_hotplug_add(c"vdev".as_ptr(), name.as_ptr(), args.as_ptr()) };
        Errno::check(rc).map_err(|errno| device_error(vdev, errno))?;
        adopt(&mut ports, vdev)
    }

    /// Removes a virtual device whose port is not open. False if there is no such device.
    pub fn remove_vdev(&self, port: PortId) -> bool {
        let mut ports = self.ports();
        ports.unopened.remove(&port).map(|device| close_device(port, device)).is_some()
    }

    /// Gives the calling thread the per-thread caches of all pools, until the result is dropped.
    ///
    /// Pin the thread first: DPDK notes the NUMA socket of its CPUs.
    pub fn register_thread(&self) -> Result<RegisteredThread, EalError> {
        if REGISTERED.get() {
            return Err(EalError::RegisteredTwice);
        }
        // SAFETY: EAL is started, and this thread is not registered (DPDK would give it a second number).
        let rc = unsafe { dpdk_sys::rte_thread_register() };
        if rc < 0 {
            return Err(EalError::ThreadRegistration { errno: Errno::last() });
        }
        REGISTERED.set(true);
        Ok(RegisteredThread { _eal: self.clone(), not_send: PhantomData })
    }

    /// Where packet memory comes from; never [`Memory::Auto`].
    pub fn memory(&self) -> Memory {
        self.0.memory
    }

    /// The last lines DPDK and its drivers have logged as errors.
    pub fn recent_log(&self) -> String {
        log::said()
    }

    pub(crate) fn pool_memory(&self) -> &PoolMemory {
        &self.0.pool_memory
    }

    /// What is known of the ports. The lock also serialises plugging, opening and closing.
    pub(crate) fn ports(&self) -> MutexGuard<'_, Ports> {
        self.0.ports.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Notes a device that DPDK has just probed, so that it is removed with its port.
fn adopt(ports: &mut Ports, vdev: &Vdev) -> Result<PortId, EalError> {
    let port = raw::by_name(vdev.name()).map_err(|errno| device_error(vdev, errno))?;
    ports.unopened.insert(
        port,
        Device { name: vdev.name().to_owned(), longest_frame: vdev.longest_frame(), rings: None },
    );
    Ok(port)
}

/// The version of the DPDK in use, like "DPDK 22.11.11".
pub fn version() -> String {
    // SAFETY: returns a NUL-terminated static string at any time.
    let text = unsafe { std::ffi::CStr::from_ptr(dpdk_sys::rte_version()) };
    text.to_string_lossy().into_owned()
}

/// Proof that the thread it was made on is known to DPDK; dropping it ends that. It cannot leave its thread.
#[derive(Debug)]
pub struct RegisteredThread {
    _eal: Eal,
    not_send: PhantomData<*const ()>,
}

impl Drop for RegisteredThread {
    fn drop(&mut self) {
        // SAFETY: this thread registered itself when `self` was made, and `self` cannot have moved to another.
        unsafe { dpdk_sys::rte_thread_unregister() };
        REGISTERED.set(false);
    }
}

impl Drop for Inner {
    /// Shuts DPDK down, unless a packet buffer is still out.
    ///
    /// No pool, port, queue or registered thread exists any more, for each holds an `Eal`. What can be left are
    /// mbufs. If one is out, the memory under it must stay: we leave everything to the end of the process.
    /// If none is out, no thread can be inside an mbuf's drop either: a thread without registration returns
    /// it to the pool's ring, and the ring counts a buffer as returned with its last store.
    fn drop(&mut self) {
        let ports = std::mem::take(self.ports.get_mut().unwrap_or_else(PoisonError::into_inner));
        for (port, device) in ports.unopened {
            close_device(port, device);
        }
        if self.pool_memory.all_home() {
            // SAFETY: by the argument above nothing that lives uses DPDK or its memory.
            unsafe { dpdk_sys::rte_eal_cleanup() };
        }
        remove_runtime_directory(&self.runtime_directory);
    }
}

/// Closes a port's device and removes it from the vdev bus. The port must be stopped.
pub(crate) fn close_device(port: PortId, device: Device) {
    // Errors leave a device behind that the end of the process removes; there is nobody to tell.
    let _ = raw::close(port);
    if let Ok(name) = CString::new(device.name.as_str()) {
        // SAFETY: both arguments are NUL-terminated strings that outlive the call.
        unsafe { dpdk_sys::rte_eal_hotplug_remove(c"vdev".as_ptr(), name.as_ptr()) };
    }
    drop(device.rings); // After the ports: the last of a pair frees what lies in the rings.
}

/// Sets what drivers are about to set. A new variable moves the list of all, and drivers do that without regard to other threads: one
/// that starts a program at that moment hands freed memory to the kernel (`EFAULT`). Here the standard library keeps its readers away,
/// and a driver that finds a variable replaces its value, which moves nothing.
fn set_for_drivers() {
    for name in SET_BY_DRIVERS.into_iter().filter(|name| std::env::var_os(name).is_none()) {
        // SAFETY: whoever reads the environment by the standard library waits for its lock. Readers in C have none to wait for, with the
        // drivers that do the same right after as little as here.
        unsafe { std::env::set_var(name, "1") };
    }
}

fn start(arguments: &[CString]) -> Result<(), Errno> {
    let mut pointers: Vec<*mut c_char> = arguments.iter().map(|text| text.as_ptr().cast_mut()).collect();
    pointers.push(std::ptr::null_mut());
    // SAFETY: `pointers` is an argv of C strings that outlive the call. EAL permutes the array, which is ours,
    // and copies what it keeps; it does not write to the strings.
    let rc = unsafe { dpdk_sys::rte_eal_init(arguments.len() as c_int, pointers.as_mut_ptr()) };
    if rc < 0 { Err(Errno::last()) } else { Ok(()) }
}

fn device_error(vdev: &Vdev, errno: Errno) -> EalError {
    EalError::device(vdev.argument(), errno)
}

/// Bytes pools may take of memory that no device can read, or `None` if a device may have to.
fn own_pool_bytes(memory: Memory, pci: &Pci) -> Option<u64> {
    match (memory, pci) {
        (Memory::NoHuge { mb }, Pci::None) => Some(u64::from(mb) << 20),
        _ => None,
    }
}

/// The CPUs this thread may run on, in the kernel's list format.
fn allowed_cpus() -> String {
    std::fs::read_to_string("/proc/thread-self/status")
        .ok()
        .and_then(|status| {
            status
                .lines()
                .find_map(|line| line.strip_prefix("Cpus_allowed_list:"))
                .map(|s| s.trim().to_owned())
        })
        .unwrap_or_else(|| "0".to_owned())
}

/// The directory EAL makes for `prefix` by its own rule: `/var/run` for root, else the user's runtime
/// directory or `/tmp`.
fn runtime_directory(prefix: &str) -> PathBuf {
    use std::os::unix::fs::MetadataExt;
    let root = std::fs::metadata("/proc/self").is_ok_and(|process| process.uid() == 0);
    let base = match std::env::var_os("XDG_RUNTIME_DIR") {
        _ if root => PathBuf::from("/var/run"),
        Some(directory) => PathBuf::from(directory),
        None => PathBuf::from("/tmp"),
    };
    base.join("dpdk").join(prefix)
}

/// EAL leaves its directory behind. It is empty, since we share nothing; if not, it is somebody else's.
fn remove_runtime_directory(directory: &std::path::Path) {
    let _ = std::fs::remove_dir(directory);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drivers_add_nothing_to_the_environment() {
        set_for_drivers();
        let variables = || std::env::vars_os().collect::<HashMap<_, _>>();
        let before = variables();
        let config = EalConfig { memory: Memory::NoHuge { mb: 64 }, ..EalConfig::default() };
        let _eal = Eal::init(config).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(variables(), before);
    }
}
