//! What to start DPDK with, and its translation to EAL's command line.

use crate::eal::hugepages::Hugepages;
use crate::vdev::Vdev;

/// Where packet memory comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Memory {
    /// [`Memory::Hugepages`] if the machine has free ones, else [`Memory::NoHuge`] with [`DEFAULT_NO_HUGE_MB`].
    #[default]
    Auto,
    /// Hugepages, taken as needed and given back at exit; no files are made (`--in-memory`).
    Hugepages,
    /// Ordinary pages (`--no-huge -m`), transparent huge ones for pools if no PCI device is allowed. Works everywhere without privileges; NICs that
    /// need physical addresses cannot be used.
    NoHuge {
        /// Megabytes for all pools together, and as many for rings and queues. Untouched pages cost nothing.
        mb: u32,
    },
}

/// Megabytes reserved by [`Memory::Auto`] on a machine without hugepages.
pub const DEFAULT_NO_HUGE_MB: u32 = 512;

/// Which PCI devices EAL may take.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Pci {
    /// None: the PCI bus is not looked at.
    #[default]
    None,
    /// Only these addresses, like `0000:3b:00.0`, each with optional driver arguments after a comma.
    Allow(Vec<String>),
}

/// How much DPDK prints to stderr. Errors are kept for error values at any level.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LogLevel {
    /// Nothing.
    #[default]
    Quiet,
    /// Errors only.
    Error,
    /// Errors and warnings.
    Warning,
    /// What DPDK prints by default.
    Info,
    /// Everything.
    Debug,
}

impl LogLevel {
    fn argument(self) -> &'static str {
        match self {
            LogLevel::Quiet | LogLevel::Error => "*:error",
            LogLevel::Warning => "*:warning",
            LogLevel::Info => "*:info",
            LogLevel::Debug => "*:debug",
        }
    }
}

/// What to start DPDK with. `EalConfig::default()` runs on any machine.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct EalConfig {
    /// Where packet memory comes from.
    pub memory: Memory,
    /// Name of the runtime directory, to tell DPDK processes apart; default: `rockhopper-` and the process id.
    pub file_prefix: Option<String>,
    /// CPUs for DPDK's own, mostly sleeping, threads; default: all the process may use. Packet threads are not
    /// EAL's business here: they pin themselves and call [`crate::eal::Eal::register_thread`].
    pub service_cpus: Option<Vec<usize>>,
    /// Which PCI devices EAL may take.
    pub pci: Pci,
    /// Virtual devices to make at start; [`crate::eal::Eal::add_vdev`] makes more later.
    pub vdevs: Vec<Vdev>,
    /// How much DPDK prints to stderr.
    pub log_level: LogLevel,
    /// Further EAL arguments, passed as they are, after ours.
    pub extra_args: Vec<String>,
}

impl EalConfig {
    /// The file prefix in use.
    pub(super) fn prefix(&self) -> String {
        self.file_prefix.clone().unwrap_or_else(|| format!("rockhopper-{}", std::process::id()))
    }

    /// `memory` with [`Memory::Auto`] decided.
    pub(super) fn resolved_memory(&self, hugepages: &Hugepages) -> Memory {
        match self.memory {
            Memory::Auto if hugepages.free_bytes() > 0 => Memory::Hugepages,
            Memory::Auto => Memory::NoHuge { mb: DEFAULT_NO_HUGE_MB },
            chosen => chosen,
        }
    }

    /// EAL's command line. `memory` is resolved, `allowed_cpus` is in the kernel's list format ("0-3,8").
    ///
    /// Nothing is shared with other processes (`--no-shconf` or `--in-memory`, no telemetry), which leaves no
    /// files behind and lets any thread register itself.
    pub(super) fn arguments(&self, memory: Memory, allowed_cpus: &str) -> Vec<String> {
        let cpus = match &self.service_cpus {
            Some(cpus) => cpus.iter().map(ToString::to_string).collect::<Vec<_>>().join(","),
            None => allowed_cpus.to_owned(),
        };
        let mut args: Vec<String> = Vec::new();
        let mut add = |words: &[&str]| args.extend(words.iter().map(|word| (*word).to_owned()));
        add(&["rockhopper", "--file-prefix", &self.prefix(), "--no-telemetry"]);
        // One EAL core, floating over the CPUs: our own threads do the work.
        add(&["--lcores", &format!("(0)@({cpus})")]);
        add(&["--log-level", self.log_level.argument()]);
        match memory {
            Memory::NoHuge { mb } => add(&["--no-huge", "--no-shconf", "-m", &mb.to_string()]),
            Memory::Hugepages | Memory::Auto => add(&["--in-memory"]),
        }
        match &self.pci {
            Pci::None => add(&["--no-pci"]),
            Pci::Allow(addresses) => addresses.iter().for_each(|address| add(&["--allow", address])),
        }
        for vdev in &self.vdevs {
            add(&["--vdev", &vdev.argument()]);
        }
        args.extend(self.extra_args.iter().cloned());
        args
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(config: &EalConfig, memory: Memory) -> String {
        config.arguments(memory, "0-1").join(" ")
    }

    #[test]
    fn ordinary_memory_shares_nothing() {
        let config = EalConfig { file_prefix: Some("x".into()), ..EalConfig::default() };
        assert_eq!(
            line(&config, Memory::NoHuge { mb: 64 }),
            "rockhopper --file-prefix x --no-telemetry --lcores (0)@(0-1) --log-level *:error \
             --no-huge --no-shconf -m 64 --no-pci"
        );
    }

    #[test]
    fn hugepages_pci_and_cpus_are_passed_on() {
        let config = EalConfig {
            file_prefix: Some("x".into()),
            service_cpus: Some(vec![2, 5]),
            pci: Pci::Allow(vec!["0000:3b:00.0".into()]),
            vdevs: vec![Vdev::null("0").unwrap()],
            log_level: LogLevel::Debug,
            extra_args: vec!["--iova-mode=va".into()],
            ..EalConfig::default()
        };
        assert_eq!(
            line(&config, Memory::Hugepages),
            "rockhopper --file-prefix x --no-telemetry --lcores (0)@(2,5) --log-level *:debug --in-memory \
             --allow 0000:3b:00.0 --vdev net_null_0 --iova-mode=va"
        );
    }

    #[test]
    fn auto_takes_hugepages_only_when_some_are_free() {
        let config = EalConfig::default();
        assert_eq!(config.resolved_memory(&Hugepages::default()), Memory::NoHuge { mb: DEFAULT_NO_HUGE_MB });
        let some = Hugepages::of(&[(2 << 20, 8, 8)]);
        assert_eq!(config.resolved_memory(&some), Memory::Hugepages);
        let used_up = Hugepages::of(&[(2 << 20, 8, 0)]);
        assert_eq!(config.resolved_memory(&used_up), Memory::NoHuge { mb: DEFAULT_NO_HUGE_MB });
    }
}
