//! What it was measured on and with.

use super::child::Line;
use super::hosts::output;
use serde_json::{Value, json};
use std::fs::read_to_string;

/// The machine, by what is asked of it.
pub fn machine() -> Value {
    let cpu = read_to_string("/proc/cpuinfo").unwrap_or_default();
    let field = |name: &str| {
        let line = cpu.lines().find(|line| line.split(':').next().is_some_and(|key| key.trim() == name));
        line.and_then(|line| line.split_once(':')).map(|(_, value)| value.trim().to_owned())
    };
    let flags = field("flags").unwrap_or_default();
    let has = |flag: &str| flags.split(' ').any(|one| one == flag);
    let wide: Vec<&str> = ["avx2", "avx512f", "pclmulqdq", "vpclmulqdq", "hypervisor"]
        .into_iter()
        .filter(|flag| has(flag))
        .collect();
    let cores: Vec<usize> =
        core_affinity::get_core_ids().unwrap_or_default().iter().map(|core| core.id).collect();
    json!({
        "cpu": field("model name"),
        "cpus": cores.len(),
        "cpu_list": cores,
        "mhz_at_start": field("cpu MHz"),
        "features": wide,
        "virtual": has("hypervisor"),
        "caches": caches(),
        "memory": memory("MemTotal"),
        "hugepages": format!(
            "{} of {}, {} free",
            memory("HugePages_Total").unwrap_or_default(),
            memory("Hugepagesize").unwrap_or_default(),
            memory("HugePages_Free").unwrap_or_default()
        ),
        "kernel": read_to_string("/proc/sys/kernel/osrelease").ok().map(|text| text.trim().to_owned()),
        "system": system(),
        "load_at_start": load(),
    })
}

/// The load averages of one, five and fifteen minutes.
pub fn load() -> Option<String> {
    let text = read_to_string("/proc/loadavg").ok()?;
    Some(text.split(' ').take(3).collect::<Vec<_>>().join(" "))
}

/// The programs, by name. Foreign ones as they tell it themselves; those that are not here are left out.
pub fn versions() -> Value {
    let mut versions = json!({
        "rockhopper-perf": format!("{} ({} build)", env!("CARGO_PKG_VERSION"), env!("ROCKHOPPER_PROFILE")),
        "rustc": env!("ROCKHOPPER_RUSTC"),
        "dpdk": rockhopper::perf::dpdk_version(),
    });
    let asked = [
        ("source", "git describe --always --dirty"),
        ("iperf3", "iperf3 --version"),
        ("ucx", "ucx_info -v"),
        ("libfabric", "fi_info --version"),
        ("perf", "perf --version"),
        ("iproute2", "ip -V"),
        ("kernel of the guests", "scripts/interop/guest.sh versions"),
    ];
    for (name, line) in asked {
        let said = output(&Line::new(line)).unwrap_or_default();
        if let (Some(first), Some(versions)) = (said.lines().next(), versions.as_object_mut()) {
            versions.insert(name.into(), first.trim().into());
        }
    }
    versions
}

/// `L1 Data 48K` and so on, of the first core.
fn caches() -> Vec<String> {
    (0..8)
        .map_while(|index| {
            let read = |name: &str| {
                read_to_string(format!("/sys/devices/system/cpu/cpu0/cache/index{index}/{name}")).ok()
            };
            let (level, kind, size) = (read("level")?, read("type")?, read("size")?);
            Some(format!("L{} {} {}", level.trim(), kind.trim(), size.trim()))
        })
        .collect()
}

fn memory(name: &str) -> Option<String> {
    let text = read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':').map(str::trim))?;
    Some(line.to_owned())
}

fn system() -> Option<String> {
    let text = read_to_string("/etc/os-release").ok()?;
    let name = text.lines().find_map(|line| line.strip_prefix("PRETTY_NAME="))?;
    Some(name.trim_matches('"').to_owned())
}
