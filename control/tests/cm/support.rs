//! Two endpoints that connect by connection management.

use rockhopper::cm::{CmAddr, CmEvent, CmEventKind, CmId, ConnParam, EventChannel, PortSpace};
use rockhopper::{Access, Cq, Endpoint, Mr, Pd, Qp, QpOptions, QpType, RecvWr, RingPair, SendWr};
use std::net::{IpAddr, SocketAddr};
use std::time::{Duration, Instant};

/// Longer than anything here takes.
pub const SOON: Duration = Duration::from_secs(10);

/// The passive end's address.
pub const SERVER: &str = "10.82.72.2";

pub fn at(text: &str, port: u16) -> SocketAddr {
    SocketAddr::new(text.parse().unwrap(), port)
}

/// Client and server, joined back to back.
pub fn pair() -> (Endpoint, Endpoint) {
    pair_over(&RingPair::default())
}

pub fn pair_over(settings: &RingPair) -> (Endpoint, Endpoint) {
    Endpoint::ring_pair(settings).unwrap()
}

/// An identifier with a channel of its own and what a queue pair needs.
pub struct End {
    pub channel: EventChannel,
    pub id: CmId,
    pub pd: Option<Pd>,
    pub cq: Option<Cq>,
    pub mr: Option<Mr>,
}

impl End {
    pub fn new(endpoint: &Endpoint, space: PortSpace) -> End {
        let channel = EventChannel::new().unwrap();
        let id = endpoint.create_id(&channel, space);
        End { channel, id, pd: None, cq: None, mr: None }
    }

    /// One that listens at a port of an address.
    pub fn listening(endpoint: &Endpoint, space: PortSpace, at: SocketAddr) -> End {
        let end = End::new(endpoint, space);
        end.id.bind(at).unwrap();
        end.id.listen(16).unwrap();
        end
    }

    /// One with a queue pair, whose destination is resolved, and its route.
    pub fn resolved(endpoint: &Endpoint, space: PortSpace, to: SocketAddr) -> End {
        let end = End::towards(endpoint, space, None, to);
        end.id.resolve_route(SOON).unwrap();
        assert!(matches!(end.next(), CmEventKind::RouteResolved));
        end
    }

    /// One with a queue pair, whose destination is resolved from an address of ours or whichever leads there.
    #[track_caller]
    pub fn towards(
        endpoint: &Endpoint,
        space: PortSpace,
        from: Option<IpAddr>,
        to: impl Into<CmAddr>,
    ) -> End {
        let mut end = End::new(endpoint, space);
        end.id.resolve_addr(from, to, SOON).unwrap();
        match end.next() {
            CmEventKind::AddrResolved => end.equip(),
            other => panic!("{other:?}"),
        }
        end
    }

    /// Connects to a listener, which accepts: gives the passive end.
    #[track_caller]
    pub fn establish_with(&self, listener: &End) -> End {
        self.id.connect(&ConnParam::default()).unwrap();
        let (passive, _) = End::requested(listener);
        passive.id.accept(&ConnParam::default()).unwrap();
        self.expect_established();
        passive.expect_established();
        passive
    }

    /// Sends, to a receive that is posted for it.
    #[track_caller]
    pub fn transfer_to(&self, to: &End, text: &[u8]) {
        to.qp().post_recv(RecvWr::new(7).sge(to.mr().sge(0..64))).unwrap();
        self.qp().post_send(SendWr::send(8).inline(text)).unwrap();
        assert!(self.cq().wait(SOON).unwrap().is_success());
        assert_eq!(to.cq().wait(SOON).unwrap().byte_len as usize, text.len());
        let mut bytes = vec![0; text.len()];
        to.mr().read(0, &mut bytes).unwrap();
        assert_eq!(bytes, text);
    }

    /// The end of a connect request, with a queue pair.
    pub fn requested(listener: &End) -> (End, ConnParam) {
        let event = listener.event();
        let CmEventKind::ConnectRequest { param } = event.kind else { panic!("{event:?}") };
        assert_eq!(event.listen_id.as_ref(), Some(&listener.id));
        let channel = EventChannel::new().unwrap();
        event.id.migrate(&channel);
        let mut end = End { channel, id: event.id, pd: None, cq: None, mr: None };
        end.equip();
        (end, param)
    }

    pub fn equip(&mut self) {
        let device = self.id.device().unwrap();
        let pd = device.alloc_pd();
        let cq = device.create_cq(64).unwrap();
        let datagrams = self.id.port_space() == PortSpace::Udp;
        let qp_type = if datagrams { QpType::Ud } else { QpType::Rc };
        self.id.create_qp(&pd, &QpOptions::new(qp_type, &cq)).unwrap();
        self.mr =
            Some(pd.reg_mr(4096, Access::LOCAL_WRITE | Access::REMOTE_WRITE | Access::REMOTE_READ).unwrap());
        (self.pd, self.cq) = (Some(pd), Some(cq));
    }

    pub fn qp(&self) -> Qp {
        self.id.qp().unwrap()
    }

    pub fn cq(&self) -> &Cq {
        self.cq.as_ref().unwrap()
    }

    pub fn mr(&self) -> &Mr {
        self.mr.as_ref().unwrap()
    }

    /// The next event of the channel.
    #[track_caller]
    pub fn event(&self) -> CmEvent {
        self.channel.wait(SOON).expect("an event in time")
    }

    /// What happened next to the identifier.
    #[track_caller]
    pub fn next(&self) -> CmEventKind {
        let event = self.event();
        assert_eq!(event.id, self.id);
        event.kind
    }

    #[track_caller]
    pub fn expect_established(&self) -> ConnParam {
        match self.next() {
            CmEventKind::Established { param, .. } => param,
            other => panic!("{other:?}"),
        }
    }
}

/// A connection: active end, passive end, listener.
pub struct Connected {
    pub active: End,
    pub passive: End,
    pub listener: End,
}

/// Connects with defaults.
pub fn connected(client: &Endpoint, server: &Endpoint) -> Connected {
    let listener = End::listening(server, PortSpace::Tcp, at(SERVER, 0));
    let active = End::resolved(client, PortSpace::Tcp, listener.id.local_addr().unwrap());
    let passive = active.establish_with(&listener);
    Connected { active, passive, listener }
}

/// Waits until `done` says so.
#[track_caller]
pub fn until(what: &str, mut done: impl FnMut() -> bool) {
    let end = Instant::now() + SOON;
    while !done() {
        assert!(Instant::now() < end, "{what} did not happen in {SOON:?}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// A counter of connection management.
pub fn counted(endpoint: &Endpoint, name: &str) -> u64 {
    *endpoint.stats().ports[0].management.get(name).unwrap_or_else(|| panic!("no counter is called {name}"))
}
