//! DPDK, started once per process and shared by its endpoints.
//!
//! It stays up when the last endpoint goes, because DPDK cannot be started again: a program may make endpoints one after
//! the other. [`shutdown`] ends it.

use crate::config::{EalSettings, LogLevel, MemoryKind};
use crate::error::StartError;
use dpdk::eal::config::DEFAULT_NO_HUGE_MB;
use dpdk::eal::{self, Hugepages, Pci, RegisteredThread};
use dpdk::{Eal, EalConfig, EalError, Memory};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The running DPDK and the settings that it was started with.
static RUNNING: Mutex<Option<(Eal, EalSettings)>> = Mutex::new(None);

fn running() -> MutexGuard<'static, Option<(Eal, EalSettings)>> {
    RUNNING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The process's DPDK, started if need be. `pci` are the NICs that may be used.
pub(crate) fn get(settings: &EalSettings, pci: &[String]) -> Result<Eal, StartError> {
    let mut running = running();
    if let Some((eal, first)) = &*running {
        if first != settings && *settings != EalSettings::default() {
            return Err(StartError::Config {
                problem: "DPDK runs in this process already, with other [eal] settings".into(),
                remedy: "give all endpoints of a process the same ones".into(),
            });
        }
        return Ok(eal.clone());
    }
    if settings.memory == MemoryKind::Hugepages && Hugepages::detect().free_bytes() == 0 {
        // Asked before DPDK is, which could not be started again afterwards.
        return Err(EalError::NoHugepages { said: "the kernel has none free".into() }.into());
    }
    let eal = Eal::init(config(settings, pci))?;
    *running = Some((eal.clone(), settings.clone()));
    Ok(eal)
}

/// Shuts DPDK down once the last endpoint is gone: its memory is given back, and its files vanish. DPDK cannot be
/// started again in this process; a program calls this at its end, or never.
pub fn shutdown() {
    *running() = None;
}

/// Gives this thread caches of its own in the packet pools: for a thread that drives an endpoint. `None` when it has them
/// already, or there are no more.
pub(crate) fn register_thread() -> Option<RegisteredThread> {
    let eal = running().as_ref().map(|(eal, _)| eal.clone())?;
    eal.register_thread().ok()
}

fn config(settings: &EalSettings, pci: &[String]) -> EalConfig {
    EalConfig {
        memory: match settings.memory {
            MemoryKind::Auto => Memory::Auto,
            MemoryKind::Hugepages => Memory::Hugepages,
            MemoryKind::NoHuge => Memory::NoHuge { mb: settings.memory_mb.unwrap_or(DEFAULT_NO_HUGE_MB) },
        },
        file_prefix: settings.file_prefix.clone(),
        pci: if pci.is_empty() { Pci::None } else { Pci::Allow(pci.to_vec()) },
        log_level: match settings.log {
            LogLevel::Quiet => eal::LogLevel::Quiet,
            LogLevel::Error => eal::LogLevel::Error,
            LogLevel::Warning => eal::LogLevel::Warning,
            LogLevel::Info => eal::LogLevel::Info,
            LogLevel::Debug => eal::LogLevel::Debug,
        },
        extra_args: settings.extra_args.clone(),
        ..EalConfig::default()
    }
}
