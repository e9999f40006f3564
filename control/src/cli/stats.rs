//! `rockhopper stats`: the counters of a running endpoint.

use super::StatsArgs;
use super::failure::Failure;

use super::out::{print, say};
use rockhopper::Config;
use rockhopper::stats::{EndpointStats, Named, PortStats, SrqStats};
use std::path::{Path, PathBuf};

pub fn run(args: &StatsArgs, json: bool) -> Result<(), Failure> {
    let stats = rockhopper::admin::stats(&socket(args)?).map_err(Failure::setup)?;
    if json {
        say(serde_json::to_string(&stats).map_err(Failure::setup)?);
    } else {
        print(text(&stats, args.all));
    }
    Ok(())
}

fn socket(args: &StatsArgs) -> Result<PathBuf, Failure> {
    match &args.config {
        Some(path) => socket_of(path),
        None => Ok(args.socket.clone().unwrap_or_default()),
    }
}

/// The admin socket that a configuration file names.
pub fn socket_of(path: &Path) -> Result<PathBuf, Failure> {
    Config::load(path)?.control.socket.ok_or_else(|| {
        Failure::setup(format!(
            "{}: there is no admin socket; add socket = \"PATH\" to [control]",
            path.display()
        ))
    })
}

fn text(stats: &EndpointStats, all: bool) -> String {
    stats.ports.iter().map(|port| port_text(port, all)).collect()
}

/// One port; zeros only when `all` are wanted.
pub fn port_text(port: &PortStats, all: bool) -> String {
    let link = match port.link_up {
        Some(true) => "up",
        Some(false) => "down",
        None => "unknown",
    };
    let vlan = |index| port.gid_vlans.get(index).map_or(String::new(), |vlan| format!("@{vlan}"));
    let gids: Vec<String> =
        port.gids.iter().map(|(index, gid)| format!("{index}={gid}{}", vlan(index))).collect();
    let mut text = format!(
        "port {}  {}  {}  link {link}  MTU {} (path MTU {})\n  GIDs {}\n",
        port.name,
        port.driver,
        port.mac,
        port.ip_mtu,
        port.path_mtu,
        gids.join(" ")
    );
    let mut section = |title: &str, counters: &Named| {
        let shown: Vec<_> = counters.iter().filter(|&(_, &value)| all || value != 0).collect();
        if !shown.is_empty() {
            text += &format!("  {title}\n");
            for (name, value) in shown {
                text += &format!("    {name:<34} {value:>16}\n");
            }
        }
    };
    section("RoCE", &port.roce);
    section("network", &port.network);
    section("management", &port.management);
    section("device", &port.device);
    for (index, worker) in port.workers.iter().enumerate() {
        section(&format!("worker {index}"), worker);
    }
    for qp in &port.qps {
        section(&format!("QP {:#08x} {} {}", qp.qpn, qp.qp_type, qp.state), &qp.counters);
    }
    for srq in &port.srqs {
        let SrqStats { id, srqn, posted, max_wr, limit, qps } = srq;
        let name = srqn.map_or(String::new(), |srqn| format!(" XRC {srqn:#08x}"));
        text +=
            &format!("  SRQ {id}{name}: {posted} of {max_wr} receives, limit {limit}, {qps} queue pairs\n");
    }
    for note in &port.notes {
        text += &format!("  note: {note}\n");
    }
    text
}
