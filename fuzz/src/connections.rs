//! Connection management under any MADs and any calls, in any order.

use crate::bytes::Bytes;
use cm::*;
use std::collections::BTreeSet;
use wire::mad::*;
use wire::{Gid, Mtu, Psn, QKey, Qpn};

const US: Gid = Gid::from_v4([192, 0, 2, 1]);
const SERVICE: ServiceId = ServiceId::new(PortSpace::Tcp, 1);
/// The longest that anything stays after it is destroyed: an answer to a datagram question. A DREQ is given up after one second,
/// and timewait is two at most.
const FREED_NS: u64 = 5_000_000_000;
const LIMITS: Limits = Limits { connections: 6, timewait: 4, half_open_per_peer: 3, sidr: 3, listeners: 2 };

/// What the input may name: small numbers stand for these.
struct World {
    cm: Cm,
    now: u64,
    conns: Vec<ConnId>,
    questions: Vec<SidrId>,
    /// IDs that went out on the wire, ours and the peers'.
    ids: Vec<u32>,
    /// Connections whose last event has not come.
    open: BTreeSet<ConnId>,
}

/// Any MADs and any calls: nothing panics, tables stay within their limits, a MAD draws two messages at most, what goes out can
/// be read, nothing is told of connections that are over; and when everything is destroyed, everything is freed soon.
pub fn connections(data: &[u8]) {
    let mut config = Config::new(7, [3; 32]);
    config.limits = LIMITS;
    let mut cm = Cm::new(config);
    cm.listen(SERVICE, None, 4).expect("there is room for one");
    let mut world =
        World { cm, now: 0, conns: vec![], questions: vec![], ids: vec![0, 1, 2], open: BTreeSet::new() };
    let mut rest = Bytes(data);
    while !rest.is_empty() {
        match rest.byte() % 4 {
            0 => world.message(&mut rest),
            1 => world.any_mad(&mut rest),
            2 => world.call(&mut rest),
            _ => {
                let (ns, how) = (u64::from(rest.byte()), rest.byte());
                world.wait(ns << (how % 32), how >= 128);
            }
        }
        world.drain();
        let usage = world.cm.usage();
        assert_eq!(usage.connections + usage.timewait, world.open.len(), "what has not ended is there");
        assert!(usage.connections <= LIMITS.connections && usage.timewait <= LIMITS.timewait);
        assert!(usage.half_open <= usage.connections && usage.sidr <= LIMITS.sidr);
    }
    world.end();
}

fn peer(rest: &mut Bytes) -> Path {
    let scope = u32::from(rest.byte() % 8 == 7);
    Path { local: US, remote: Gid::from_v4([192, 0, 2, 1 + rest.byte() % 3]), scope, ..Path::default() }
}

impl World {
    fn id(&mut self, rest: &mut Bytes) -> u32 {
        self.ids[usize::from(rest.byte()) % self.ids.len()]
    }

    /// A MAD of ours to be, with any bytes behind its header.
    fn any_mad(&mut self, rest: &mut Bytes) {
        let path = peer(rest);
        let kind = rest.one_of(MessageKind::ALL);
        let mut bytes = CmMad::new(9, Rtu::default()).to_bytes();
        bytes[17] = kind.attribute() as u8;
        let bent = rest.byte();
        if bent > 250 {
            bytes[usize::from(rest.byte() % 24)] = rest.byte();
        }
        let len = usize::from(rest.byte()) % 233;
        let body = rest.take(len);
        bytes[24..24 + body.len()].copy_from_slice(body);
        let len = if bent == 250 { usize::from(rest.byte()) } else { MAD_LEN };
        self.mad(&path, &bytes[..len]);
    }

    /// A message that makes sense, with IDs that may.
    fn message(&mut self, rest: &mut Bytes) {
        let path = peer(rest);
        let kind = rest.one_of(MessageKind::ALL);
        let mut bytes = CmMad::new(9, Rtu::default()).to_bytes();
        bytes[17] = kind.attribute() as u8;
        let Ok(mut mad) = CmMad::parse(&bytes) else { return };
        let (local_id, remote_id) = (CommId(self.id(rest)), CommId(self.id(rest)));
        let qpn = Qpn::new(u32::from(rest.byte() % 8));
        match &mut mad.message {
            CmMessage::Req(req) => {
                (req.local_id, req.local_qpn, req.service_id) = (local_id, qpn, SERVICE);
                (req.path_mtu, req.max_cm_retries) = (rest.byte() % 7, rest.byte());
                (req.local_cm_timeout, req.remote_cm_timeout) = (rest.byte(), rest.byte());
                (req.primary.local_gid, req.primary.remote_gid) = (path.remote, path.local);
            }
            CmMessage::Mra(mra) => {
                (mra.local_id, mra.remote_id, mra.service_timeout) = (local_id, remote_id, rest.byte());
                mra.message = rest.one_of(&[Answered::Req, Answered::Rep, Answered::Other]);
            }
            CmMessage::Rej(rej) => {
                (rej.local_id, rej.remote_id, rej.reason) =
                    (local_id, remote_id, RejectReason(rest.byte().into()));
                rej.message = rest.one_of(&[Answered::Req, Answered::Rep, Answered::Other]);
                rej.ari_len = rest.byte();
            }
            CmMessage::Rep(rep) => (rep.local_id, rep.remote_id, rep.local_qpn) = (local_id, remote_id, qpn),
            CmMessage::Rtu(rtu) => (rtu.local_id, rtu.remote_id) = (local_id, remote_id),
            CmMessage::Dreq(dreq) => {
                (dreq.local_id, dreq.remote_id, dreq.remote_qpn) = (local_id, remote_id, qpn)
            }
            CmMessage::Drep(drep) => (drep.local_id, drep.remote_id) = (local_id, remote_id),
            CmMessage::Lap(lap) => (lap.local_id, lap.remote_id, lap.remote_qpn) = (local_id, remote_id, qpn),
            CmMessage::Apr(apr) => (apr.local_id, apr.remote_id) = (local_id, remote_id),
            CmMessage::SidrReq(req) => (req.request_id, req.service_id) = (local_id.0, SERVICE),
            CmMessage::SidrRep(rep) => rep.request_id = remote_id.0,
        }
        self.mad(&path, &mad.to_bytes());
    }

    fn mad(&mut self, path: &Path, bytes: &[u8]) {
        self.cm.on_mad(self.now, path, bytes);
        assert!(self.drain() <= 2, "a MAD draws an answer and a DREQ at most");
    }

    fn call(&mut self, rest: &mut Bytes) {
        let now = self.now;
        let what = rest.byte() % 12;
        let nth = usize::from(rest.byte());
        let qpn = Qpn::new(u32::from(rest.byte() % 8));
        if what == 0 {
            let params = ReqParams::new(peer(rest), SERVICE, qpn, Psn::new(1), Mtu::Mtu256);
            if let Ok(conn) = self.cm.send_req(now, &params) {
                self.conns.push(conn);
                self.open.insert(conn);
            }
        } else if what == 1 {
            let params =
                SidrReqParams { path: peer(rest), service_id: SERVICE, private_data: vec![], timing: None };
            self.questions.extend(self.cm.send_sidr_req(now, &params));
        } else if let (2 | 3, Some(&sidr)) = (what, self.questions.get(nth % self.questions.len().max(1))) {
            let (status, qkey) = (SidrStatus(rest.byte()), QKey::default());
            let params = SidrRepParams { status, qpn, qkey, info: vec![], private_data: vec![] };
            match what {
                2 => drop(self.cm.send_sidr_rep(now, sidr, &params)),
                _ => self.cm.destroy_sidr(now, sidr),
            }
        } else if let Some(&conn) = self.conns.get(nth % self.conns.len().max(1)) {
            let _ = match what {
                4 => self.cm.send_rep(now, conn, &RepParams::new(qpn, Psn::new(1))),
                5 => self.cm.send_rtu(now, conn, b""),
                6 => self.cm.send_rej(now, conn, RejectReason(rest.byte().into()), b"", b""),
                7 => self.cm.send_mra(now, conn, u64::from(rest.word())),
                8 => self.cm.establish(now, conn),
                9 => self.cm.send_dreq(now, conn, b""),
                10 => self.cm.plan(conn).map(drop),
                _ => {
                    self.cm.destroy(now, conn);
                    Ok(())
                }
            };
        }
    }

    /// Time goes by from deadline to deadline, or leaps: then all that were passed are late, and what is sent again has its next
    /// deadline after the leap.
    fn wait(&mut self, ns: u64, leap: bool) {
        let end = self.now + ns;
        while let Some(at) = self.cm.next_timeout().filter(|&at| at <= end) {
            self.now = if leap { end } else { self.now.max(at) };
            self.cm.on_timeout(self.now);
            self.drain();
        }
        self.now = end;
    }

    /// Takes all that comes out; how many messages.
    fn drain(&mut self) -> usize {
        let mut sent = 0;
        while let Some(transmit) = self.cm.poll_transmit() {
            let mad = CmMad::parse(&transmit.mad).expect("what goes out can be read");
            assert_eq!(mad.message.kind(), transmit.kind);
            // Most messages begin with our ID, and some with the asker's.
            let id = u32::from_be_bytes(transmit.mad[24..28].try_into().expect("four bytes"));
            if self.ids.len() < 64 && !self.ids.contains(&id) {
                self.ids.push(id);
            }
            sent += 1;
        }
        while let Some(event) = self.cm.poll_event() {
            match event {
                Event::ReqReceived { conn, .. } => {
                    assert!(self.open.insert(conn), "an ID is given once");
                    self.conns.push(conn);
                }
                Event::SidrReqReceived { sidr, .. } => self.questions.push(sidr),
                Event::TimewaitExit { conn, .. } => assert!(self.open.remove(&conn), "it ends once"),
                other => assert!(other.conn().is_none_or(|conn| self.open.contains(&conn))),
            }
        }
        sent
    }

    fn end(mut self) {
        for conn in std::mem::take(&mut self.conns) {
            self.cm.destroy(self.now, conn);
        }
        for sidr in std::mem::take(&mut self.questions) {
            self.cm.destroy_sidr(self.now, sidr);
        }
        self.drain();
        self.wait(FREED_NS, false);
        assert_eq!(self.cm.usage(), Usage { listeners: 1, ..Usage::default() });
        assert!(self.open.is_empty() && self.cm.next_timeout().is_none());
    }
}
