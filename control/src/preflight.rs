//! What a device needs of the machine, looked at without changing anything: to explain a failure, and for
//! `rockhopper doctor`.

use crate::config::{DeviceKind, MemifRole};
use std::fs::OpenOptions;
use std::io::ErrorKind;
use std::os::unix::net::UnixStream;
use std::path::Path;

/// Something is missing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// What was found.
    pub found: String,
    /// How to mend it.
    pub remedy: String,
}

fn problem(found: impl Into<String>, remedy: impl Into<String>) -> Option<Problem> {
    Some(Problem { found: found.into(), remedy: remedy.into() })
}

/// Where taps come from.
pub const TUN: &str = "/dev/net/tun";

/// Kernel drivers that DPDK works through or beside.
const USABLE: [&str; 6] = ["vfio-pci", "igb_uio", "uio_pci_generic", "mlx5_core", "mlx4_core", "mana"];

/// Bits of a process's capabilities, see capabilities(7).
const CAPABILITIES: [(u32, &str); 2] = [(12, "CAP_NET_ADMIN"), (13, "CAP_NET_RAW")];

/// Everything about a device that can be looked at; the first problem.
pub fn all(device: &DeviceKind) -> Option<Problem> {
    let tun = || if matches!(device, DeviceKind::Tap { .. }) { tun() } else { None };
    let privileges = || if needs_privileges(device) { privileges() } else { None };
    tun().or_else(privileges).or_else(|| itself(device))
}

/// Whether taps can be made.
pub fn tun() -> Option<Problem> {
    let why = OpenOptions::new().read(true).write(true).open(TUN).err()?;
    let remedy = match why.kind() {
        ErrorKind::NotFound => "as root: modprobe tun; in a container: give it the device /dev/net/tun",
        _ => "run as root, or give this user access to it",
    };
    problem(format!("{TUN} cannot be opened: {why}"), remedy)
}

/// Whether a device is one that only the privileged can use.
pub fn needs_privileges(device: &DeviceKind) -> bool {
    matches!(device, DeviceKind::Tap { .. } | DeviceKind::AfPacket { .. } | DeviceKind::Pcap { .. })
}

/// Whether this process has the privileges that ports on kernel interfaces need.
pub fn privileges() -> Option<Problem> {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let effective = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let bits = effective.and_then(|hex| u64::from_str_radix(hex.trim(), 16).ok()).unwrap_or(0);
    let missing: Vec<&str> =
        CAPABILITIES.iter().filter(|(bit, _)| bits & (1 << bit) == 0).map(|(_, name)| *name).collect();
    if missing.is_empty() {
        return None;
    }
    problem(
        format!("permission is missing: this process has no {}", missing.join(" and no ")),
        "run as root, or once: setcap cap_net_admin,cap_net_raw+ep on the program",
    )
}

/// What stands in the way of a device, apart from permissions.
pub fn itself(device: &DeviceKind) -> Option<Problem> {
    match device {
        DeviceKind::Ring { .. } | DeviceKind::Vdev { .. } => None,
        DeviceKind::Tap { interface } if interface_exists(interface) => problem(
            format!("an interface {interface} exists already"),
            format!("choose another name, or remove it: ip link delete {interface}"),
        ),
        DeviceKind::Tap { .. } => None,
        DeviceKind::AfPacket { interface } | DeviceKind::Pcap { interface } => borrowed(interface),
        DeviceKind::Memif { socket, role, .. } => memif(socket, *role),
        DeviceKind::Pci { address } => nic(address.split(',').next().unwrap_or_default()),
    }
}

/// A fact of a kernel interface, by its name in `/sys/class/net`.
pub fn interface_fact(interface: &str, fact: &str) -> Option<String> {
    let path = Path::new("/sys/class/net").join(interface).join(fact);
    std::fs::read_to_string(path).ok().map(|text| text.trim().to_owned())
}

fn interface_exists(interface: &str) -> bool {
    interface_fact(interface, "ifindex").is_some()
}

fn borrowed(interface: &str) -> Option<Problem> {
    if !interface_exists(interface) {
        return problem(
            format!("there is no interface {interface}"),
            format!(
                "choose one that `ip link` lists, or make a pair: ip link add {interface} type veth peer name PEER"
            ),
        );
    }
    if interface_fact(interface, "operstate").as_deref() == Some("down") {
        return problem(format!("{interface} is down"), format!("ip link set {interface} up"));
    }
    None
}

fn memif(socket: &Path, role: MemifRole) -> Option<Problem> {
    let shown = socket.display();
    let answered = UnixStream::connect(socket).is_ok();
    if role == MemifRole::Client {
        // The driver gives up at once when it starts without a server; one that goes away later may come back.
        let missing = || problem(format!("no server answers at {shown}"), "start the other side first");
        return if answered { None } else { missing() };
    }
    if answered {
        return problem(
            format!("another server answers at {shown}"),
            "choose another socket, or role = \"client\"",
        );
    }
    if socket.parent().is_some_and(|folder| folder.is_dir()) {
        return None;
    }
    problem(format!("the directory of {shown} does not exist"), "make it, or choose another socket")
}

fn nic(address: &str) -> Option<Problem> {
    let device = Path::new("/sys/bus/pci/devices").join(address);
    if !device.exists() {
        return problem(
            format!("there is no PCI device {address}"),
            "dpdk-devbind.py --status lists the NICs; write the address with its domain, as in 0000:3b:00.0",
        );
    }
    let driver = nic_driver(address);
    if USABLE.contains(&driver.as_str()) {
        return None;
    }
    problem(
        format!("{address} has the kernel driver {driver}, which DPDK cannot use"),
        format!("modprobe vfio-pci && dpdk-devbind.py --bind=vfio-pci {address}"),
    )
}

/// The kernel driver of a PCI device, or `none`.
pub fn nic_driver(address: &str) -> String {
    let link = Path::new("/sys/bus/pci/devices").join(address).join("driver");
    let target = std::fs::read_link(link).ok();
    let name = target.as_deref().and_then(Path::file_name).and_then(|name| name.to_str());
    name.unwrap_or("none").to_owned()
}
