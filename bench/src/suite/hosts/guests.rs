//! Two Linux guests with Soft-RoCE whose taps lie on the bridge that Rockhopper's join as well.

use super::{Namespace, TapBridge, output};
use crate::suite::case::Trouble;
use crate::suite::child::Line;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// The script that makes guests, from the project's root.
const SCRIPT: &str = "scripts/interop/guest.sh";
/// Names of the taps on the bridge.
const TAPS: [&str; 2] = ["guest-a", "guest-b"];

/// From now on the kernel of a guest sends nothing by itself.
const QUIET: &str = "echo 1 >/proc/sys/net/ipv6/conf/eth0/disable_ipv6";

/// How long the guests may take to reach each other.
const REACH: Duration = Duration::from_secs(20);

/// Two guests. They end with this.
#[derive(Debug)]
pub struct Guests {
    script: PathBuf,
    names: [String; 2],
}

impl Guests {
    /// RDMA addresses of the two.
    pub const ADDRESSES: [&'static str; 2] = ["10.78.0.1", "10.78.0.3"];

    /// Booted, each on one core, and joined: their taps, MTU 1500, move onto the bridge, and the second gets an address of its own.
    pub fn new(bridge: &TapBridge, cores: [usize; 2]) -> Result<Guests, Trouble> {
        let script = PathBuf::from(SCRIPT);
        if !script.is_file() {
            let why = format!(
                "guests are made by {SCRIPT}, which is not here: run the suite from the project's root"
            );
            return Err(Trouble::NotRun(why));
        }
        let guests =
            Guests { script, names: ["a", "b"].map(|end| format!("suite{}{end}", std::process::id())) };
        guests.script(&["possible"]).map_err(|why| Trouble::NotRun(reason(&why)))?;
        let cached = PathBuf::from(guests.script(&["cache"])?.trim()).join("guest/linux");
        if !cached.is_file() {
            return Err(Trouble::NotRun(
                "there is no Linux guest yet: `make setup-interop` builds it".into(),
            ));
        }
        for (end, name) in guests.names.iter().enumerate() {
            let start = Line::new(&format!(
                "taskset -c {} {} start {name} --mtu 1500",
                cores[end],
                guests.script.display()
            ));
            output(&start)?;
            guests.join(&bridge.host, end)?;
        }
        let change =
            format!("ip address flush dev eth0 && ip address add {}/24 dev eth0", Guests::ADDRESSES[1]);
        guests.execute(1, &change)?;
        // A bridge takes a moment to carry, and a busy machine more.
        let end = Instant::now() + REACH;
        while let Err(why) = guests.execute(1, &format!("ping -c 1 -W 1 {}", Guests::ADDRESSES[0])) {
            if Instant::now() > end {
                return Err(Trouble::Failed(format!("the guests do not reach each other: {}", reason(&why))));
            }
        }
        Ok(guests)
    }

    fn join(&self, bridge: &Namespace, end: usize) -> Result<(), Trouble> {
        let (name, tap) = (&self.names[end], TAPS[end]);
        // A tap that moves is down for a moment. If the guest sends then, its driver finds an error and sends nothing ever again; and
        // for some seconds after its start it does send: reports of IPv6 groups.
        self.execute(end, QUIET)?;
        super::ip(&format!("-n rh-{name} link set rdma0 down"))?;
        super::ip(&format!("-n rh-{name} link set rdma0 netns {} name {tap}", bridge.name()))?;
        bridge.ip(&format!("link set {tap} master br0 mtu 1500 up"))
    }

    /// Runs a shell script in a guest: what it printed.
    pub fn execute(&self, end: usize, script: &str) -> Result<String, Trouble> {
        self.script(&["exec", &self.names[end], script])
    }

    /// The line that runs a script in a guest.
    pub fn line(&self, end: usize, seconds: u64, script: &str) -> Line {
        Line(vec![self.script.display().to_string()]).with([
            "exec",
            &self.names[end],
            "-t",
            &seconds.to_string(),
            script,
        ])
    }

    fn script(&self, arguments: &[&str]) -> Result<String, Trouble> {
        output(&Line(vec![self.script.display().to_string()]).with(arguments.iter().copied()))
    }
}

impl Drop for Guests {
    fn drop(&mut self) {
        let [a, b] = &self.names;
        let _ = self.script(&["stop", a, b]);
    }
}

/// Of a failure, what was said.
fn reason(why: &Trouble) -> String {
    match why {
        Trouble::NotRun(why) | Trouble::Failed(why) => why.clone(),
        Trouble::Stopped => "the suite was stopped".into(),
    }
}
