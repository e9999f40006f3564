//! A port's slow path between threads: the control thread feeds it, applications resolve through it.

use super::port::PortCore;
use crate::error::ResolveError;
use crate::net::{self, Interface, NextHop, Resolution, Route};
use engine::event::EventSource;
use engine::{AsyncEvent, EventKind};
use std::net::IpAddr;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use wire::{Addressing, Gid, Mac, RoceVersion, Vlan};

/// The interface, and a bell for those who wait for a neighbour.
pub(crate) struct Network {
    interface: Mutex<Interface>,
    changed: Condvar,
}

/// Frames taken from the slow path per visit, so that a flood cannot hold the lock.
const FRAMES_PER_VISIT: usize = 256;
/// A neighbour that is silent for longer than this is reported as dead.
const PATIENCE: Duration = Duration::from_millis(1500);
/// How often a waiter looks again by itself.
const LOOK: Duration = Duration::from_millis(20);

impl Network {
    pub fn new(interface: Interface) -> Self {
        Network { interface: Mutex::new(interface), changed: Condvar::new() }
    }

    pub fn lock(&self) -> MutexGuard<'_, Interface> {
        self.interface.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl PortCore {
    /// One visit of the control thread: frames in, timers, frames out, events. True when there was a frame.
    pub fn visit_network(&self) -> bool {
        let now = self.clock.now_ns();
        let mut interface = self.network.lock();
        let mut bytes = Vec::new();
        let mut count = 0;
        while let Some(frame) = self.link.take_slow() {
            bytes.resize(frame.pkt_len(), 0);
            frame.copy_to(0, &mut bytes);
            interface.on_frame(now, &bytes);
            count += 1;
            if count == FRAMES_PER_VISIT {
                break;
            }
        }
        interface.on_timeout(now);
        self.send_waiting(&mut interface);
        self.report(&mut interface);
        drop(interface);
        while let Some(event) = self.raised.poll() {
            self.inbox.push(event);
        }
        count > 0
    }

    /// Gives the interface's frames to a worker. What does not fit is lost, as on any link; the protocols repeat.
    pub fn send_waiting(&self, interface: &mut Interface) {
        while let Some(frame) = interface.poll_transmit() {
            let Some(mut mbuf) = self.pool.alloc() else { continue };
            if mbuf.extend_from_slice(&frame) {
                let _ = self.link.inject(mbuf);
            }
        }
    }

    fn report(&self, interface: &mut Interface) {
        while let Some(event) = interface.poll_event() {
            match event {
                net::Event::Neighbour(_) => self.network.changed.notify_all(),
                net::Event::GidChange { .. } => self.inbox.push(AsyncEvent {
                    kind: EventKind::GidChange,
                    source: EventSource::Port(self.facts.number),
                }),
                // Counted by the interface; the other station is told by our defence.
                net::Event::Conflict { .. } => {}
            }
        }
    }

    /// The way to `destination`, sent from the GID at `sgid_index` or from the one that the route names. Asks the link
    /// when the neighbour is not known, calling `drive` meanwhile.
    pub fn resolve(
        &self,
        destination: IpAddr,
        sgid_index: Option<usize>,
        drive: impl Fn() -> bool,
    ) -> Result<Addressing, ResolveError> {
        let destination = destination.to_canonical();
        let end = Instant::now() + PATIENCE;
        loop {
            let mut interface = self.network.lock();
            let route =
                interface.route(destination).map_err(|why| ResolveError::Route { destination, why })?;
            let (source, gid_type) = match sgid_index {
                None => (route.source, interface.gids().default_type()),
                Some(index) => source_of(&interface, index, destination)?,
            };
            if let Some(dmac) = v1_station(gid_type, destination, &route)? {
                return Ok(self.addressing(source, gid_type, destination, dmac));
            }
            match interface.resolve(self.clock.now_ns(), destination) {
                Resolution::Ready(mac) => return Ok(self.addressing(source, gid_type, destination, mac)),
                Resolution::Failed => return Err(ResolveError::Unreachable(destination)),
                Resolution::Pending if Instant::now() >= end => {
                    return Err(ResolveError::Unreachable(destination));
                }
                Resolution::Pending => self.send_waiting(&mut interface),
            }
            if drive() {
                drop(interface);
                std::thread::sleep(Duration::from_micros(100));
            } else {
                drop(self.network.changed.wait_timeout(interface, LOOK));
            }
        }
    }

    fn addressing(&self, source: IpAddr, version: RoceVersion, destination: IpAddr, dmac: Mac) -> Addressing {
        Addressing {
            version,
            smac: self.facts.mac,
            dmac,
            vlan: self.facts.vlan.map(|vid| Vlan::new(0, vid)),
            src: Gid::from(source),
            dst: Gid::from(destination),
            traffic_class: self.facts.qos.traffic_class(),
            flow_label: 0,
            hop_limit: if version == RoceVersion::V1 { V1_HOP_LIMIT } else { self.facts.qos.hop_limit },
            // Whoever sends by it chooses: a connection by its two QPs, a datagram by its own.
            udp_sport: 0,
        }
    }
}

/// rocev2 facts, wire 3: v1 is not routed.
const V1_HOP_LIMIT: u8 = 1;

/// rocev2 facts, wire 13: v1 takes the MAC out of a link-local GID without asking, and never goes beyond the link.
fn v1_station(
    gid_type: RoceVersion,
    destination: IpAddr,
    route: &Route,
) -> Result<Option<Mac>, ResolveError> {
    match route.next_hop {
        NextHop::Neighbour(_) if gid_type == RoceVersion::V2 => Ok(None),
        NextHop::Neighbour(hop) if hop != destination => Err(ResolveError::NotRouted(destination)),
        NextHop::Neighbour(_) => Ok(Gid::from(destination).link_local_mac()),
        NextHop::Local | NextHop::Group(_) => Ok(None),
    }
}

fn source_of(
    interface: &Interface,
    index: usize,
    destination: IpAddr,
) -> Result<(IpAddr, RoceVersion), ResolveError> {
    let entry = interface.gids().get(index).ok_or(ResolveError::GidIndex(index))?;
    if entry.address.is_ipv4() != destination.is_ipv4() {
        return Err(ResolveError::Family { source_gid: entry.address, destination });
    }
    Ok((entry.address, entry.gid_type))
}
