//! Configuration: one TOML file, or the same values from code.
//!
//! Every key that is accepted does something. A key that is unknown, of a wrong type, out of range or without effect
//! where it stands is refused with file, line, key and remedy. `configs/` holds a working file per kind of port.

mod error;
mod links;
mod load;
mod locate;
mod port;
mod raw;

pub use error::ConfigError;
pub use port::{DeviceKind, MemifRole, PortSettings, VlanSettings};

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

/// Everything an [`Endpoint`](crate::Endpoint) is made from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Config {
    /// Memory and DPDK, `[eal]`.
    pub eal: EalSettings,
    /// The ports, `[[port]]`, in the order of their device numbers.
    pub ports: Vec<PortSettings>,
    /// Who moves the packets, `[workers]`.
    pub workers: WorkerSettings,
    /// Marks of what we send, `[qos]`.
    pub qos: QosSettings,
    /// Congestion control, `[congestion]`.
    pub congestion: CongestionSettings,
    /// Sockets for people and programs, `[control]`.
    pub control: ControlSettings,
}

/// Where packet memory comes from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MemoryKind {
    /// Hugepages when some are free, else ordinary pages.
    #[default]
    Auto,
    /// Hugepages, or an error.
    Hugepages,
    /// Ordinary pages.
    NoHuge,
}

/// `[eal]`: DPDK starts once per process, so the first endpoint of a process decides.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EalSettings {
    /// Where packet memory comes from.
    pub memory: MemoryKind,
    /// Megabytes of ordinary pages; only with [`MemoryKind::NoHuge`].
    pub memory_mb: Option<u32>,
    /// Name of DPDK's runtime directory; by default made from the process id.
    pub file_prefix: Option<String>,
    /// How much DPDK prints.
    pub log: LogLevel,
    /// Further arguments for EAL, as they are.
    pub extra_args: Vec<String>,
}

/// How much DPDK prints to stderr.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LogLevel {
    /// Nothing; errors are still part of error values.
    #[default]
    Quiet,
    /// Errors.
    Error,
    /// Warnings too.
    Warning,
    /// What DPDK prints by default.
    Info,
    /// Everything.
    Debug,
}

/// Who drives the workers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Drive {
    /// Threads of their own, one per worker, pinned.
    #[default]
    Threads,
    /// The program, by [`Endpoint::poll_once`](crate::Endpoint::poll_once).
    Caller,
}

/// How a worker thread waits for work.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PollMode {
    /// Without pause: lowest latency, a whole core.
    Busy,
    /// Without pause while there is work, then slower and slower.
    #[default]
    Adaptive,
}

/// `[workers]`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WorkerSettings {
    /// Who drives them.
    pub drive: Drive,
    /// The CPUs to pin to, one worker each. Empty: one worker, which the system places.
    pub cores: Vec<usize>,
    /// How they wait.
    pub poll: PollMode,
}

/// `[qos]`: marks that new queue pairs and address handles get unless told otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QosSettings {
    /// Differentiated services code point, 0..=63.
    pub dscp: u8,
    /// Mark packets as ECN-capable (ECT(0)), so that switches mark instead of drop.
    pub ecn: bool,
    /// TTL or hop limit, 1..=255.
    pub hop_limit: u8,
}

impl Default for QosSettings {
    fn default() -> Self {
        QosSettings { dscp: 0, ecn: false, hop_limit: 64 }
    }
}

impl QosSettings {
    /// DSCP and ECN as the byte that the IP header carries.
    pub fn traffic_class(self) -> u8 {
        self.dscp << 2 | if self.ecn { 0b10 } else { 0 }
    }
}

/// `[congestion]`. There is none so far, and the file may say so.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CongestionSettings {
    /// Senders go as fast as window and peer allow.
    #[default]
    None,
}

/// `[control]`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ControlSettings {
    /// The admin socket that `rockhopper stats` reads. `None`: there is none.
    pub socket: Option<PathBuf>,
    /// Where `rockhopper serve` listens for peers that exchange their queue pairs over TCP.
    pub listen: Option<SocketAddr>,
}

impl Config {
    /// Reads and checks a file.
    pub fn load(path: &Path) -> Result<Config, ConfigError> {
        let text = std::fs::read_to_string(path).map_err(|error| ConfigError::unreadable(path, &error))?;
        Config::parse(&text, path)
    }

    /// Checks the text of a file; `path` is for messages.
    pub fn parse(text: &str, path: &Path) -> Result<Config, ConfigError> {
        load::parse(text, path)
    }
}
