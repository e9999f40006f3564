//! Statistics: everything that is counted, by name, as one value that serializes.
//!
//! Names are mlx5's where the meaning is the same (`out_of_sequence`, `packet_seq_err`, `local_ack_timeout_err` …).

mod notes;

use crate::endpoint::PortCore;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use wire::Qpn;
use worker::{Command, LaneCounters, Reply};

/// Counters by name.
pub type Named = BTreeMap<String, u64>;

/// An endpoint's statistics.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EndpointStats {
    /// One entry per port.
    pub ports: Vec<PortStats>,
}

/// A port's statistics.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PortStats {
    /// Our name for it.
    pub name: String,
    /// Its driver.
    pub driver: String,
    /// Its Ethernet address.
    pub mac: String,
    /// Its GIDs, by index.
    pub gids: BTreeMap<usize, IpAddr>,
    /// The VLANs of GIDs that are in one, by index.
    #[serde(default)]
    pub gid_vlans: BTreeMap<usize, u16>,
    /// Largest IP packet, in bytes.
    pub ip_mtu: u16,
    /// Largest path MTU, in bytes.
    pub path_mtu: u32,
    /// Packets can pass. `None` when the driver does not say.
    pub link_up: Option<bool>,
    /// What transport, parser and workers counted, over all workers.
    pub roce: Named,
    /// What the slow path counted: ARP, neighbour discovery, echo.
    pub network: Named,
    /// What came for queue pair 1, and was sent from it: connection management and questions for counters.
    #[serde(default)]
    pub management: Named,
    /// What the device counted.
    pub device: Named,
    /// Frames and bytes per worker. Shorter than the port's workers when one did not answer.
    pub workers: Vec<Named>,
    /// Living queue pairs.
    pub qps: Vec<QpStats>,
    /// Living shared receive queues.
    pub srqs: Vec<SrqStats>,
    /// What the counters and what routers have said mean, and what to do: a sentence each.
    #[serde(default)]
    pub notes: Vec<String>,
}

/// A shared receive queue as it is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SrqStats {
    /// The number by which events name it.
    pub id: u32,
    /// XRC: the number that peers name it by.
    pub srqn: Option<u32>,
    /// Receives posted that no message has taken.
    pub posted: usize,
    /// Receives that fit.
    pub max_wr: u32,
    /// The armed limit, 0 when none is.
    pub limit: u32,
    /// Queue pairs that use it.
    pub qps: usize,
}

/// A queue pair's statistics.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct QpStats {
    /// Its number.
    pub qpn: u32,
    /// `Rc`, `Uc` or `Ud`.
    pub qp_type: String,
    /// Its state, as verbs names it.
    pub state: String,
    /// Its path MTU, bytes: of UD that of the port.
    #[serde(default)]
    pub path_mtu: u32,
    /// Where it is connected to.
    #[serde(default)]
    pub peer: Option<PeerStats>,
    /// What it counted, zeros left out.
    pub counters: Named,
}

/// Whom a queue pair is connected to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PeerStats {
    /// Its address.
    pub address: IpAddr,
    /// Our address.
    pub from: IpAddr,
    /// Its queue pair.
    pub qpn: u32,
}

impl EndpointStats {
    pub(crate) fn collect(ports: &[Arc<PortCore>]) -> Self {
        EndpointStats { ports: ports.iter().map(|port| PortStats::collect(port)).collect() }
    }
}

impl PortStats {
    pub(crate) fn collect(port: &PortCore) -> Self {
        let facts = &port.facts;
        let lanes: Vec<LaneCounters> = port
            .lanes
            .iter()
            .filter_map(|lane| match lane.worker.call(Command::Counters { lane: lane.lane }) {
                Ok(Reply::Counters(counters)) => Some(*counters),
                _ => None,
            })
            .collect();
        let mut roce = Named::new();
        for (name, value) in lanes.iter().flat_map(LaneCounters::iter) {
            *roce.entry(name.into()).or_default() += value;
        }
        let (gids, gid_vlans, network, too_big, conflicts) = {
            let stack = port.network.lock();
            let gids = stack.gids().iter().map(|(index, entry)| (index, entry.address)).collect();
            let of_vlan = stack.gids().iter().filter_map(|(index, entry)| Some((index, entry.vlan?)));
            let gid_vlans = of_vlan.collect();
            let mut network = Named::new();
            for (name, value) in stack.counted() {
                *network.entry(name.to_owned()).or_default() += value;
            }
            let now = port.clock.now_ns();
            let conflicts = stack.links().iter().flat_map(|link| {
                let name = port.link_name(&stack, link.vlan());
                link.conflicts()
                    .map(move |(address, conflict)| notes::conflict(&name, address, &conflict, now))
            });
            let conflicts: Vec<String> = conflicts.collect();
            (gids, gid_vlans, network, stack.too_big(), conflicts)
        };
        let qps = qp_stats(port);
        let link_up = port.device().link().ok().map(|link| link.up);
        PortStats {
            name: facts.name.clone(),
            driver: facts.driver.clone(),
            mac: facts.mac.to_string(),
            gids,
            gid_vlans,
            ip_mtu: facts.ip_mtu,
            path_mtu: facts.path_mtu.bytes(),
            link_up,
            roce,
            network,
            management: management_counters(port),
            device: device_counters(port),
            workers: lanes.iter().map(worker_counters).collect(),
            notes: notes::notes(&qps, &too_big, &conflicts),
            qps,
            srqs: srq_stats(port),
        }
    }
}

fn management_counters(port: &PortCore) -> Named {
    let datagrams = port.gsi.counters.iter().map(|(name, value)| (name.to_owned(), value));
    datagrams.chain(port.cm.counters()).collect()
}

fn device_counters(port: &PortCore) -> Named {
    let Ok(stats) = port.device().stats() else { return Named::new() };
    let named = [
        ("rx_packets", stats.rx_packets),
        ("tx_packets", stats.tx_packets),
        ("rx_bytes", stats.rx_bytes),
        ("tx_bytes", stats.tx_bytes),
        ("rx_missed", stats.rx_missed),
        ("rx_errors", stats.rx_errors),
        ("tx_errors", stats.tx_errors),
        ("rx_no_mbuf", stats.rx_no_mbuf),
    ];
    named.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

fn worker_counters(lane: &LaneCounters) -> Named {
    let traffic = &lane.traffic;
    let named = [
        ("rx_frames", traffic.rx_frames),
        ("tx_frames", traffic.tx_frames),
        ("rx_bytes", traffic.rx_bytes),
        ("tx_bytes", traffic.tx_bytes),
        ("handed_over_frames", traffic.handed_over),
    ];
    named.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

/// The QPs that answer; one that goes away meanwhile is left out.
fn qp_stats(port: &PortCore) -> Vec<QpStats> {
    let qps: Vec<_> = port.names().qps.iter().map(|(&qpn, &qp_type)| (qpn, qp_type)).collect();
    let query = |(number, qp_type): (u32, engine::QpType)| {
        let qpn = Qpn::new(number);
        let Ok(Reply::Qp(snapshot)) = port.at_home(qpn, |lane| Command::QueryQp { lane, qpn }) else {
            return None;
        };
        let counters = snapshot.counters.iter().filter(|&(_, value)| value != 0);
        let path_mtu =
            if qp_type == engine::QpType::Ud { port.facts.path_mtu } else { snapshot.attr.path_mtu };
        let peer = snapshot.attr.path.as_ref().filter(|_| qp_type != engine::QpType::Ud);
        Some(QpStats {
            path_mtu: path_mtu.bytes(),
            peer: peer.map(|path| PeerStats {
                address: path.dst.ip(),
                from: path.src.ip(),
                qpn: snapshot.attr.dest_qpn.value(),
            }),
            qpn: number,
            qp_type: format!("{qp_type:?}"),
            state: format!("{:?}", snapshot.attr.state),
            counters: counters.map(|(name, value)| (name.to_owned(), value)).collect(),
        })
    };
    qps.into_iter().filter_map(query).collect()
}

fn srq_stats(port: &PortCore) -> Vec<SrqStats> {
    let names = port.names();
    let stats = names.srqs.iter().map(|(&id, record)| SrqStats {
        id,
        srqn: record.queue.srqn().map(|srqn| srqn.value()),
        posted: record.queue.len(),
        max_wr: record.queue.depth(),
        limit: record.queue.limit(),
        qps: record.users.load(Ordering::Relaxed),
    });
    stats.collect()
}
