//! Wires between programs: network namespaces, veth pairs, bridges. Nothing outside of namespaces made here is touched, and all of
//! it goes when it is dropped.

mod guests;

pub use guests::Guests;

use super::case::Trouble;
use super::child::{Line, is_installed, missing};
use std::process::Command;
use std::time::{Duration, Instant};

/// As long as the longest packets, with room: path MTU 4096.
pub const JUMBO: u32 = 9000;
/// How long an interface may take to appear.
const APPEAR: Duration = Duration::from_secs(20);

/// A network namespace.
#[derive(Debug)]
pub struct Namespace {
    name: String,
}

impl Namespace {
    /// A new one, with a loopback interface and a kernel that says nothing by itself. Needs root and `ip`.
    pub fn new(suffix: &str) -> Result<Namespace, Trouble> {
        if !is_installed("ip") {
            return Err(missing("ip"));
        }
        if !nix::unistd::geteuid().is_root() {
            return Err(Trouble::NotRun("network namespaces need root: run the suite as root".into()));
        }
        let name = format!("rh-suite-{}-{suffix}", std::process::id());
        ip(&format!("netns add {name}"))?;
        let namespace = Namespace { name };
        let quiet = "cd /proc/sys/net/ipv6/conf && echo 1 >all/disable_ipv6 && echo 1 >default/disable_ipv6";
        // A kernel without IPv6 has no such files.
        let _ = output(&namespace.run(&Line::new("sh -c").with([quiet])));
        namespace.ip("link set lo up")?;
        Ok(namespace)
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The line that runs another in here.
    pub fn run(&self, line: &Line) -> Line {
        Line::new(&format!("ip netns exec {}", self.name)).with(line.0.iter().cloned())
    }

    /// `ip` in here.
    pub fn ip(&self, words: &str) -> Result<(), Trouble> {
        ip(&format!("-n {} {words}", self.name))
    }

    fn has(&self, interface: &str) -> bool {
        self.ip(&format!("link show dev {interface}")).is_ok()
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        let _ = ip(&format!("netns delete {}", self.name));
    }
}

/// Two hosts joined by a veth pair: 10.76.0.1 on the one, 10.76.0.2 on the other, on an interface called `wire`.
#[derive(Debug)]
pub struct Cable {
    /// The hosts.
    pub hosts: [Namespace; 2],
}

impl Cable {
    /// The address of the second host.
    pub const FAR: &'static str = "10.76.0.2";

    /// Made.
    pub fn new() -> Result<Cable, Trouble> {
        let hosts = [Namespace::new("a")?, Namespace::new("b")?];
        hosts[0].ip(&format!(
            "link add wire mtu {JUMBO} type veth peer name wire mtu {JUMBO} netns {}",
            hosts[1].name
        ))?;
        for (number, host) in hosts.iter().enumerate() {
            host.ip(&format!("address add 10.76.0.{}/24 dev wire", number + 1))?;
            host.ip("link set wire up")?;
        }
        Ok(Cable { hosts })
    }
}

/// A namespace with both ends of a veth pair, `left` and `right`, without addresses.
#[derive(Debug)]
pub struct PortCable {
    /// Where both ends are.
    pub host: Namespace,
}

impl PortCable {
    /// Made.
    pub fn new() -> Result<PortCable, Trouble> {
        let host = Namespace::new("v")?;
        host.ip(&format!("link add left mtu {JUMBO} type veth peer name right mtu {JUMBO}"))?;
        host.ip("link set left up")?;
        host.ip("link set right up")?;
        Ok(PortCable { host })
    }
}

/// A namespace with a bridge, `br0`.
#[derive(Debug)]
pub struct TapBridge {
    /// Where the bridge is.
    pub host: Namespace,
}

impl TapBridge {
    /// Made.
    pub fn new() -> Result<TapBridge, Trouble> {
        let host = Namespace::new("t")?;
        host.ip("link add br0 address 02:00:00:00:00:0a type bridge mcast_snooping 0")?;
        host.ip("link set br0 up")?;
        Ok(TapBridge { host })
    }

    /// Joins a port's tap, once it appears, to the bridge. Its kernel side has the port's own MAC at first; a bridge takes frames to
    /// the MAC of one of its interfaces as its own and the port would never see them, so it gets another.
    pub fn join(&self, tap: &str, number: u8) -> Result<(), Trouble> {
        let end = Instant::now() + APPEAR;
        while !self.host.has(tap) {
            if Instant::now() > end {
                return Err(Trouble::Failed(format!("the interface {tap} did not appear within {APPEAR:?}")));
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        let address = format!("02:00:00:00:fe:{number:02x}");
        self.host.ip(&format!("link set dev {tap} address {address} master br0 up"))?;
        // The port sets its MAC again when it starts, which may be after this. A short run is over by then, and its tap gone.
        std::thread::sleep(Duration::from_millis(200));
        let _ = self.host.ip(&format!("link set dev {tap} address {address}"));
        Ok(())
    }
}

/// Runs `ip`.
pub fn ip(words: &str) -> Result<(), Trouble> {
    output(&Line::new(&format!("ip {words}"))).map(|_| ())
}

/// Runs a program that takes no time: what it printed.
pub fn output(line: &Line) -> Result<String, Trouble> {
    let [program, arguments @ ..] = &line.0[..] else {
        return Err(Trouble::Failed("no program is named".into()));
    };
    let output = Command::new(program).args(arguments).output();
    let output = output.map_err(|why| Trouble::Failed(format!("{program} does not start: {why}")))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let complaint = String::from_utf8_lossy(&output.stderr);
    Err(Trouble::Failed(format!("{}: {}", line.shown(), complaint.trim().lines().last().unwrap_or_default())))
}
