//! A device: one port with queue pairs, keys and GIDs of its own.

use super::{CompChannel, Cq, DeviceAttr, Pd, PortAttr, Xrcd};
use crate::endpoint::{EndpointCore, PathRequest, PortCore, ResolvedPath};
use crate::error::{AddressError, CreateError, NoLink, ResolveError};
use crate::net::{GidEntry, Prefix, Scope, Want};
use crate::stats::PortStats;
use dpdk::PortError;
use engine::AsyncEvent;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};
use wire::{Addressing, Gid, RoceVersion};

/// How often whoever waits for a link looks again.
const LINK_LOOK: Duration = Duration::from_millis(10);

/// A device. Clones are the same device.
#[derive(Clone)]
pub struct Device {
    pub(crate) port: Arc<PortCore>,
    pub(crate) core: Arc<EndpointCore>,
}

impl std::fmt::Debug for Device {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Device").field(&self.name()).finish()
    }
}

impl Device {
    pub(crate) fn new(port: Arc<PortCore>, core: Arc<EndpointCore>) -> Self {
        Device { port, core }
    }

    /// Our name for the port.
    pub fn name(&self) -> &str {
        &self.port.facts.name
    }

    /// The port's driver, like `net_ring`.
    pub fn driver(&self) -> &str {
        &self.port.facts.driver
    }

    /// What the port was opened with, in words.
    pub fn negotiated(&self) -> &str {
        &self.port.facts.negotiated
    }

    /// Its limits.
    pub fn attributes(&self) -> DeviceAttr {
        DeviceAttr::new(self.port.facts.max_qps, self.port.facts.max_mrs)
    }

    /// State and addresses of its port. Fails when the driver does not tell its link state.
    pub fn query_port(&self) -> Result<PortAttr, PortError> {
        let link = self.port.device().link()?;
        let facts = &self.port.facts;
        Ok(PortAttr {
            up: link.up,
            speed_mbps: link.speed_mbps,
            ip_mtu: facts.ip_mtu,
            path_mtu: facts.path_mtu,
            mac: facts.mac,
            vlan: facts.vlan,
            gids: self.port.network.lock().gids().iter().collect(),
        })
    }

    /// How long links take at most, cables plugged in: for [`wait_for_link`](Self::wait_for_link).
    pub const LINK_PATIENCE: Duration = Duration::from_secs(5);

    /// Waits until the link is up: those of shared memory and of some NICs come up a while after their port. A driver that does not
    /// tell its link state is taken at its word when packets come through. `stop` is asked now and then, and ends the wait.
    ///
    /// Errors: it is down after `patience`, or `stop` says so.
    pub fn wait_for_link(&self, patience: Duration, stop: impl Fn() -> bool) -> Result<(), NoLink> {
        let end = Instant::now() + patience;
        while self.query_port().is_ok_and(|port| !port.up) {
            if stop() {
                return Err(NoLink::Stopped);
            }
            if Instant::now() >= end {
                return Err(NoLink::Down(self.name().to_owned()));
            }
            if !self.drive() {
                std::thread::sleep(LINK_LOOK);
            }
        }
        Ok(())
    }

    /// Largest path MTU of the port.
    pub fn path_mtu(&self) -> wire::Mtu {
        self.port.facts.path_mtu
    }

    /// The GID at an index.
    pub fn gid(&self, index: usize) -> Option<GidEntry> {
        self.port.network.lock().gids().get(index)
    }

    /// The index of a GID of ours: that of type v2 where there is one.
    pub fn gid_index(&self, gid: Gid) -> Option<usize> {
        self.port.network.lock().gids().index_of(gid)
    }

    /// The index of a GID of ours of a type.
    pub fn gid_index_of_type(&self, gid: Gid, gid_type: RoceVersion) -> Option<usize> {
        self.port.network.lock().gids().index_of_type(gid, gid_type)
    }

    /// The index of a GID of ours of a type, on the link of a VLAN (`None`: untagged).
    pub fn gid_index_on(&self, gid: Gid, gid_type: RoceVersion, vlan: Option<u16>) -> Option<usize> {
        self.port.network.lock().gids().index_on(gid, gid_type, vlan)
    }

    /// The GID to use when nothing else is said, no peer either, on the port's own link: the first IPv4 address, else the first IPv6 address that is not
    /// link-local, else the link-local one.
    pub fn default_gid_index(&self) -> usize {
        let stack = self.port.network.lock();
        let (gid_type, own) = (stack.gids().default_type(), stack.own().vlan());
        let find = |fits: &dyn Fn(&GidEntry) -> bool| {
            let wanted = |entry: &GidEntry| entry.gid_type == gid_type && entry.vlan == own && fits(entry);
            stack.gids().iter().find(|(_, entry)| wanted(entry))
        };
        let best = find(&|entry| entry.gid.is_v4())
            .or_else(|| find(&|entry| !entry.gid.is_link_local()))
            .or_else(|| find(&|_| true));
        best.map_or(0, |(index, _)| index)
    }

    /// Adds an address to the port's own link: it answers for it, tells the link of it, and has a GID for it, whose index is
    /// the result. An event names the index. An address that is there keeps its index, and takes the new prefix.
    pub fn add_address(&self, address: Prefix) -> Result<usize, AddressError> {
        self.add_address_on(self.port.facts.vlan, address)
    }

    /// Adds an address to the link of a VLAN.
    pub fn add_address_on(&self, vlan: Option<u16>, address: Prefix) -> Result<usize, AddressError> {
        self.port.add_address(vlan, address)
    }

    /// Removes an address from the port's own link; false if it is not there. Queue pairs that are connected from it go to
    /// ERROR: their requests are flushed, and [`EventKind::QpFatal`](crate::EventKind::QpFatal) names each. Datagrams by address handles that
    /// send from it end with an error.
    pub fn remove_address(&self, address: IpAddr) -> Result<bool, AddressError> {
        self.remove_address_on(self.port.facts.vlan, address)
    }

    /// Removes an address from the link of a VLAN.
    pub fn remove_address_on(&self, vlan: Option<u16>, address: IpAddr) -> Result<bool, AddressError> {
        self.port.remove_address(vlan, address)
    }

    /// The index of the GID to send from, by route, family, link and type; or whether the one that the request names can. Asks
    /// nobody.
    ///
    /// Errors: none leads there, or not that one; the words say which would, and why.
    pub fn gid_index_for(&self, request: &PathRequest) -> Result<usize, ResolveError> {
        self.port.choose(&self.port.network.lock(), request).map(|choice| choice.index)
    }

    /// The headers for packets to `destination`: route, source GID, and the MAC of the next hop, which is asked for on the
    /// link if it is not known. Waits for at most 1.5 seconds; a dead neighbour is reported within that.
    ///
    /// `sgid_index` chooses the source; by default the route does.
    pub fn resolve(
        &self,
        destination: IpAddr,
        sgid_index: Option<usize>,
    ) -> Result<Addressing, ResolveError> {
        let request = PathRequest { sgid_index, ..PathRequest::to(destination) };
        self.find_path(&request).map(|path| path.addressing)
    }

    /// The path to a destination: GID index, headers with VLAN, path MTU. Waits for the next hop to answer, as
    /// [`resolve`](Self::resolve) does.
    pub fn find_path(&self, request: &PathRequest) -> Result<ResolvedPath, ResolveError> {
        self.port.resolve(request, || self.core.drive())
    }

    /// As [`find_path`](Self::find_path), but never waits: gives the answer if it is known, or else `None` and tells it to `done`,
    /// from the control thread, once the next hop has answered or its time is over. `done` may ask again, and should not wait.
    ///
    /// Errors: those of `find_path`, and [`ResolveError::Busy`] when thousands wait already.
    pub fn find_path_then(
        &self,
        request: PathRequest,
        done: impl FnOnce(Result<ResolvedPath, ResolveError>) + Send + 'static,
    ) -> Option<Result<ResolvedPath, ResolveError>> {
        self.port.resolve_then(request, Box::new(done))
    }

    /// The index of the GID that leads to a peer on one link.
    pub(crate) fn gid_index_towards(
        &self,
        peer: IpAddr,
        gid_type: RoceVersion,
        vlan: Option<u16>,
    ) -> Option<usize> {
        let want =
            Want { destination: peer, scope: Scope::Link(vlan), index: None, gid_type: Some(gid_type) };
        self.port.network.lock().choose(&want).ok().map(|choice| choice.index)
    }

    /// Allocates a protection domain.
    pub fn alloc_pd(&self) -> Pd {
        Pd::new(self.clone())
    }

    /// Opens an XRC domain.
    pub fn open_xrcd(&self) -> Result<Xrcd, CreateError> {
        Xrcd::new(self)
    }

    /// Creates a completion queue for `depth` completions.
    pub fn create_cq(&self, depth: u32) -> Result<Cq, CreateError> {
        Cq::new(self.clone(), depth, None)
    }

    /// Creates a completion queue whose notifications go to a channel.
    pub fn create_cq_on(&self, depth: u32, channel: &CompChannel) -> Result<Cq, CreateError> {
        Cq::new(self.clone(), depth, Some(channel))
    }

    /// Creates a completion channel.
    pub fn create_comp_channel(&self) -> Result<CompChannel, CreateError> {
        CompChannel::new()
    }

    /// The oldest asynchronous event that nobody has read, waiting up to `timeout` for one.
    pub fn next_event(&self, timeout: Duration) -> Option<AsyncEvent> {
        self.port.inbox.next(timeout)
    }

    /// Everything that is counted for this port, now.
    pub fn stats(&self) -> PortStats {
        PortStats::collect(&self.port)
    }

    /// Moves packets once if the [caller drives](crate::config::Drive::Caller) this device's endpoint, and whether it does.
    /// For loops that wait for something.
    #[inline]
    pub fn drive(&self) -> bool {
        self.core.drive()
    }
}
