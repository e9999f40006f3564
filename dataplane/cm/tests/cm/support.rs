//! Two ends that talk to each other, in virtual time, without losses unless a test takes messages away.

use cm::*;
use wire::mad::{CmMad, PortSpace, ServiceId};
use wire::{Gid, Mtu, Psn, Qpn};

pub const MS: u64 = 1_000_000;
pub const SERVICE: ServiceId = ServiceId::new(PortSpace::Tcp, 7471);
pub const A: Gid = Gid::from_v4([192, 0, 2, 1]);
pub const B: Gid = Gid::from_v4([192, 0, 2, 2]);
pub const A_GUID: u64 = 0x0200_00FF_FE00_000A;
pub const B_GUID: u64 = 0x0200_00FF_FE00_000B;

pub fn path(local: Gid, remote: Gid) -> Path {
    Path { local, remote, hop_limit: 64, ..Path::default() }
}

/// An end that nobody else sees.
pub struct End {
    pub cm: Cm,
    pub path: Path,
    pub now: u64,
}

impl End {
    pub fn with(config: Config, local: Gid, remote: Gid) -> End {
        End { cm: Cm::new(config), path: path(local, remote), now: 0 }
    }

    /// The one that asks.
    pub fn active() -> End {
        End::with(Config::new(A_GUID, [1; 32]), A, B)
    }

    /// The one that listens.
    pub fn passive() -> End {
        let mut end = End::with(Config::new(B_GUID, [2; 32]), B, A);
        end.cm.listen(SERVICE, None, 16).unwrap();
        end
    }

    pub fn req(&self) -> ReqParams {
        ReqParams::new(self.path, SERVICE, Qpn::new(0xA1), Psn::new(0x111), Mtu::Mtu1024)
    }

    pub fn ask(&mut self) -> ConnId {
        let params = self.req();
        self.cm.send_req(self.now, &params).unwrap()
    }

    /// Messages that go out, in order.
    pub fn sent(&mut self) -> Vec<CmMad> {
        std::iter::from_fn(|| self.cm.poll_transmit())
            .map(|transmit| CmMad::parse(&transmit.mad).expect("what we send can be read"))
            .collect()
    }

    /// The one message that goes out.
    #[track_caller]
    pub fn sent_one(&mut self) -> CmMad {
        let sent = self.sent();
        assert_eq!(sent.len(), 1, "{sent:?}");
        sent.into_iter().next().unwrap()
    }

    pub fn events(&mut self) -> Vec<Event> {
        std::iter::from_fn(|| self.cm.poll_event()).collect()
    }

    /// The one event.
    #[track_caller]
    pub fn event(&mut self) -> Event {
        let events = self.events();
        assert_eq!(events.len(), 1, "{events:?}");
        events.into_iter().next().unwrap()
    }

    pub fn take(&mut self, mad: &CmMad) {
        let path = self.path;
        self.cm.on_mad(self.now, &path, &mad.to_bytes());
    }

    /// Lets time go by, with every deadline on the way.
    pub fn pass(&mut self, ns: u64) {
        let end = self.now + ns;
        while let Some(at) = self.cm.next_timeout().filter(|&at| at <= end) {
            self.now = self.now.max(at);
            self.cm.on_timeout(self.now);
        }
        self.now = end;
    }
}

/// An active and a passive end.
pub struct Pair {
    pub a: End,
    pub b: End,
}

impl Pair {
    pub fn new() -> Pair {
        Pair { a: End::active(), b: End::passive() }
    }

    /// Delivers until nothing is under way.
    pub fn settle(&mut self) {
        loop {
            let (from_a, from_b) = (self.a.sent(), self.b.sent());
            if from_a.is_empty() && from_b.is_empty() {
                return;
            }
            from_a.iter().for_each(|mad| self.b.take(mad));
            from_b.iter().for_each(|mad| self.a.take(mad));
        }
    }

    /// A request that the passive side has told its application of.
    pub fn asked(&mut self) -> (ConnId, ConnId) {
        let a = self.a.ask();
        self.settle();
        let Event::ReqReceived { conn: b, .. } = self.b.event() else { panic!("no request") };
        (a, b)
    }

    /// A reply that the active side has told its application of.
    pub fn replied(&mut self) -> (ConnId, ConnId) {
        let (a, b) = self.asked();
        self.b.cm.send_rep(self.b.now, b, &rep()).unwrap();
        self.settle();
        assert!(matches!(self.a.event(), Event::RepReceived { conn, .. } if conn == a));
        (a, b)
    }

    pub fn connected(&mut self) -> (ConnId, ConnId) {
        let (a, b) = self.replied();
        self.a.cm.send_rtu(self.a.now, a, b"").unwrap();
        self.settle();
        assert!(matches!(self.b.event(), Event::Established { conn, private_data: Some(_) } if conn == b));
        (a, b)
    }
}

pub fn rep() -> RepParams {
    RepParams::new(Qpn::new(0xB2), Psn::new(0x222))
}

/// The message of a MAD, when it is of the kind that the pattern names.
#[macro_export]
macro_rules! message {
    ($mad:expr, $kind:ident) => {
        match $mad.message {
            CmMessage::$kind(message) => message,
            other => panic!("{other:?}"),
        }
    };
}
