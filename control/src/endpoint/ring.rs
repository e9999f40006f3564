//! Two endpoints of one process, joined back to back.

use super::Endpoint;
use super::bringup::start_ports;
use crate::config::{Config, DeviceKind, Drive, PollMode, PortSettings, VlanSettings, WorkerSettings};
use crate::error::StartError;
use crate::net::Prefix;
use dpdk::ring::{RingConfig, ring_pair};
use dpdk::tsc::Clock;
use dpdk::{Eal, PortId};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use wire::RoceVersion;

/// How to join two endpoints. The default is driven by the caller and carries a path MTU of 4096.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RingPair {
    /// Who moves the packets of each end.
    pub drive: Drive,
    /// With [`Drive::Threads`]: the cores of the first end and of the second; by default none is chosen.
    pub cores: [Option<usize>; 2],
    /// With [`Drive::Threads`]: how they wait.
    pub poll: PollMode,
    /// IP MTU of both ports, 1280 or more.
    pub mtu: u16,
    /// Packets that each direction holds. No more than needed: what is under way is to be in a cache still when it is received, of long
    /// messages, too.
    pub depth: u32,
    /// VLAN of both ports.
    pub vlan: Option<u16>,
    /// Further VLANs of both, with the networks 10.64.0.0/24 + 256 · VLAN and fd52:48:0:VLAN::/64.
    pub vlans: Vec<u16>,
    /// What happens to the frames of either end on purpose, as if the link were bad: a frame from one to the other passes
    /// the plan twice.
    pub impair: Option<impair::Plan>,
    /// What both ports speak.
    pub gid_types: Vec<RoceVersion>,
    /// What else both ends take from a configuration: `[eal]` and `[qos]`.
    pub base: Config,
}

impl Default for RingPair {
    fn default() -> Self {
        RingPair {
            drive: Drive::Caller,
            cores: [None, None],
            poll: PollMode::Adaptive,
            mtu: 4200,
            depth: 256,
            vlan: None,
            vlans: Vec::new(),
            gid_types: vec![RoceVersion::V2],
            impair: None,
            base: Config::default(),
        }
    }
}

pub(super) fn start(settings: &RingPair) -> Result<(Endpoint, Endpoint), StartError> {
    let (eal, [first, second]) = join(settings)?;
    let [ours, theirs] = ends(settings)?;
    let started = [(first, ours), (second, theirs)]
        .map(|(id, config)| start_ports(&eal, &config, &[id], Clock::new(&eal)));
    let [first, second] = started;
    Ok((first?, second?))
}

/// Two ports joined back to back.
pub(super) fn join(settings: &RingPair) -> Result<(Eal, [PortId; 2]), StartError> {
    let eal = crate::eal::get(&settings.base.eal, &[])?;
    let name = format!("pair{:08x}", rand::random::<u32>());
    let shape = RingConfig { queues: 1, size: settings.depth, socket: None };
    let (first, second) = ring_pair(&eal, &name, &shape)?;
    Ok((eal, [first, second]))
}

/// What the ends are configured with.
pub(super) fn ends(settings: &RingPair) -> Result<[Config; 2], StartError> {
    Ok([end(settings, 1)?, end(settings, 2)?])
}

/// One end: hosts 1 and 2 of the private networks 10.82.72.0/24 and fd52:48::/64.
fn end(settings: &RingPair, host: u8) -> Result<Config, StartError> {
    let impossible = |why: crate::net::PrefixError| StartError::Config {
        problem: why.to_string(),
        remedy: "choose another host number".into(),
    };
    let addresses = |v4: [u8; 4], subnet: u16| {
        let v6 = Ipv6Addr::new(0xFD52, 0x48, 0, subnet, 0, 0, 0, host.into());
        let v4 = Prefix::new(IpAddr::V4(Ipv4Addr::from(v4)), 24).map_err(impossible)?;
        Ok::<_, StartError>(vec![v4, Prefix::new(IpAddr::V6(v6), 64).map_err(impossible)?])
    };
    let own = addresses([10, 82, 72, host], 0)?;
    let vlan = |&id: &u16| {
        let [high, low] = id.to_be_bytes();
        let addresses = addresses([10, 64 + high, low, host], id)?;
        Ok::<_, StartError>(VlanSettings { id, addresses, gateway_v4: None, gateway_v6: None })
    };
    let mut port = PortSettings::new(format!("ring{host}"), DeviceKind::Ring { pair: "pair".into() }, own);
    port.mtu = settings.mtu;
    port.vlan = settings.vlan;
    port.vlans = settings.vlans.iter().map(vlan).collect::<Result<_, _>>()?;
    port.gid_types = settings.gid_types.clone();
    port.impair = settings.impair.clone();
    let cores = settings.cores[usize::from(host != 1)].into_iter().collect();
    Ok(Config {
        ports: vec![port],
        workers: WorkerSettings { drive: settings.drive, cores, poll: settings.poll },
        ..settings.base.clone()
    })
}
