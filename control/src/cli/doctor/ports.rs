//! What each port of a configuration needs: device, driver, MTU, addresses, marks.

use super::Check;
use rockhopper::config::{DeviceKind, MemifRole, PortSettings};
use rockhopper::{Config, Mtu};
use std::net::TcpListener;
use std::os::unix::net::UnixStream;
use std::path::Path;

/// Kernel drivers that DPDK works through or beside.
const USABLE: [&str; 6] = ["vfio-pci", "igb_uio", "uio_pci_generic", "mlx5_core", "mlx4_core", "mana"];

/// net_tap of DPDK 22.11 sends no longer IP packets.
const TAP_MTU: u16 = 1504;

pub fn checks(config: &Config) -> Vec<Check> {
    let mut checks = Vec::new();
    if config.ports.is_empty() {
        checks.push(Check::fail("ports", "there is none", "add a [[port]] section; see configs/"));
    }
    for port in &config.ports {
        let name = format!("port {}", port.name);
        checks.push(device(&name, port));
        checks.push(mtu(&name, port));
        if port.addresses.is_empty() {
            checks.push(Check::warn(
                &name,
                "only its link-local address",
                "add addresses = [\"10.0.0.1/24\"]",
            ));
        }
    }
    checks.push(marks(config));
    checks.extend(sockets(config));
    checks
}

fn device(name: &str, port: &PortSettings) -> Check {
    match &port.device {
        DeviceKind::Ring { .. } => Check::ok(name, "net_ring needs nothing"),
        DeviceKind::Tap { interface } if interface_exists(interface) => Check::fail(
            name,
            format!("an interface {interface} exists already"),
            format!("choose another name, or remove it: ip link delete {interface}"),
        ),
        DeviceKind::Tap { interface } => Check::ok(name, format!("will make the interface {interface}")),
        DeviceKind::AfPacket { interface } | DeviceKind::Pcap { interface } => borrowed(name, interface),
        DeviceKind::Memif { socket, role, .. } => memif(name, socket, *role),
        DeviceKind::Pci { address } => nic(name, address.split(',').next().unwrap_or_default()),
        DeviceKind::Vdev { name: vdev, .. } => Check::ok(name, format!("{vdev}: only its driver knows")),
    }
}

fn interface_exists(interface: &str) -> bool {
    Path::new("/sys/class/net").join(interface).exists()
}

fn interface_fact(interface: &str, fact: &str) -> Option<String> {
    let path = Path::new("/sys/class/net").join(interface).join(fact);
    std::fs::read_to_string(path).ok().map(|text| text.trim().to_owned())
}

fn borrowed(name: &str, interface: &str) -> Check {
    if !interface_exists(interface) {
        return Check::fail(
            name,
            format!("there is no interface {interface}"),
            "see `ip link` for those there are",
        );
    }
    let state = interface_fact(interface, "operstate").unwrap_or_default();
    if state == "down" {
        return Check::fail(name, format!("{interface} is down"), format!("ip link set {interface} up"));
    }
    Check::ok(
        name,
        format!("{interface} is there ({state}); leave it without addresses, or the kernel answers too"),
    )
}

fn memif(name: &str, socket: &Path, role: MemifRole) -> Check {
    let there = UnixStream::connect(socket).is_ok();
    match role {
        MemifRole::Server if there => Check::fail(
            name,
            "another server answers at the socket",
            "choose another socket, or role = \"client\"",
        ),
        MemifRole::Server => match socket.parent().filter(|folder| folder.is_dir()) {
            Some(_) => Check::ok(name, "will listen on the socket"),
            None => Check::fail(name, "the socket's directory does not exist", "make it, or choose another"),
        },
        MemifRole::Client if there => Check::ok(name, "a server answers at the socket"),
        MemifRole::Client => Check::warn(
            name,
            "no server answers at the socket yet",
            "start the other side; the link comes up then",
        ),
    }
}

fn nic(name: &str, address: &str) -> Check {
    let device = Path::new("/sys/bus/pci/devices").join(address);
    if !device.exists() {
        let remedy =
            "dpdk-devbind.py --status lists the NICs; write the address with its domain, as in 0000:3b:00.0";
        return Check::fail(name, format!("there is no PCI device {address}"), remedy);
    }
    let driver = std::fs::read_link(device.join("driver")).ok();
    let driver = driver.as_deref().and_then(Path::file_name).and_then(|name| name.to_str()).unwrap_or("none");
    if USABLE.contains(&driver) {
        return Check::ok(name, format!("{address} with the driver {driver}"));
    }
    Check::fail(
        name,
        format!("{address} has the kernel driver {driver}, which DPDK cannot use"),
        format!("modprobe vfio-pci && dpdk-devbind.py --bind=vfio-pci {address}"),
    )
}

/// The path MTU that will come of it, as far as it can be known before the port is open.
fn mtu(name: &str, port: &PortSettings) -> Check {
    let (real, source) = match &port.device {
        DeviceKind::Tap { .. } => (port.mtu.min(TAP_MTU), "net_tap takes no more"),
        DeviceKind::AfPacket { interface } | DeviceKind::Pcap { interface } => {
            let interface_mtu = interface_fact(interface, "mtu").and_then(|text| text.parse::<u32>().ok());
            let real =
                interface_mtu.map_or(port.mtu, |mtu| port.mtu.min(u16::try_from(mtu).unwrap_or(u16::MAX)));
            (real, "raise the interface's MTU: ip link set IF mtu 4200")
        }
        _ => (port.mtu, "set mtu = 4200"),
    };
    match Mtu::from_ip_mtu(real.into()) {
        Some(path)
            if path == Mtu::Mtu4096
                || path == Mtu::Mtu1024 && matches!(port.device, DeviceKind::Tap { .. }) =>
        {
            Check::ok(name, format!("IP MTU {real} carries a path MTU of {path}"))
        }
        Some(path) => {
            let remedy = format!("4096 is faster where the network carries it; {source}");
            Check::warn(name, format!("IP MTU {real} carries a path MTU of {path}"), remedy)
        }
        None => Check::fail(name, format!("IP MTU {real} carries no RoCE"), source),
    }
}

/// DSCP and ECN are ours to set; whether switches heed them cannot be seen from here.
fn marks(config: &Config) -> Check {
    let qos = config.qos;
    let found = format!("DSCP {}, {}", qos.dscp, if qos.ecn { "ECN-capable" } else { "not ECN-capable" });
    let wire = config.ports.iter().any(|port| matches!(port.device, DeviceKind::Pci { .. }));
    if wire && qos.dscp == 0 {
        let remedy = "on a lossless network set [qos] dscp to the class that its switches protect (often 26)";
        return Check::warn("marks", found, remedy);
    }
    if qos.ecn {
        let remedy =
            "nothing here slows down for marks yet ([congestion] algorithm = \"none\"): the peer must";
        return Check::warn("marks", found, remedy);
    }
    Check::ok("marks", found)
}

fn sockets(config: &Config) -> Vec<Check> {
    let mut checks = Vec::new();
    if let Some(address) = config.control.listen {
        checks.push(match TcpListener::bind(address) {
            Ok(_) => Check::ok("listen", format!("{address} is free")),
            Err(why) => Check::fail("listen", format!("{address}: {why}"), "choose another [control] listen"),
        });
    }
    if let Some(socket) = &config.control.socket {
        let shown = socket.display();
        let folder = socket.parent().filter(|folder| folder.as_os_str().is_empty() || folder.is_dir());
        checks.push(if UnixStream::connect(socket).is_ok() {
            Check::fail(
                "admin socket",
                format!("an endpoint answers at {shown}"),
                "stop it, or choose another",
            )
        } else if folder.is_none() {
            Check::fail(
                "admin socket",
                format!("{shown}: its directory does not exist"),
                "make it, or choose another",
            )
        } else {
            Check::ok("admin socket", shown.to_string())
        });
    }
    checks
}
