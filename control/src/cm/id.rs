//! Connection identifiers: state, binding, resolution, queue pair. What makes connections is in `connecting.rs`, groups are
//! in `multicast.rs`.
//!
//! An identifier is changed under its own lock, which is taken before that of its port's connection management and never
//! held across a command to a worker: a command may have to be executed by the thread that gives it.

use super::channel::{Channel, EventChannel};
use super::error::CmError;
use super::event::{CmEventKind, Queued};
use super::host::Host;
use super::moves;
use super::multicast::Joined;
use super::params::CmOptions;
use super::port::{Asked, Conn};
use crate::endpoint::{Destination, Done, Endpoint, EndpointCore, PathRequest, PortCore, ResolvedPath};
use crate::error::ResolveError;
use crate::net::NextHop;
use crate::net::WrongGid;
use crate::verbs::{Device, Pd, Qp, QpOptions};
use ::cm::ListenerId;
use engine::QpType;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;
use wire::Addressing;
use wire::mad::PortSpace;

/// A connection identifier, after `rdma_cm_id`. Clones are the same one; any thread may use it. The last handle destroys it, in
/// any state and without waiting for the network: its peer is told, its queue pair goes when nobody else has it.
#[derive(Clone)]
pub struct CmId {
    pub(super) inner: Arc<Inner>,
}

impl std::fmt::Debug for CmId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let place = self.inner.lock();
        f.debug_struct("CmId")
            .field("state", &place.state)
            .field("local", &place.local)
            .field("peer", &place.peer)
            .finish_non_exhaustive()
    }
}

/// Two handles are equal when they are handles of one identifier.
impl PartialEq for CmId {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.inner, &other.inner)
    }
}

impl Eq for CmId {}

/// Where an identifier is on its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Nothing was done with it.
    New,
    /// It has an address and a port.
    Bound,
    /// It waits for the address of its destination.
    Resolving,
    /// Its destination's address is known.
    AddrResolved,
    /// It waits for the way to its destination.
    Routing,
    /// The way to its destination is known.
    RouteResolved,
    /// It waits for its peer's answer.
    Connecting,
    /// A peer asked for it, and it waits for the application.
    Requested,
    /// Accepted, and it waits for the peer's last word.
    Accepted,
    /// The peer has accepted, and it waits for the application.
    Responded,
    /// Connected.
    Connected,
    /// It was connected, or could not be.
    Closed,
    /// It waits for peers.
    Listening,
}

impl std::fmt::Display for State {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            State::New => "new",
            State::Bound => "bound",
            State::Resolving => "waiting for the address of its destination",
            State::AddrResolved => "resolved",
            State::Routing => "waiting for the way to its destination",
            State::RouteResolved => "routed",
            State::Connecting => "waiting for its peer's answer",
            State::Requested => "waiting to be accepted or rejected",
            State::Accepted => "accepted",
            State::Responded => "waiting to be established",
            State::Connected => "connected",
            State::Closed => "closed",
            State::Listening => "listening",
        })
    }
}

/// Where to connect to: an address, for link-local ones with the name of a port as its scope, and a port number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CmAddr {
    /// The address.
    pub destination: Destination,
    /// The port.
    pub port: u16,
}

impl From<(IpAddr, u16)> for CmAddr {
    fn from((address, port): (IpAddr, u16)) -> Self {
        CmAddr { destination: address.into(), port }
    }
}

impl From<(Destination, u16)> for CmAddr {
    fn from((destination, port): (Destination, u16)) -> Self {
        CmAddr { destination, port }
    }
}

impl From<SocketAddr> for CmAddr {
    /// The scope of an IPv6 address counts the endpoint's ports from 1.
    fn from(at: SocketAddr) -> Self {
        let scope = match at {
            SocketAddr::V6(v6) if v6.scope_id() != 0 => Some(v6.scope_id().to_string()),
            _ => None,
        };
        CmAddr { destination: Destination { address: at.ip(), scope }, port: at.port() }
    }
}

/// What an identifier is.
pub(super) struct Inner {
    pub core: Arc<EndpointCore>,
    pub space: PortSpace,
    /// Unlike every other's of this process.
    pub key: u64,
    place: Mutex<Place>,
}

/// What changes of it.
pub(super) struct Place {
    pub state: State,
    pub channel: Weak<Channel>,
    pub options: CmOptions,
    pub local: Option<SocketAddr>,
    pub peer: Option<SocketAddr>,
    /// The port it is bound to, by the endpoint's count.
    pub port: Option<usize>,
    pub path: Option<ResolvedPath>,
    pub qp: Option<Qp>,
    pub conn: Option<Conn>,
    /// Passive: what the peer asked for.
    pub asked: Option<Box<Asked>>,
    pub listens: Vec<(usize, ListenerId)>,
    pub groups: Vec<Joined>,
    /// Its address was taken from the port, and it knows.
    pub lost: bool,
}

static KEYS: AtomicU64 = AtomicU64::new(1);

impl Inner {
    pub fn lock(&self) -> MutexGuard<'_, Place> {
        self.place.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn host(&self) -> &Arc<Host> {
        self.core.host()
    }

    /// Reports an event, unless the channel is gone.
    pub fn report(self: &Arc<Inner>, kind: CmEventKind) {
        let channel = self.lock().channel.upgrade();
        if let Some(channel) = channel {
            channel.push(Queued::of(self, kind));
        }
    }
}

impl Place {
    /// Refuses a call that belongs elsewhere.
    pub fn expect(&self, call: &'static str, states: &[State], wanted: &'static str) -> Result<(), CmError> {
        if states.contains(&self.state) {
            Ok(())
        } else {
            Err(CmError::State { call, wanted, is: self.state })
        }
    }
}

impl Endpoint {
    /// A new identifier that reports to a channel, after `rdma_create_id`. [`PortSpace::Tcp`] is for connections,
    /// [`PortSpace::Udp`] for datagrams.
    pub fn create_id(&self, channel: &EventChannel, space: PortSpace) -> CmId {
        CmId::create(&self.core, Arc::downgrade(&channel.shared), space, State::New)
    }
}

impl CmId {
    pub(super) fn create(
        core: &Arc<EndpointCore>,
        channel: Weak<Channel>,
        space: PortSpace,
        state: State,
    ) -> CmId {
        if let Some(channel) = channel.upgrade() {
            channel.serve(core.host());
        }
        let place = Place {
            state,
            channel,
            options: CmOptions::default(),
            local: None,
            peer: None,
            port: None,
            path: None,
            qp: None,
            conn: None,
            asked: None,
            listens: Vec::new(),
            groups: Vec::new(),
            lost: false,
        };
        let key = KEYS.fetch_add(1, Ordering::Relaxed);
        let inner = Arc::new(Inner { core: Arc::clone(core), space, key, place: Mutex::new(place) });
        core.host().registry.add(&inner);
        CmId { inner }
    }

    /// Its port space.
    pub fn port_space(&self) -> PortSpace {
        self.inner.space
    }

    /// Where it is on its way.
    pub fn state(&self) -> State {
        self.inner.lock().state
    }

    /// Its own address and port.
    pub fn local_addr(&self) -> Option<SocketAddr> {
        self.inner.lock().local
    }

    /// Its peer's.
    pub fn peer_addr(&self) -> Option<SocketAddr> {
        self.inner.lock().peer
    }

    /// The device that it is bound to.
    pub fn device(&self) -> Option<Device> {
        let index = self.inner.lock().port?;
        let port = self.inner.host().ports.get(index)?;
        Some(Device::new(Arc::clone(port), Arc::clone(&self.inner.core)))
    }

    /// Index of its GID in the device's table, and the headers of its path.
    pub fn path(&self) -> Option<ResolvedPath> {
        self.inner.lock().path
    }

    /// Its queue pair.
    pub fn qp(&self) -> Option<Qp> {
        self.inner.lock().qp.clone()
    }

    /// Its options. Identifiers of connect requests begin with their listener's.
    pub fn options(&self) -> CmOptions {
        self.inner.lock().options.clone()
    }

    /// Changes its options, after `rdma_set_option`: for what it sends from now on.
    pub fn set_options(&self, options: CmOptions) -> Result<(), CmError> {
        let limit = |what, given: u64, most: u64| {
            if given > most { Err(CmError::OutOfRange { what, given, most }) } else { Ok(()) }
        };
        limit("the ACK timeout code", options.ack_timeout.into(), 31)?;
        limit("the RNR timer code", options.min_rnr_timer.into(), 31)?;
        limit("retries", options.retries.into(), 15)?;
        let mut place = self.inner.lock();
        if let (Some(Conn::Connection(conn)), Ok(port)) = (place.conn, self.inner.port(&place)) {
            port.cm_set_timing(conn, options.timing());
        }
        place.options = options;
        Ok(())
    }

    /// Binds it to an address and port of this endpoint, after `rdma_bind_addr`. Port 0 chooses a free one; the unspecified
    /// address stands for all, until a destination is resolved.
    pub fn bind(&self, at: SocketAddr) -> Result<(), CmError> {
        let mut place = self.inner.lock();
        place.expect("bind", &[State::New], "new")?;
        self.inner.bind(&mut place, at)?;
        place.state = State::Bound;
        Ok(())
    }

    /// Resolves the address of a destination, after `rdma_resolve_addr`; an
    /// [`AddrResolved`](CmEventKind::AddrResolved) or [`AddrError`](CmEventKind::AddrError) event follows, within `timeout`. Binds
    /// the identifier to `from`, or to whichever address leads there.
    pub fn resolve_addr(
        &self,
        from: Option<IpAddr>,
        to: impl Into<CmAddr>,
        timeout: Duration,
    ) -> Result<(), CmError> {
        let to = to.into();
        let mut place = self.inner.lock();
        place.expect("resolve_addr", &[State::New, State::Bound], "new or bound")?;
        if let Some(from) = from.filter(|_| place.state == State::New) {
            self.inner.bind(&mut place, SocketAddr::new(from, 0))?;
        }
        let before = std::mem::replace(&mut place.state, State::Resolving);
        place.peer = Some(SocketAddr::new(to.destination.address.to_canonical(), to.port));
        let bound = (place.local.map(|at| at.ip()).filter(|own| !own.is_unspecified()), place.port);
        drop(place);
        match self.inner.start_resolving(&to, bound, timeout) {
            // The network has not been asked, so nothing is different.
            Err(why) if matches!(why, ResolveError::Busy(_)) => {
                self.inner.lock().state = before;
                Err(why.into())
            }
            Err(why) => {
                self.inner.finish_resolving(Err(why));
                Ok(())
            }
            Ok(()) => Ok(()),
        }
    }

    /// Finds the way to the resolved destination, after `rdma_resolve_route`; a
    /// [`RouteResolved`](CmEventKind::RouteResolved) or [`RouteError`](CmEventKind::RouteError) event follows, within `timeout`. On
    /// RoCE the address leads there, so the link is asked only if the next hop was lost since.
    pub fn resolve_route(&self, timeout: Duration) -> Result<(), CmError> {
        let inner = &self.inner;
        let mut place = inner.lock();
        place.expect("resolve_route", &[State::AddrResolved], "resolved")?;
        let (port, Some(known)) = (Arc::clone(inner.port(&place)?), place.path) else {
            return Err(CmError::NoQp);
        };
        place.state = State::Routing;
        drop(place);
        match port.resolve_again(known, timeout, inner.tell_later(Inner::finish_routing)) {
            Err(ResolveError::Busy(most)) => {
                inner.lock().state = State::AddrResolved;
                Err(ResolveError::Busy(most).into())
            }
            known => {
                known.transpose().into_iter().for_each(|found| inner.finish_routing(found));
                Ok(())
            }
        }
    }

    /// Makes a queue pair for it, after `rdma_create_qp`: INIT for connections, so that receives may be posted; ready to send for
    /// datagrams. The identifier has to be bound to a device: see [`device`](Self::device).
    pub fn create_qp(&self, pd: &Pd, options: &QpOptions) -> Result<Qp, CmError> {
        if self.inner.lock().qp.is_some() {
            return Err(CmError::HasQp);
        }
        let qp = pd.create_qp(options)?;
        self.attach_qp(&qp)?;
        Ok(qp)
    }

    /// Attaches a queue pair that exists, and makes it ready as [`create_qp`](Self::create_qp) does if it is in RESET.
    pub fn attach_qp(&self, qp: &Qp) -> Result<(), CmError> {
        self.check_qp(qp)?;
        let options = self.options();
        moves::attach(qp, &options)?;
        let mut place = self.inner.lock();
        if place.qp.is_some() {
            return Err(CmError::HasQp);
        }
        place.qp = Some(qp.clone());
        Ok(())
    }

    /// Lets go of its queue pair, after `rdma_destroy_qp`: it is destroyed when nobody else has it.
    pub fn destroy_qp(&self) {
        let qp = self.inner.lock().qp.take();
        drop(qp);
    }

    /// Has it report to another channel from now on, after `rdma_migrate_id`. What waits to be read comes along.
    pub fn migrate(&self, channel: &EventChannel) {
        channel.shared.serve(self.inner.host());
        // Under its lock, so that nothing is reported to the old channel behind what was moved.
        let mut place = self.inner.lock();
        if let Some(old) = place.channel.upgrade() {
            for event in old.take_of(self) {
                channel.shared.push(event);
            }
        }
        place.channel = Arc::downgrade(&channel.shared);
    }

    fn check_qp(&self, qp: &Qp) -> Result<(), CmError> {
        let place = self.inner.lock();
        let index = place.port.ok_or(CmError::State {
            call: "attach_qp",
            wanted: "bound to a device",
            is: place.state,
        })?;
        if place.qp.is_some() {
            return Err(CmError::HasQp);
        }
        let ours = self.inner.host().ports.get(index);
        if !ours.is_some_and(|port| Arc::ptr_eq(port, &qp.pd().device().port)) {
            return Err(CmError::OtherDevice);
        }
        let (fits, remedy) = match self.inner.space {
            PortSpace::Udp | PortSpace::Ipoib => (qp.qp_type() == QpType::Ud, "make one of type Ud"),
            PortSpace::Tcp => (qp.qp_type() == QpType::Rc, "make one of type Rc"),
            PortSpace::Ib => (matches!(qp.qp_type(), QpType::Rc | QpType::Uc), "make one of type Rc or Uc"),
        };
        if fits { Ok(()) } else { Err(CmError::QpType { qp_type: qp.qp_type(), remedy }) }
    }
}

impl Inner {
    /// Notes an address and port as its own.
    pub fn bind(&self, place: &mut Place, at: SocketAddr) -> Result<(), CmError> {
        let at = SocketAddr::new(at.ip().to_canonical(), at.port());
        let host = self.host();
        let port = match at.ip() {
            any if any.is_unspecified() => None,
            own => Some(host.port_of(own).ok_or(CmError::NoSuchAddress(own))?),
        };
        let number = host.bindings().bind(self.space, at, self.key, place.options.reuse_addr)?;
        place.local = Some(SocketAddr::new(at.ip(), number));
        place.port = port;
        Ok(())
    }

    fn start_resolving(
        self: &Arc<Inner>,
        to: &CmAddr,
        (from, bound): (Option<IpAddr>, Option<usize>),
        timeout: Duration,
    ) -> Result<(), ResolveError> {
        let (index, port) = self.host().port_towards(&to.destination, bound)?;
        // A number stands for the port; a name may be that of a VLAN on it.
        let name =
            |scope: &String| if port.has_link(scope) { scope.clone() } else { port.facts.name.clone() };
        let scope = to.destination.scope.as_ref().map(name);
        let sgid_index = from.map(|own| port.own_index(own, scope.as_deref())).transpose()?;
        let request = PathRequest {
            destination: Destination { address: to.destination.address, scope },
            sgid_index,
            gid_type: None,
            timeout: Some(timeout),
        };
        self.lock().port = Some(index);
        if let Some(known) = port.resolve_then(request, self.tell_later(Inner::finish_resolving)) {
            self.finish_resolving(Ok(known?));
        }
        Ok(())
    }

    /// Has a result told to the identifier, if it is there then.
    fn tell_later(self: &Arc<Inner>, tell: fn(&Arc<Inner>, Result<ResolvedPath, ResolveError>)) -> Done {
        let waiter = Arc::downgrade(self);
        Box::new(move |result| {
            if let Some(id) = waiter.upgrade() {
                tell(&id, result);
            }
        })
    }

    fn finish_routing(self: &Arc<Inner>, result: Result<ResolvedPath, ResolveError>) {
        let mut place = self.lock();
        if place.state != State::Routing {
            return;
        }
        let (state, kind) = match result {
            Ok(path) => {
                // The class of its options stays.
                let class =
                    place.path.map_or(path.addressing.traffic_class, |old| old.addressing.traffic_class);
                let addressing = Addressing { traffic_class: class, ..path.addressing };
                place.path = Some(ResolvedPath { addressing, ..path });
                (State::RouteResolved, CmEventKind::RouteResolved)
            }
            Err(why) => (State::AddrResolved, CmEventKind::RouteError(why)),
        };
        place.state = state;
        drop(place);
        self.report(kind);
    }

    fn finish_resolving(self: &Arc<Inner>, result: Result<ResolvedPath, ResolveError>) {
        let mut place = self.lock();
        if place.state != State::Resolving {
            return;
        }
        let kind =
            match result.map_err(Some).and_then(|path| self.settle(&mut place, path)) {
                Ok(()) => {
                    place.state = State::AddrResolved;
                    CmEventKind::AddrResolved
                }
                Err(why) => {
                    place.state = if place.local.is_some() { State::Bound } else { State::New };
                    let destination = place.peer.map_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED), |peer| peer.ip());
                    CmEventKind::AddrError(why.unwrap_or(
                        WrongGid::Route { destination, why: crate::net::RouteError::NoSource }.into(),
                    ))
                }
            };
        drop(place);
        self.report(kind);
    }

    /// The way is known: the identifier's own address is the one that it leads from.
    fn settle(&self, place: &mut Place, mut path: ResolvedPath) -> Result<(), Option<ResolveError>> {
        let own = path.addressing.src.ip();
        match place.local {
            None => {
                let at = SocketAddr::new(own, 0);
                let number =
                    self.host().bindings().bind(self.space, at, self.key, false).map_err(|_| None)?;
                place.local = Some(SocketAddr::new(own, number));
            }
            Some(local) => place.local = Some(SocketAddr::new(own, local.port())),
        }
        if let Some(class) = place.options.traffic_class {
            path.addressing.traffic_class = class;
        }
        place.path = Some(path);
        Ok(())
    }
}

impl Drop for Inner {
    /// Without waiting for anybody but the worker that has the queue pair.
    fn drop(&mut self) {
        let place = self.place.get_mut().unwrap_or_else(PoisonError::into_inner);
        let (local, port) = (place.local, place.port);
        let (conn, listens) = (place.conn.take(), std::mem::take(&mut place.listens));
        let (qp, groups) = (place.qp.take(), std::mem::take(&mut place.groups));
        let host = self.core.host();
        host.registry.remove(self.key);
        let port_core = |index: usize| -> Option<&Arc<PortCore>> { host.ports.get(index) };
        for (index, listener) in listens {
            port_core(index).into_iter().for_each(|port| port.cm_unlisten(listener));
        }
        if let (Some(conn), Some(port)) = (conn, port.and_then(port_core)) {
            port.cm_destroy(conn);
        }
        if let Some(at) = local {
            host.bindings().release(self.space, at.port(), self.key);
        }
        if let Some(qp) = qp {
            for Joined { vlan, group } in groups {
                let _ = qp.detach_mcast_on(vlan, group);
            }
        }
    }
}

/// How good a way is: on the link before behind a gateway.
pub(super) fn rank(hop: &NextHop, destination: IpAddr) -> u8 {
    match hop {
        NextHop::Local => 0,
        NextHop::Neighbour(station) if *station == destination => 1,
        NextHop::Group(_) => 1,
        NextHop::Neighbour(_) => 2,
    }
}
