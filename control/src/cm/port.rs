//! Connection management of one port: the state machines of [`::cm::Cm`] between queue pair 1 and identifiers.
//!
//! The state machines and who belongs to which connection lie behind one lock, the *book*. Whoever visits takes what came
//! under that lock, and does what follows for identifiers and queue pairs after it, one visitor at a time, so that events keep
//! their order.

use super::connecting;
use super::error::{CmError, Unreachable};
use super::event::{CmEventKind, Queued};
use super::id::{CmId, Inner, State};
use super::params::ConnParam;
use super::registry::News;
use super::ways::{self, Ways};
use crate::endpoint::{PathRequest, PortCore, PortFacts, ResolvedPath};
use ::cm::{
    Cm, Config, ConnId, DropReason, Event, ListenerId, Path, QpPlan, RepParams, ReqParams, SidrId,
    SidrRepParams, SidrReqParams, Timing,
};
use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError, Weak};
use wire::mad::{IpAddressing, MessageKind, RejectReason, ServiceId, SidrStatus};
use wire::{Addressing, Gid, Mac, Qpn};
use worker::Whom;

/// Connection management of a port.
pub(crate) struct PortCm {
    /// What identifiers have to be told of.
    pub news: News,
    book: Mutex<Book>,
    visitor: Mutex<()>,
}

/// The state machines, and whose is what.
pub(super) struct Book {
    pub cm: Cm,
    ids: HashMap<Conn, Weak<Inner>>,
    /// Queue pairs of passive connections that are not established: data establishes them.
    unheard: HashMap<Qpn, ConnId>,
    listeners: HashMap<ListenerId, Weak<Inner>>,
    ways: Ways,
    /// What calls of applications led to: the next visitor's.
    waiting: Vec<Job>,
}

/// What an identifier is in the book.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Conn {
    /// A connection.
    Connection(ConnId),
    /// A question for a queue pair of datagrams.
    Question(SidrId),
}

/// Somebody asks.
struct Request<'a> {
    conn: Conn,
    listener: ListenerId,
    service: ServiceId,
    /// Addresses, then the application's.
    private_data: &'a [u8],
    /// What is asked for, the application's data left out.
    param: ConnParam,
}

/// Why nobody is told of a request.
enum Refusal {
    /// Its addresses are not those that it came with.
    Addresses,
    /// The listener is gone.
    NobodyListens,
}

/// What a peer asked for.
#[derive(Clone, Debug)]
pub(super) struct Asked {
    pub param: ConnParam,
    /// How packets get to the peer.
    pub way: Addressing,
}

/// An event, and the way to whoever caused it.
struct Job {
    event: Event,
    back: Option<Addressing>,
}

impl PortCm {
    pub fn new(facts: &PortFacts) -> PortCm {
        let config = Config { mtu: facts.path_mtu, ..Config::new(guid(facts), rand::random()) };
        let book = Book {
            cm: Cm::new(config),
            ids: HashMap::new(),
            unheard: HashMap::new(),
            listeners: HashMap::new(),
            ways: Ways::default(),
            waiting: Vec::new(),
        };
        PortCm { news: News::default(), book: Mutex::new(book), visitor: Mutex::new(()) }
    }

    pub(super) fn book(&self) -> MutexGuard<'_, Book> {
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// All counters, by name.
    pub fn counters(&self) -> Vec<(String, u64)> {
        let book = self.book();
        let counted = book.cm.counters();
        let kind = |kind: &MessageKind| format!("{kind:?}").to_lowercase();
        let received =
            MessageKind::ALL.iter().map(|of| (format!("cm_rx_{}", kind(of)), counted.received(*of)));
        let sent = MessageKind::ALL.iter().map(|of| (format!("cm_tx_{}", kind(of)), counted.sent(*of)));
        let dropped = DropReason::ALL.iter().map(|of| (of.label().to_owned(), counted.dropped(*of)));
        let others = [
            ("cm_retries", counted.retries),
            ("cm_refused_full", counted.refused_full),
            ("cm_timewait_cut", counted.timewait_cut),
            ("cm_ids", book.ids.len() as u64),
        ];
        let others = others.into_iter().map(|(name, value)| (name.to_owned(), value));
        received.chain(sent).chain(dropped).chain(others).collect()
    }
}

/// rocev2 facts, CM 14: non-zero, stable, unique to the node. Made of the port's MAC as an interface identifier is.
fn guid(facts: &PortFacts) -> u64 {
    u64::from_be_bytes(*Gid::link_local(facts.mac).0.last_chunk().unwrap_or(&[1; 8]))
}

/// The path of connection management that headers stand for: a VLAN is a link of its own.
pub(super) fn path_of(way: &Addressing) -> Path {
    Path {
        local: way.src,
        remote: way.dst,
        scope: way.link_vlan().map_or(0, u32::from),
        traffic_class: way.traffic_class,
        flow_label: way.flow_label,
        hop_limit: way.hop_limit,
        sl: way.vlan.map_or(0, |tag| tag.pcp),
    }
}

impl PortCore {
    /// One visit: what came for queue pair 1, timers, and what follows from both. True when there was something. `index` is the
    /// port's place in its endpoint. While another thread visits, nothing is done.
    pub fn visit_cm(self: &Arc<PortCore>, index: usize) -> bool {
        let _visiting = match self.cm.visitor.try_lock() {
            Ok(visiting) => visiting,
            Err(TryLockError::Poisoned(visiting)) => visiting.into_inner(),
            Err(TryLockError::WouldBlock) => return false,
        };
        let mut messages = Vec::new();
        let mut busy = self.visit_gsi(&mut messages);
        let now = self.clock.now_ns();
        let mut book = self.cm.book();
        let mut jobs = std::mem::take(&mut book.waiting);
        for received in &messages {
            book.cm.on_mad(now, &path_of(&received.back), &received.mad);
            self.drain(&mut book, Some(&received.back), &mut jobs);
        }
        if book.cm.next_timeout().is_some_and(|due| due <= now) {
            book.cm.on_timeout(now);
        }
        self.drain(&mut book, None, &mut jobs);
        drop(book);
        busy |= !jobs.is_empty();
        for job in jobs {
            self.follow(index, job);
        }
        busy
    }

    /// Takes what the state machines have to send and to say.
    fn drain(&self, book: &mut Book, back: Option<&Addressing>, jobs: &mut Vec<Job>) {
        self.send_cm(book, back);
        while let Some(event) = book.cm.poll_event() {
            jobs.push(Job { event, back: back.copied() });
        }
    }

    fn send_cm(&self, book: &mut Book, back: Option<&Addressing>) {
        while let Some(transmit) = book.cm.poll_transmit() {
            let answer = back.filter(|back| path_of(back).same_ends(&transmit.path));
            let way = answer
                .copied()
                .or_else(|| book.ways.get(&transmit.path))
                .or_else(|| self.look_up(&transmit.path));
            // Where nobody knows the way it is lost, as on any link; the link is being asked meanwhile.
            if let Some(way) = way {
                let Path { traffic_class, flow_label, .. } = transmit.path;
                self.send_mad(&Addressing { traffic_class, flow_label, ..way }, &transmit.mad);
            }
        }
    }

    fn look_up(&self, path: &Path) -> Option<Addressing> {
        let vlan = u16::try_from(path.scope).ok().filter(|&vid| vid != 0);
        let sgid_index = self.network.lock().gids().index_of_link(path.local, vlan)?;
        let request = PathRequest { sgid_index: Some(sgid_index), ..PathRequest::to(path.remote.ip()) };
        let found = self.try_resolve(&request)?.ok()?;
        Some(Addressing { udp_sport: wire::udp_sport_of_qpn(Qpn::GSI), ..found.addressing })
    }

    /// A call of an application: under the book, then out with what follows. Events, which few calls lead to, are the next
    /// visitor's.
    fn call<T>(&self, with: impl FnOnce(&mut Book, u64) -> Result<T, ::cm::CmError>) -> Result<T, CmError> {
        let now = self.clock.now_ns();
        let mut book = self.cm.book();
        let result = with(&mut book, now);
        let mut jobs = std::mem::take(&mut book.waiting);
        self.drain(&mut book, None, &mut jobs);
        let quiet = jobs.is_empty();
        book.waiting = jobs;
        drop(book);
        if !quiet {
            self.link.slow_waker().wake();
        }
        result.map_err(CmError::from)
    }

    /// Listens for a service at an address of this port, or with the unspecified one at all.
    pub(super) fn cm_listen(
        &self,
        service: ServiceId,
        id: &Arc<Inner>,
        address: IpAddr,
        backlog: usize,
    ) -> Result<ListenerId, CmError> {
        let at = (!address.is_unspecified()).then(|| (Gid::from(address), self.scope_of(address)));
        self.call(|book, _| {
            let listener = book.cm.listen(service, at, backlog)?;
            book.listeners.insert(listener, Arc::downgrade(id));
            Ok(listener)
        })
    }

    pub(super) fn cm_unlisten(&self, listener: ListenerId) {
        let _ = self.call(|book, _| {
            book.listeners.remove(&listener);
            book.cm.unlisten(listener)
        });
    }

    /// The link of an address: its VLAN.
    fn scope_of(&self, own: IpAddr) -> u32 {
        let stack = self.network.lock();
        let entry = stack.gids().index_of_address(own).and_then(|index| stack.gids().get(index));
        entry.map_or(self.facts.vlan, |entry| entry.vlan).map_or(0, u32::from)
    }

    pub(super) fn cm_connect(
        &self,
        id: &Arc<Inner>,
        way: &Addressing,
        request: ReqParams,
    ) -> Result<Conn, CmError> {
        self.call(|book, now| {
            book.ways.learn(now, &request.path, way);
            let conn = Conn::Connection(book.cm.send_req(now, &request)?);
            book.ids.insert(conn, Arc::downgrade(id));
            Ok(conn)
        })
    }

    /// Asks for the queue pair of a datagram service.
    pub(super) fn cm_ask(
        &self,
        id: &Arc<Inner>,
        way: &Addressing,
        question: SidrReqParams,
    ) -> Result<Conn, CmError> {
        self.call(|book, now| {
            book.ways.learn(now, &question.path, way);
            let conn = Conn::Question(book.cm.send_sidr_req(now, &question)?);
            book.ids.insert(conn, Arc::downgrade(id));
            Ok(conn)
        })
    }

    /// Answers such a question, which is over then.
    pub(super) fn cm_tell(&self, question: SidrId, answer: &SidrRepParams) -> Result<(), CmError> {
        self.call(|book, now| {
            book.cm.send_sidr_rep(now, question, answer)?;
            book.ids.remove(&Conn::Question(question));
            Ok(())
        })
    }

    /// What the queue pair of a passive side has to be set to before the reply leaves.
    pub(super) fn cm_plan_accept(&self, conn: ConnId, answer: &RepParams) -> Result<QpPlan, CmError> {
        self.cm.book().cm.plan_accept(conn, answer).map_err(CmError::from)
    }

    pub(super) fn cm_accept(&self, conn: ConnId, answer: RepParams, timing: Timing) -> Result<(), CmError> {
        self.call(|book, now| {
            let qpn = answer.qpn;
            book.cm.set_timing(conn, timing)?;
            book.cm.send_rep(now, conn, &answer)?;
            book.unheard.insert(qpn, conn);
            Ok(())
        })
    }

    /// For what a connection has to say from now on, if it is there.
    pub(super) fn cm_set_timing(&self, conn: ConnId, timing: Timing) {
        let _ = self.call(|book, _| book.cm.set_timing(conn, timing));
    }

    pub(super) fn cm_ready(&self, conn: ConnId) -> Result<(), CmError> {
        self.call(|book, now| book.cm.send_rtu(now, conn, &[]))
    }

    pub(super) fn cm_establish(&self, conn: ConnId) -> Result<(), CmError> {
        self.call(|book, now| book.cm.establish(now, conn))
    }

    /// A connection that is gone meanwhile needs no rejecting.
    pub(super) fn cm_reject(&self, conn: ConnId, reason: RejectReason, private_data: &[u8]) {
        let _ = self.call(|book, now| book.cm.send_rej(now, conn, reason, &[], private_data));
    }

    /// Nor any closing.
    pub(super) fn cm_disconnect(&self, conn: ConnId) {
        let _ = self.call(|book, now| book.cm.send_dreq(now, conn, &[]));
    }

    pub(super) fn cm_destroy(&self, conn: Conn) {
        let _ = self.call(|book, now| {
            book.ids.remove(&conn);
            match conn {
                Conn::Connection(conn) => {
                    book.unheard.retain(|_, of| *of != conn);
                    book.cm.destroy(now, conn);
                }
                Conn::Question(question) => book.cm.destroy_sidr(now, question),
            }
            Ok(())
        });
    }

    /// A next hop has moved to another MAC: what is under way is turned, and the queue pairs that it leads to are moved by the new
    /// one. Those of connections that are there already are turned by the workers.
    pub fn cm_redirect(&self, whom: &Whom, from: Mac, to: Mac) {
        let mut book = self.cm.book();
        book.ways.redirect(whom, from, to);
        let ids: Vec<Arc<Inner>> = book.ids.values().filter_map(Weak::upgrade).collect();
        // Without the lock: an identifier's own is taken before it, and one of these may be the last handle.
        drop(book);
        for id in ids {
            let mut guard = id.lock();
            let place = &mut *guard;
            let asked = place.asked.as_mut().map(|asked| &mut asked.way);
            let resolved = place.path.as_mut().map(|path| &mut path.addressing);
            asked.into_iter().chain(resolved).for_each(|way| ways::turn(way, whom, from, to));
        }
    }

    /// A queue pair has received its first packet: rocev2 facts, CM 11, data establishes.
    pub fn cm_heard(&self, qpn: Qpn) {
        let conn = self.cm.book().unheard.remove(&qpn);
        if let Some(conn) = conn {
            // It may be established by now, or over.
            let _ = self.cm_establish(conn);
        }
    }

    /// What an event means for its identifier.
    fn follow(self: &Arc<PortCore>, index: usize, job: Job) {
        let Job { event, back } = job;
        match event {
            Event::ReqReceived { conn, listener, path, req } => {
                let private_data = req.private_data.bytes();
                let (service, param) = (req.service_id, connecting::asked(&req));
                let request =
                    Request { conn: Conn::Connection(conn), listener, service, private_data, param };
                if let Err(why) = self.on_request(index, back.or_else(|| self.look_up(&path)), request) {
                    self.cm_reject(conn, why.reason(), &[]);
                }
            }
            Event::SidrReqReceived { sidr, listener, path, req } => {
                let private_data = req.private_data.bytes();
                let (service, param) = (req.service_id, ConnParam::default());
                let request = Request { conn: Conn::Question(sidr), listener, service, private_data, param };
                if let Err(why) = self.on_request(index, back.or_else(|| self.look_up(&path)), request) {
                    let _ = self.cm_tell(sidr, &connecting::refusal(why.status(), &[]));
                }
            }
            event => self.tell(event),
        }
    }

    /// Tells an identifier of an event of its connection, or question.
    fn tell(self: &Arc<PortCore>, event: Event) {
        let conn = match (event.conn(), event.sidr()) {
            (Some(conn), _) => Conn::Connection(conn),
            (None, Some(question)) => Conn::Question(question),
            (None, None) => return,
        };
        let Some((id, plan)) = self.entry(conn, &event) else { return };
        match event {
            Event::RepReceived { conn, rep } => id.on_response(self, conn, &rep, plan),
            Event::Established { .. } => id.on_established(),
            Event::Rejected { rej, .. } => id.on_rejected(rej.reason, rej.private_data.bytes().to_vec()),
            Event::Unreachable { .. } | Event::SidrUnreachable { .. } => {
                id.on_unreachable(Unreachable::Timeout)
            }
            Event::Expired { .. } | Event::SidrExpired { .. } => id.on_unreachable(Unreachable::Expired),
            Event::Disconnected { .. } => id.on_disconnected(),
            Event::TimewaitExit { .. } => id.report(CmEventKind::TimewaitExit),
            Event::SidrRepReceived { rep, .. } => id.on_told(&rep),
            // Those that ask are not here, and a peer that takes its time is waited for.
            Event::ReqReceived { .. } | Event::SidrReqReceived { .. } | Event::MraReceived { .. } => {}
        }
    }

    /// Whose a connection is, with what to set its queue pair to if it has been accepted. What is over leaves the book.
    fn entry(&self, conn: Conn, event: &Event) -> Option<(Arc<Inner>, Option<QpPlan>)> {
        let mut book = self.cm.book();
        let plan = match event {
            Event::RepReceived { conn, .. } => book.cm.plan(*conn).ok(),
            _ => None,
        };
        let is_over = matches!(event, Event::TimewaitExit { .. }) || event.sidr().is_some();
        let id = if is_over { book.ids.remove(&conn) } else { book.ids.get(&conn).cloned() };
        if !matches!(event, Event::RepReceived { .. } | Event::MraReceived { .. }) {
            book.unheard.retain(|_, of| Conn::Connection(*of) != conn);
        }
        // Without the lock: this may turn out to be the last handle.
        drop(book);
        Some((id?.upgrade()?, plan))
    }

    /// Somebody asks: a new identifier is told to who listens.
    fn on_request(
        self: &Arc<PortCore>,
        index: usize,
        way: Option<Addressing>,
        request: Request<'_>,
    ) -> Result<(), Refusal> {
        let Request { conn, listener, service, private_data, mut param } = request;
        let (header, own) = private_data.split_at_checked(IpAddressing::LEN).ok_or(Refusal::Addresses)?;
        let way = way.ok_or(Refusal::Addresses)?;
        let addresses = check_addresses(header, &way).ok_or(Refusal::Addresses)?;
        let known = self.cm.book().listeners.get(&listener).cloned();
        let listener = known.and_then(|id| id.upgrade()).ok_or(Refusal::NobodyListens)?;
        param.private_data = own.to_vec();
        let (channel, options) = {
            let place = listener.lock();
            (place.channel.clone(), place.options.clone())
        };
        let id = CmId::create(&listener.core, channel.clone(), listener.space, State::Requested);
        let gid_index = self.network.lock().gids().index_on(way.src, way.version, way.link_vlan());
        {
            let mut place = id.inner.lock();
            place.options = options;
            place.port = Some(index);
            place.local = Some(SocketAddr::new(addresses.destination, service.port().unwrap_or(0)));
            place.peer = Some(SocketAddr::new(addresses.source, addresses.source_port));
            place.conn = Some(conn);
            place.asked = Some(Box::new(Asked { param: param.clone(), way }));
            place.path = gid_index.map(|gid_index| ResolvedPath {
                gid_index,
                addressing: Addressing { udp_sport: 0, ..way },
                path_mtu: self.facts.path_mtu,
            });
        }
        {
            let mut book = self.cm.book();
            book.ways.learn(self.clock.now_ns(), &path_of(&way), &way);
            book.ids.insert(conn, Arc::downgrade(&id.inner));
        }
        // Without a channel nobody can accept it: the identifier goes, and the peer is told.
        if let Some(channel) = channel.upgrade() {
            channel.push(Queued::request(id, &listener, CmEventKind::ConnectRequest { param }));
        }
        Ok(())
    }
}

impl Refusal {
    fn reason(&self) -> RejectReason {
        match self {
            Refusal::Addresses => RejectReason::CONSUMER_DEFINED,
            Refusal::NobodyListens => RejectReason::INVALID_SERVICE_ID,
        }
    }

    fn status(&self) -> SidrStatus {
        match self {
            Refusal::Addresses => SidrStatus::REJECTED,
            Refusal::NobodyListens => SidrStatus::UNSUPPORTED,
        }
    }
}

/// rocev2 facts, CM 5: the destination is the address that the message came to, and the source one that a peer can have.
fn check_addresses(header: &[u8], way: &Addressing) -> Option<IpAddressing> {
    let addresses = IpAddressing::parse(header).ok()?;
    let source = addresses.source.to_canonical();
    let bad = source.is_unspecified() || source.is_loopback() || source.is_multicast();
    let broadcast = source == IpAddr::from([255; 4]);
    let ours = Gid::from(addresses.destination) == way.src;
    (ours && !bad && !broadcast).then_some(addresses)
}
