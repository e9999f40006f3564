//! The machine: DPDK, memory, cores, clock, privileges.

use super::Check;
use dpdk::eal::Hugepages;
use rockhopper::Config;
use rockhopper::config::{DeviceKind, MemoryKind, PollMode};
use rockhopper::preflight::{self, Problem};

/// Hugepages that an endpoint with one port wants, MB.
const WANTED_MB: u64 = 256;

pub fn checks(config: Option<&Config>) -> Vec<Check> {
    let mut checks = vec![Check::ok("DPDK", dpdk::eal::version()), hugepages(config)];
    checks.extend(cores(config));
    checks.push(clock());
    checks.push(tun(config));
    checks.push(privileges(config));
    checks
}

fn hugepages(config: Option<&Config>) -> Check {
    let pages = Hugepages::detect();
    let (free, total) = (pages.free_bytes() >> 20, pages.total_bytes() >> 20);
    let found = format!("{free} MB free of {total} MB");
    let needs_nic = any(config, is_pci);
    let asked = config.map_or(MemoryKind::Auto, |config| config.eal.memory);
    let mend = "as root: sysctl vm.nr_hugepages=512";
    match asked {
        MemoryKind::NoHuge if needs_nic => Check::warn(
            "hugepages",
            "not used: memory = \"no-huge\"",
            "most NICs need them: set memory = \"hugepages\" in [eal]",
        ),
        MemoryKind::NoHuge => Check::ok("hugepages", "not used, as configured"),
        _ if free >= WANTED_MB => Check::ok("hugepages", found),
        MemoryKind::Hugepages => Check::fail("hugepages", found, mend),
        MemoryKind::Auto => {
            let remedy = format!("{mend}; faster, but virtual ports do without");
            Check::needed(needs_nic && free == 0, "hugepages", Problem { found, remedy })
        }
    }
}

fn cores(config: Option<&Config>) -> Vec<Check> {
    let allowed: Vec<usize> =
        core_affinity::get_core_ids().unwrap_or_default().iter().map(|core| core.id).collect();
    let found = format!("{} for this process: {allowed:?}", allowed.len());
    let mut checks = vec![if allowed.len() < 2 {
        Check::warn("cores", found, "give the process two or more: a worker wants one of its own")
    } else {
        Check::ok("cores", found)
    }];
    let Some(config) = config else { return checks };
    let wanted = &config.workers.cores;
    let missing: Vec<usize> = wanted.iter().copied().filter(|core| !allowed.contains(core)).collect();
    if !missing.is_empty() {
        checks.push(Check::fail(
            "worker cores",
            format!("{missing:?} are not there for this process"),
            format!("name cores of {allowed:?} in [workers] cores"),
        ));
    } else if config.workers.poll == PollMode::Busy && wanted.len() >= allowed.len() {
        checks.push(Check::warn(
            "worker cores",
            "busy workers take every core",
            "leave one for the control thread, or set poll = \"adaptive\"",
        ));
    } else if !wanted.is_empty() {
        checks.push(Check::ok("worker cores", format!("{wanted:?}")));
    }
    checks
}

/// Workers tell the time by the CPU's counter, which has to run evenly.
fn clock() -> Check {
    let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let flags = info.lines().find(|line| line.starts_with("flags")).unwrap_or_default();
    if flags.is_empty() || flags.split(' ').any(|flag| flag == "constant_tsc") {
        Check::ok("clock", "the CPU's counter runs evenly")
    } else {
        Check::warn(
            "clock",
            "the CPU's counter changes speed",
            "use a CPU, or a virtual machine setting, with constant_tsc; timers may be off",
        )
    }
}

fn tun(config: Option<&Config>) -> Check {
    let is_tap = |device: &DeviceKind| matches!(device, DeviceKind::Tap { .. });
    match preflight::tun() {
        None => Check::ok("taps", format!("{} can be opened", preflight::TUN)),
        Some(problem) => Check::needed(any(config, is_tap), "taps", problem),
    }
}

fn privileges(config: Option<&Config>) -> Check {
    match preflight::privileges() {
        None => Check::ok("privileges", "enough for tap, af_packet and pcap ports"),
        Some(problem) => Check::needed(any(config, preflight::needs_privileges), "privileges", problem),
    }
}

/// Whether a configuration has such a device.
fn any(config: Option<&Config>, is: impl Fn(&DeviceKind) -> bool) -> bool {
    config.is_some_and(|config| config.ports.iter().any(|port| is(&port.device)))
}

fn is_pci(device: &DeviceKind) -> bool {
    matches!(device, DeviceKind::Pci { .. })
}
