//! A peer played by hand, message by message, beside an endpoint.

use crate::support::{End, SOON, at, until};
use dpdk::tsc::Hand;
use rockhopper::cm::{CmEventKind, CmOptions, ConnParam, State};
use rockhopper::{Endpoint, Mac, RawPort, RingPair};
use std::net::IpAddr;
use std::time::Instant;
use wire::mad::{Area, CmMad, CmMessage, CommId, IpAddressing, PortSpace, PrimaryPath, Rep, Req, ServiceId};
use wire::{
    Addressing, Bth, Deth, ExtHeaders, Frame, Gid, HeaderTemplate, Opcode, PKey, Psn, QKey, Qpn, RoceVersion,
    build_frame,
};

pub const UD_SEND_ONLY: Opcode = Opcode(0x64);
pub const RC_SEND_ONLY: Opcode = Opcode(0x04);
pub const OWN: &str = "10.82.72.1";
pub const SERVER: &str = "10.82.72.2";

/// A raw port at host 1, and the endpoint at host 2.
pub struct Stranger {
    pub port: RawPort,
    pub endpoint: Endpoint,
    server: Mac,
}

/// A management datagram and what is around it; spoil what is to be wrong.
#[derive(Clone, Copy)]
pub struct Around {
    pub source: IpAddr,
    pub qkey: QKey,
    pub src_qpn: Qpn,
    pub pkey: PKey,
}

impl Default for Around {
    fn default() -> Self {
        let source = OWN.parse().unwrap();
        Around { source, qkey: QKey::GSI, src_qpn: Qpn::GSI, pkey: PKey::DEFAULT }
    }
}

impl Stranger {
    pub fn new() -> Stranger {
        Stranger::over(&RingPair::default())
    }

    pub fn over(settings: &RingPair) -> Stranger {
        let (port, endpoint) = RawPort::beside(settings).unwrap();
        Stranger::meet(port, endpoint)
    }

    /// In a time of its own: what takes half a minute is over when the hand says so.
    pub fn by_hand() -> (Stranger, Hand) {
        let (port, endpoint, hand) = RawPort::beside_by_hand(&RingPair::default()).unwrap();
        (Stranger::meet(port, endpoint), hand)
    }

    fn meet(mut port: RawPort, endpoint: Endpoint) -> Stranger {
        let server = port.resolve(SERVER.parse().unwrap(), || {}).unwrap();
        Stranger { port, endpoint, server }
    }

    fn way(&self, source: IpAddr) -> Addressing {
        Addressing {
            version: RoceVersion::V2,
            smac: self.port.mac(),
            dmac: self.server,
            vlan: None,
            src: Gid::from(source),
            dst: Gid::from(SERVER.parse::<IpAddr>().unwrap()),
            traffic_class: 0,
            flow_label: 0,
            hop_limit: 64,
            udp_sport: 0xC001,
        }
    }

    pub fn frame(&self, mad: &[u8], around: &Around) -> Vec<u8> {
        let bth = Bth { pkey: around.pkey, ..Bth::new(UD_SEND_ONLY, Qpn::GSI, Psn::new(1)) };
        let ext = ExtHeaders::EMPTY.with(Deth { qkey: around.qkey, src_qpn: around.src_qpn });
        let template = HeaderTemplate::new(&self.way(around.source)).unwrap();
        let mut frame = Vec::new();
        build_frame(&template, &bth, &ext, 1, mad, &mut frame);
        frame
    }

    /// A frame of a connected queue pair of ours.
    pub fn data(&self, to: Qpn, psn: Psn, payload: &[u8]) -> Vec<u8> {
        let bth = Bth { ack_req: true, ..Bth::new(RC_SEND_ONLY, to, psn) };
        let template = HeaderTemplate::new(&self.way(OWN.parse().unwrap())).unwrap();
        let mut frame = Vec::new();
        build_frame(&template, &bth, &ExtHeaders::EMPTY, 1, payload, &mut frame);
        frame
    }

    pub fn say(&mut self, message: impl Into<CmMessage>) {
        let frame = self.frame(&CmMad::new(7, message).to_bytes(), &Around::default());
        assert!(self.port.send(&frame), "the ring has room");
    }

    /// Where a ring that is full is nothing to fail for.
    pub fn say_if_there_is_room(&mut self, message: impl Into<CmMessage>) {
        let frame = self.frame(&CmMad::new(7, message).to_bytes(), &Around::default());
        while !self.port.send(&frame) {
            std::thread::yield_now();
        }
    }

    /// Payloads of datagrams from the other's queue pair 1 to ours.
    pub fn hear(&mut self) -> Vec<Vec<u8>> {
        let mut frames = Vec::new();
        self.port.receive(&mut frames);
        let payload = |bytes: Vec<u8>| {
            let frame = Frame::parse(&bytes, bytes.len()).ok()?;
            frame.verify_icrc(&bytes, [&bytes[..]]).unwrap();
            let deth: Deth = frame.ext(&bytes)?;
            assert_eq!((deth.qkey, deth.src_qpn), (QKey::GSI, Qpn::GSI));
            (frame.bth().dest_qpn == Qpn::GSI)
                .then(|| bytes[frame.payload_offset()..][..frame.payload_len()].to_vec())
        };
        frames.into_iter().filter_map(payload).collect()
    }

    /// The next message that is wanted; others are passed over.
    #[track_caller]
    pub fn expect<T>(&mut self, what: &str, wanted: impl Fn(CmMessage) -> Option<T>) -> T {
        let end = Instant::now() + SOON;
        while Instant::now() < end {
            for payload in self.hear() {
                if let Some(found) = CmMad::parse(&payload).ok().and_then(|mad| wanted(mad.message)) {
                    return found;
                }
            }
            std::thread::yield_now();
        }
        panic!("no {what} in {SOON:?}; {:?}", self.endpoint.stats().ports[0].management);
    }

    #[track_caller]
    pub fn expect_rep(&mut self) -> Rep {
        self.expect("REP", |message| match message {
            CmMessage::Rep(rep) => Some(rep),
            _ => None,
        })
    }
}

impl Stranger {
    /// An end of the endpoint's that knows where we are. We answer ARP while we listen.
    pub fn asked_by_us(&mut self, options: &CmOptions) -> End {
        let mut active = End::new(&self.endpoint, PortSpace::Tcp);
        active.id.set_options(options.clone()).unwrap();
        active.id.resolve_addr(None, at(OWN, 7471), SOON).unwrap();
        until("an address", || {
            self.hear();
            active.id.state() != State::Resolving
        });
        assert!(matches!(active.next(), CmEventKind::AddrResolved));
        active.equip();
        active
    }

    /// What it asks when it connects.
    #[track_caller]
    pub fn expect_req_of(&mut self, active: &End, param: &ConnParam) -> Req {
        active.id.connect(param).unwrap();
        self.expect("REQ", |message| match message {
            CmMessage::Req(req) => Some(req),
            _ => None,
        })
    }
}

/// Our reply to a request.
pub fn reply(req: &Req) -> Rep {
    Rep {
        local_id: CommId(0x66),
        remote_id: req.local_id,
        local_ca_guid: 0x1234,
        local_qpn: Qpn::new(0x98),
        starting_psn: Psn::new(0x200),
        rnr_retry_count: 7,
        target_ack_delay: 18,
        ..Rep::default()
    }
}

/// A request as rdma_cm makes it, for a port of the server's.
pub fn request(id: u32, qpn: u32, port: u16, source: IpAddr) -> Req {
    let destination: IpAddr = SERVER.parse().unwrap();
    let addresses = IpAddressing { source_port: 999, source, destination };
    let (local_gid, remote_gid) = (Gid::from(source), Gid::from(destination));
    Req {
        local_id: CommId(id),
        service_id: ServiceId::new(PortSpace::Tcp, port),
        local_ca_guid: 0x1234,
        local_qpn: Qpn::new(qpn),
        responder_resources: 4,
        initiator_depth: 4,
        remote_cm_timeout: 20,
        local_cm_timeout: 20,
        starting_psn: Psn::new(0x100),
        retry_count: 7,
        rnr_retry_count: 7,
        path_mtu: 3,
        max_cm_retries: 15,
        pkey: PKey::DEFAULT,
        primary: PrimaryPath {
            local_lid: 0xFFFF,
            remote_lid: 0xFFFF,
            local_gid,
            remote_gid,
            hop_limit: 64,
            ack_timeout: 16,
            ..PrimaryPath::default()
        },
        private_data: Area::new(&addresses.to_bytes().unwrap()).unwrap(),
        ..Req::default()
    }
}
