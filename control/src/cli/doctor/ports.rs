//! What each port of a configuration needs: device, driver, MTU, addresses, marks.

use super::Check;
use rockhopper::config::{DeviceKind, PortSettings};
use rockhopper::{Config, Mtu, preflight};
use std::net::TcpListener;
use std::os::unix::net::UnixStream;
use std::path::Path;

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
    if let Some(problem) = preflight::itself(&port.device) {
        return Check::needed(true, name, problem);
    }
    let found = match &port.device {
        DeviceKind::Ring { .. } => "net_ring needs nothing".into(),
        DeviceKind::Tap { interface } => format!("will make the interface {interface}"),
        DeviceKind::AfPacket { interface } | DeviceKind::Pcap { interface } => {
            format!("{interface} is there; leave it without addresses, or the kernel answers too")
        }
        DeviceKind::Memif { socket, .. } => format!("will meet the other side at {}", socket.display()),
        DeviceKind::Pci { address } => {
            let address = address.split(',').next().unwrap_or_default();
            format!("{address} has the driver {}", preflight::nic_driver(address))
        }
        DeviceKind::Vdev { name, .. } => format!("{name}: only its driver knows what it needs"),
    };
    Check::ok(name, found)
}

/// The path MTU that will come of it, as far as it can be known before the port is open.
fn mtu(name: &str, port: &PortSettings) -> Check {
    let (real, source) = match &port.device {
        DeviceKind::Tap { .. } => (port.mtu.min(TAP_MTU), "net_tap takes no more"),
        DeviceKind::AfPacket { interface } | DeviceKind::Pcap { interface } => {
            let interface_mtu =
                preflight::interface_fact(interface, "mtu").and_then(|text| text.parse::<u32>().ok());
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

/// What a running endpoint has to say of itself.
fn notes(socket: &Path) -> Vec<Check> {
    let Ok(stats) = rockhopper::admin::stats(socket) else { return Vec::new() };
    let told = stats.ports.into_iter().flat_map(|port| {
        let name = format!("port {}", port.name);
        port.notes.into_iter().map(move |note| {
            let (found, remedy) = note.rsplit_once(':').unwrap_or((&note, ""));
            Check::warn(&name, found, remedy.trim())
        })
    });
    told.collect()
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
        let answers = UnixStream::connect(socket).is_ok();
        if answers {
            checks.extend(notes(socket));
        }
        checks.push(if answers {
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
