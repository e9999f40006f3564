//! From a configuration to a running endpoint: DPDK, devices, ports, workers, control thread.

use super::control::ControlThread;
use super::network::Network;
use super::port::{LaneHandle, PortCore, PortFacts, PortParts};
use super::raw::{RawParts, RawPort};
use super::{Drivers, Endpoint, EndpointCore};
use crate::admin::AdminServer;
use crate::cm::Host;
use crate::config::{Config, DeviceKind, Drive, MemifRole, PollMode, PortSettings, WorkerSettings};
use crate::error::StartError;
use crate::net;
use crate::preflight::{self, Problem};
use dpdk::ring::{RingConfig, ring_pair};
use dpdk::tsc::Clock;
use dpdk::{Eal, Mempool, PoolConfig, Port, PortConfig, PortId, RxQueue, TxQueue, Vdev, vdev};
use engine::limits::{MAX_QPS, WINDOW_MAX};
use engine::{EngineConfig, EventQueue};
use impair::{Plan, Stage};
use memory::Regions;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use wire::{MAX_OVERHEAD, Mac, Mtu};
use worker::{LENDING_ROOM, LaneConfig, LinkConfig, PortLink, Worker, WorkerConfig};

/// Buffers of a port, per worker: a full receive ring, a full transmit ring, a peer's ring of frames that came from
/// here, and what waits in between.
const BUFFERS_PER_WORKER: u32 = 8192;
/// Events that may wait for the control thread.
const EVENTS: usize = 4096;
/// Regions of one device.
const MAX_MRS: usize = 4096;

pub(super) fn start(config: &Config) -> Result<Endpoint, StartError> {
    if config.ports.is_empty() {
        return Err(StartError::Config {
            problem: "there is no port".into(),
            remedy: "add a [[port]] section; see the examples in configs/".into(),
        });
    }
    let pci: Vec<String> = config.ports.iter().filter_map(|port| pci_address(&port.device)).collect();
    let eal = crate::eal::get(&config.eal, &pci)?;
    let ids = make_devices(&eal, &config.ports)?;
    let started = start_ports(&eal, config, &ids, Clock::new(&eal));
    if started.is_err() {
        // Those that were opened are gone already.
        for id in ids {
            eal.remove_vdev(id);
        }
    }
    started
}

/// Opens ports that exist, and puts workers and the control thread to work on them.
pub(super) fn start_ports(
    eal: &Eal,
    config: &Config,
    ids: &[PortId],
    clock: Clock,
) -> Result<Endpoint, StartError> {
    let workers = worker_count(&config.workers);
    let mut lanes: Vec<Vec<LaneConfig>> = (0..workers).map(|_| Vec::new()).collect();
    let mut opened = Vec::new();
    for (index, (settings, &id)) in config.ports.iter().zip(ids).enumerate() {
        let port = OpenedPort::open(eal, config, settings, id, index, workers)
            // Only memif looks for its other end when it is opened; all others when they are made.
            .map_err(|error| match settings.device {
                DeviceKind::Memif { .. } => explained(settings, error),
                _ => error,
            })?;
        port.add_lanes(&mut lanes, &mut opened);
    }
    let (drivers, threads, handles) = start_workers(eal, &config.workers, clock, lanes)?;
    let ports: Vec<Arc<PortCore>> =
        opened.into_iter().map(|port| Arc::new(port.finish(&handles, clock))).collect();
    for port in &ports {
        port.publish_addresses()?;
    }
    let admin = config.control.socket.as_deref().map(|path| AdminServer::start(path, &ports)).transpose()?;
    let drivers = Arc::new(Drivers { workers: drivers, polls: AtomicU64::new(0) });
    let host = Arc::new(Host::new(ports.clone(), Arc::clone(&drivers)));
    let control =
        ControlThread::spawn(ports.clone(), Arc::clone(&drivers), Arc::clone(&host)).map_err(|why| {
            StartError::System {
                what: "no control thread".into(),
                why,
                remedy: "raise the limit of threads (ulimit -u)",
            }
        })?;
    Ok(Endpoint {
        core: Arc::new(EndpointCore {
            _control: control,
            _admin: admin,
            drivers,
            _threads: threads,
            ports,
            host,
        }),
    })
}

fn worker_count(settings: &WorkerSettings) -> usize {
    match settings.drive {
        Drive::Caller => 1,
        Drive::Threads => settings.cores.len().max(1),
    }
}

type Started = (Vec<worker::DrivenWorker>, Vec<worker::WorkerThread>, Vec<worker::WorkerHandle>);

fn start_workers(
    eal: &Eal,
    settings: &WorkerSettings,
    clock: Clock,
    lanes: Vec<Vec<LaneConfig>>,
) -> Result<Started, StartError> {
    let (mut drivers, mut threads, mut handles) = (Vec::new(), Vec::new(), Vec::new());
    for (index, lanes) in lanes.into_iter().enumerate() {
        let poll = match settings.poll {
            PollMode::Busy => worker::PollMode::Busy,
            PollMode::Adaptive => worker::PollMode::Adaptive,
        };
        let config = WorkerConfig { poll, ..WorkerConfig::new(&format!("worker-{index}"), clock) };
        let (worker, handle) = Worker::new(config, lanes)?;
        handles.push(handle);
        match settings.drive {
            Drive::Caller => drivers.push(worker.into_driven()),
            Drive::Threads => threads.push(worker.spawn(eal, settings.cores.get(index).copied())?),
        }
    }
    Ok((drivers, threads, handles))
}

/// A port that is open, while its workers are being made.
pub(super) struct OpenedPort {
    facts: PortFacts,
    stack: net::Stack,
    link: Arc<PortLink>,
    regions: Regions,
    raised: Arc<EventQueue>,
    pool: Arc<Mempool>,
    lending: Option<Arc<Mempool>>,
    port: Port,
    queues: Vec<(RxQueue, TxQueue)>,
    impair: Option<Plan>,
    max_window: u32,
    /// By the port's own count of its workers: which worker, and which of its lanes.
    places: Vec<(usize, usize)>,
}

impl OpenedPort {
    pub(super) fn open(
        eal: &Eal,
        config: &Config,
        settings: &PortSettings,
        id: PortId,
        index: usize,
        workers: usize,
    ) -> Result<OpenedPort, StartError> {
        let pool = Mempool::new(eal, pool_config(settings, index, workers))?;
        let wish = PortConfig {
            queues: workers as u16,
            rx_descriptors: settings.rx_descriptors,
            tx_descriptors: settings.tx_descriptors,
            mtu: settings.mtu,
            // These devices have the address of a kernel interface, or none; ours is in the frames only.
            promiscuous: settings.mac.is_some()
                && matches!(settings.device, DeviceKind::Pcap { .. } | DeviceKind::AfPacket { .. }),
            ..PortConfig::default()
        };
        let mut port = Port::open(eal, id, &wish, &[Arc::clone(&pool)])?;
        let negotiated = port.negotiated().clone();
        let path_mtu = Mtu::from_ip_mtu(negotiated.mtu.into()).ok_or_else(|| StartError::Config {
            problem: format!(
                "port {}: its device passes IP packets of {} bytes only",
                settings.name, negotiated.mtu
            ),
            remedy: "raise the interface's MTU to 1500 at least".into(),
        })?;
        let mac = settings.mac.unwrap_or(own_mac(port.mac()?, &settings.device));
        let stack = stack(settings, mac, negotiated.mtu)
            .map_err(|why| StartError::Network { port: settings.name.clone(), why })?;
        let lends = negotiated.tx_lends && settings.zero_copy;
        let lending = lends.then(|| Mempool::new(eal, lending_pool(settings, index, workers))).transpose()?;
        let queues = port.take_queues();
        Ok(OpenedPort {
            facts: PortFacts {
                number: index as u16 + 1,
                name: settings.name.clone(),
                driver: negotiated.driver.clone(),
                negotiated: negotiated.to_string(),
                mac,
                ip_mtu: negotiated.mtu,
                path_mtu,
                vlan: settings.vlan,
                neighbour_timeout: settings.neighbour_timeout,
                qos: config.qos,
                max_qps: MAX_QPS,
                max_mrs: MAX_MRS,
            },
            stack,
            link: PortLink::new(LinkConfig { workers: queues.len(), ..LinkConfig::default() })?,
            regions: Regions::new(MAX_MRS),
            raised: Arc::new(EventQueue::new(EVENTS)),
            pool,
            lending,
            port,
            queues,
            impair: settings.impair.clone(),
            max_window: max_window(&settings.device),
            places: Vec::new(),
        })
    }

    /// Gives each worker its queue pair. A device with fewer queues than there are workers serves the first ones.
    fn add_lanes(mut self, lanes: &mut [Vec<LaneConfig>], opened: &mut Vec<OpenedPort>) {
        for (index, (rx, tx)) in std::mem::take(&mut self.queues).into_iter().enumerate() {
            self.places.push((index, lanes[index].len()));
            lanes[index].push(LaneConfig {
                link: Arc::clone(&self.link),
                index,
                rx,
                tx,
                pool: Arc::clone(&self.pool),
                lending: self.lending.clone(),
                memory: self.regions.reader(),
                events: Arc::clone(&self.raised),
                engine: EngineConfig {
                    max_qps: self.facts.max_qps,
                    max_mrs: MAX_MRS,
                    max_window: self.max_window,
                },
                max_mtu: self.facts.path_mtu,
                // Ports, and the workers of each, have dice of their own.
                impair: self
                    .impair
                    .as_ref()
                    .map(|plan| Stage::new(plan, u64::from(self.facts.number) << 32 | index as u64)),
            });
        }
        opened.push(self);
    }

    /// The port without workers.
    pub(super) fn into_raw(mut self, clock: Clock) -> Result<RawPort, StartError> {
        let queues =
            std::mem::take(&mut self.queues).into_iter().next().ok_or_else(|| StartError::Config {
                problem: format!("port {} has no queue", self.facts.name),
                remedy: "give it another driver".into(),
            })?;
        let OpenedPort { port, pool, stack, .. } = self;
        Ok(RawPort::new(RawParts { queues, port, pool, stack, clock }))
    }

    fn finish(self, workers: &[worker::WorkerHandle], clock: Clock) -> PortCore {
        let handle = |&(worker, lane): &(usize, usize)| LaneHandle { worker: workers[worker].clone(), lane };
        PortCore::new(PortParts {
            lanes: self.places.iter().map(handle).collect(),
            facts: self.facts,
            link: self.link,
            regions: self.regions,
            raised: self.raised,
            network: Network::new(self.stack),
            pool: self.pool,
            clock,
            port: self.port,
        })
    }
}

/// The links of a port as its settings describe them.
fn stack(settings: &PortSettings, mac: Mac, mtu: u16) -> Result<net::Stack, net::ConfigError> {
    let link = |vlan, addresses: &[net::Prefix], gateway_v4, gateway_v6| net::Config {
        mtu,
        vlan,
        gateway_v4,
        gateway_v6,
        cache: net::CacheLimits::giving_up_after(settings.neighbour_timeout.as_nanos() as u64),
        ..net::Config::new(mac, addresses.to_vec())
    };
    let own = link(settings.vlan, &settings.addresses, settings.gateway_v4, settings.gateway_v6);
    let vlans = settings.vlans.iter();
    let vlans = vlans.map(|sub| link(Some(sub.id), &sub.addresses, sub.gateway_v4, sub.gateway_v6)).collect();
    net::Stack::new(&settings.gid_types, own, vlans)
}

/// Packets that a queue pair may have outstanding. A packet socket that is not read for a moment loses what its ring does not hold, and
/// the one at the wire's other end is presumably like ours. Rings in memory refuse instead, and of other wires nothing is known.
fn max_window(device: &DeviceKind) -> u32 {
    match device {
        DeviceKind::AfPacket { .. } => vdev::AF_PACKET_SLOTS.into(),
        _ => WINDOW_MAX,
    }
}

/// Descriptors of a memif ring, as a power of two.
const MEMIF_RING_LOG2: u8 = 10;

/// A buffer that holds the longest packet that we send, rounded up to cache lines.
///
/// memif buffers are as long: net_memif of DPDK 22.11 leaves half a frame in a ring that fills up in the middle of one of
/// several buffers, and its receiver then runs through the whole ring again and again.
const fn longest_frame() -> u16 {
    (Mtu::Mtu4096.bytes() as u16 + MAX_OVERHEAD as u16).next_multiple_of(64)
}

/// A pool whose buffers hold a full packet; longer frames that we only receive come in chains.
fn pool_config(settings: &PortSettings, index: usize, workers: usize) -> PoolConfig {
    let data_room = match settings.device {
        DeviceKind::AfPacket { .. } => vdev::AF_PACKET_JUMBO_DATA_ROOM,
        _ => longest_frame(),
    };
    let count = (BUFFERS_PER_WORKER * workers as u32).max(u32::from(settings.rx_descriptors) * 4) - 1;
    // Jumbo slots are large: a quarter of the buffers is as many bytes, and enough for a packet socket.
    let count = if data_room > 16_384 { count / 4 } else { count };
    PoolConfig { name: format!("port{index}"), count, cache: 256, data_room, socket: None }
}

/// Three small buffers for each packet that may be under way.
fn lending_pool(settings: &PortSettings, index: usize, workers: usize) -> PoolConfig {
    let packets = u32::from(settings.tx_descriptors) * workers as u32;
    let count = (packets * 3 + 512).next_power_of_two() - 1;
    PoolConfig { name: format!("port{index}-lend"), count, cache: 256, data_room: LENDING_ROOM, socket: None }
}

/// The device's address, or one in the range for local use where it has none. A tap's address is that of the kernel's
/// side, so ours differs in a bit: the kernel is to talk to us.
fn own_mac(device: [u8; 6], kind: &DeviceKind) -> Mac {
    if device == [0; 6] || Mac(device).is_multicast() {
        let [a, b, c, ..] = rand::random::<u32>().to_be_bytes();
        return Mac([0x02, b'R', b'H', a, b, c]);
    }
    let [rest @ .., last] = device;
    let last = if matches!(kind, DeviceKind::Tap { .. }) { last ^ 0x80 } else { last };
    let [a, b, c, d, e] = rest;
    Mac([a, b, c, d, e, last])
}

pub(super) fn pci_address(device: &DeviceKind) -> Option<String> {
    match device {
        DeviceKind::Pci { address } => Some(address.clone()),
        _ => None,
    }
}

/// Makes the devices that are ours to make and finds the others.
pub(super) fn make_devices(eal: &Eal, ports: &[PortSettings]) -> Result<Vec<PortId>, StartError> {
    let mut made = Made { eal, ids: Vec::new(), rings: BTreeMap::new() };
    for (index, settings) in ports.iter().enumerate() {
        match made.device(settings, index) {
            Ok(id) => made.ids.push(id),
            Err(error) => {
                made.undo();
                return Err(explained(settings, error));
            }
        }
    }
    Ok(made.ids)
}

/// Drivers seldom say what is missing; a look at the machine often tells.
fn explained(settings: &PortSettings, error: StartError) -> StartError {
    match preflight::all(&settings.device) {
        Some(Problem { found, remedy }) => {
            StartError::Config { problem: format!("port {}: {found}", settings.name), remedy }
        }
        None => error,
    }
}

struct Made<'a> {
    eal: &'a Eal,
    ids: Vec<PortId>,
    /// Second ends of ring pairs whose first end is taken.
    rings: BTreeMap<String, PortId>,
}

impl Made<'_> {
    fn device(&mut self, settings: &PortSettings, index: usize) -> Result<PortId, StartError> {
        // Unique in the process, where several endpoints may be.
        let suffix = format!("{}_{index}", rand::random::<u16>());
        let vdev = match &settings.device {
            DeviceKind::Ring { pair } => return self.ring(pair, settings),
            DeviceKind::Pci { address } => {
                let name = address.split(',').next().unwrap_or_default();
                return dpdk::port::find(self.eal, name).map_err(|_| StartError::Config {
                    problem: format!("DPDK finds no NIC at {name}"),
                    remedy:
                        "check the address with dpdk-devbind.py --status and bind the NIC to a DPDK driver; \
                             `rockhopper doctor -c FILE` says how"
                            .into(),
                });
            }
            DeviceKind::Tap { interface } => Vdev::tap(&suffix, interface, None)?,
            DeviceKind::AfPacket { interface } => Vdev::af_packet(&suffix, interface, 1, true)?,
            DeviceKind::Pcap { interface } => Vdev::pcap_interface(&suffix, interface)?,
            DeviceKind::Memif { socket, role, id } => {
                let role = match role {
                    MemifRole::Server => vdev::MemifRole::Server,
                    MemifRole::Client => vdev::MemifRole::Client,
                };
                Vdev::memif(&suffix, role, socket, *id, longest_frame(), MEMIF_RING_LOG2)?
            }
            DeviceKind::Vdev { name, args } => Vdev::custom(name, args)?,
        };
        Ok(self.eal.add_vdev(&vdev)?)
    }

    fn ring(&mut self, pair: &str, settings: &PortSettings) -> Result<PortId, StartError> {
        if let Some(second) = self.rings.remove(pair) {
            return Ok(second);
        }
        let size = u32::from(settings.rx_descriptors.max(settings.tx_descriptors));
        let name = format!(
            "{:.8}{:04x}",
            pair.replace(|c: char| !c.is_ascii_alphanumeric(), ""),
            rand::random::<u16>()
        );
        let (first, second) = ring_pair(self.eal, &name, &RingConfig { queues: 16, size, socket: None })?;
        self.rings.insert(pair.to_owned(), second);
        Ok(first)
    }

    /// Removes what was made before something went wrong.
    fn undo(&self) {
        for &id in self.ids.iter().chain(self.rings.values()) {
            self.eal.remove_vdev(id);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_is_outstanding_than_a_packet_socket_holds() {
        let window = max_window(&DeviceKind::AfPacket { interface: "eth0".into() });
        let vdev = Vdev::af_packet("0", "eth0", 1, true).unwrap();
        assert!(vdev.args().ends_with(&format!(",framecnt={window}")), "{}", vdev.args());
        assert_eq!(max_window(&DeviceKind::Pcap { interface: "eth0".into() }), WINDOW_MAX);
    }
}
