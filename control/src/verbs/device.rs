//! A device: one port with queue pairs, keys and GIDs of its own.

use super::{CompChannel, Cq, DeviceAttr, Pd, PortAttr, Xrcd};
use crate::endpoint::{EndpointCore, PathRequest, PortCore, ResolvedPath};
use crate::error::{CreateError, ResolveError};
use crate::net::{GidEntry, Prefix};
use crate::stats::PortStats;
use dpdk::PortError;
use engine::AsyncEvent;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;
use wire::{Addressing, Gid, RoceVersion};
use worker::CallError;

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

    /// The GID to use when nothing else is said: the first IPv4 address, else the first IPv6 address that is not
    /// link-local, else the link-local one.
    pub fn default_gid_index(&self) -> usize {
        let interface = self.port.network.lock();
        let gid_type = interface.gids().default_type();
        let find = |fits: &dyn Fn(&GidEntry) -> bool| {
            interface.gids().iter().find(|(_, entry)| entry.gid_type == gid_type && fits(entry))
        };
        let best = find(&|entry| entry.gid.is_v4())
            .or_else(|| find(&|entry| !entry.gid.is_link_local()))
            .or_else(|| find(&|_| true));
        best.map_or(0, |(index, _)| index)
    }

    /// Adds an address to the port: it answers for it, and has a GID for it, whose index is the result.
    pub fn add_address(&self, address: Prefix) -> Result<usize, CallError> {
        let index = {
            let mut interface = self.port.network.lock();
            let index = interface.add_address(address);
            self.port.send_waiting(&mut interface);
            index
        };
        self.port.publish_addresses()?;
        Ok(index)
    }

    /// Removes an address; false if the port does not have it. Connections that use it break.
    pub fn remove_address(&self, address: IpAddr) -> Result<bool, CallError> {
        let found = self.port.network.lock().remove_address(address);
        self.port.publish_addresses()?;
        Ok(found)
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
