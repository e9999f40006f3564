//! The device agent: carries out the calls of rules on a device of ours.

use conform::{CallError, Completion, DeviceCall, DeviceInfo, Piece, QpAttributes, Reply, Side, Work};
use rockhopper::{
    Access, Addressing, Cq, Device, FastMr, Mr, Mtu, Pd, Psn, QKey, Qp, QpAttr, QpAttrMask as Mask,
    QpOptions, QpState, QpType, Qpn, RKey, RecvWr, SendWr, Sge,
};
use std::collections::BTreeMap;
use std::net::IpAddr;
use wire::Gid;

/// What our device offers to rules.
const OFFERS: [&str; 8] = ["rc", "uc", "ud", "ipv6", "fast", "deregister", "flush", "atomic_write"];
/// Completions that each side of a queue pair can hold.
const CQ_DEPTH: u32 = 512;
/// Objects of one rule: more are a mistake of the peer.
const MOST: usize = 64;
/// Longest region, bytes.
const LONGEST: u64 = 64 << 20;

/// An agent and the objects that it made.
pub struct Agent {
    device: Device,
    pds: BTreeMap<u8, Pd>,
    regions: BTreeMap<String, Memory>,
    qps: BTreeMap<String, Pair>,
    /// Ways to peers that were found before.
    paths: BTreeMap<IpAddr, Addressing>,
}

/// A region of either kind.
enum Memory {
    User(Mr),
    Fast(FastMr),
}

/// A queue pair with its completion queues.
struct Pair {
    qp: Qp,
    send_cq: Cq,
    recv_cq: Cq,
}

fn refused(why: impl ToString) -> CallError {
    CallError::Refused(why.to_string())
}

impl Agent {
    pub fn new(device: Device) -> Agent {
        Agent {
            device,
            pds: BTreeMap::new(),
            regions: BTreeMap::new(),
            qps: BTreeMap::new(),
            paths: BTreeMap::new(),
        }
    }

    /// Finds the way to a peer before a rule needs it.
    pub fn find(&mut self, peer: IpAddr) -> Result<(), CallError> {
        self.path(peer).map(|_| ())
    }

    /// Carries out one call.
    pub fn call(&mut self, call: &DeviceCall) -> Result<Reply, CallError> {
        match call {
            DeviceCall::Hello => self.hello(),
            DeviceCall::Reset => {
                // Queue pairs first: they use all the rest.
                self.qps.clear();
                self.regions.clear();
                self.pds.clear();
                Ok(Reply::Done)
            }
            DeviceCall::Region(region) => self.region(region),
            DeviceCall::Qp { name, service, pd, srq } => self.create(name, service, *pd, srq.as_deref()),
            DeviceCall::Modify { qp, state, attributes } => self.modify(qp, state, attributes),
            DeviceCall::Receive { qp, id, pieces } => {
                let mut wr = RecvWr::new(*id);
                for piece in pieces {
                    wr = wr.sge(self.sge(piece)?);
                }
                self.pair(qp)?.qp.post_recv(wr).map_err(refused)?;
                Ok(Reply::Done)
            }
            DeviceCall::Post { qp, work } => self.post(qp, work),
            DeviceCall::Poll { qp, side } => {
                let pair = self.pair(qp)?;
                let mut found = Vec::new();
                let cq = if *side == Side::Send { &pair.send_cq } else { &pair.recv_cq };
                cq.poll(&mut found, CQ_DEPTH as usize);
                Ok(Reply::Completions(found.iter().map(completion).collect()))
            }
            DeviceCall::Read { region, offset, len } => {
                let mut bytes = vec![0; (*len).min(LONGEST) as usize];
                self.memory(region)?.buffer().read(*offset as usize, &mut bytes).map_err(refused)?;
                Ok(Reply::Bytes(conform::to_hex(&bytes)))
            }
            DeviceCall::Write { region, offset, bytes } => {
                let bytes = conform::from_hex(bytes).ok_or_else(|| refused("no hexadecimal digits"))?;
                self.memory(region)?.buffer().write(*offset as usize, &bytes).map_err(refused)?;
                Ok(Reply::Done)
            }
            DeviceCall::Deregister { region } => {
                self.regions.remove(region).map(|_| Reply::Done).ok_or_else(|| refused("no such region"))
            }
            DeviceCall::State { qp } => {
                let state = self.pair(qp)?.qp.query().map_err(refused)?.attr.state;
                Ok(Reply::State(state_name(state).into()))
            }
        }
    }

    fn hello(&self) -> Result<Reply, CallError> {
        let port = self.device.query_port().map_err(refused)?;
        Ok(Reply::Device(DeviceInfo {
            name: format!("rockhopper {} on {}", env!("CARGO_PKG_VERSION"), self.device.driver()),
            addresses: port.gids.iter().map(|(_, entry)| entry.address).collect(),
            mtu: port.path_mtu.bytes(),
            offers: OFFERS.map(str::to_owned).to_vec(),
        }))
    }

    fn pd(&mut self, number: u8) -> Result<Pd, CallError> {
        if self.pds.len() >= MOST && !self.pds.contains_key(&number) {
            return Err(refused("too many protection domains"));
        }
        Ok(self.pds.entry(number).or_insert_with(|| self.device.alloc_pd()).clone())
    }

    fn region(&mut self, wish: &conform::Region) -> Result<Reply, CallError> {
        if wish.len > LONGEST || self.regions.len() >= MOST {
            return Err(refused("too much memory"));
        }
        let pd = self.pd(wish.pd)?;
        let memory = if wish.fast {
            Memory::Fast(pd.alloc_fast_mr(wish.len as usize).map_err(refused)?)
        } else {
            Memory::User(pd.reg_mr(wish.len as usize, access(&wish.access)?).map_err(refused)?)
        };
        let remote = match &memory {
            Memory::User(mr) => mr.remote(),
            Memory::Fast(mr) => mr.remote(),
        };
        self.regions.insert(wish.name.clone(), memory);
        Ok(Reply::Region { addr: remote.addr, rkey: remote.rkey })
    }

    fn create(&mut self, name: &str, service: &str, pd: u8, srq: Option<&str>) -> Result<Reply, CallError> {
        let qp_type = match service {
            "rc" => QpType::Rc,
            "uc" => QpType::Uc,
            "ud" => QpType::Ud,
            other => return Err(CallError::Unsupported(other.into())),
        };
        if srq.is_some() {
            return Err(CallError::Unsupported("srq".into()));
        }
        if self.qps.len() >= MOST {
            return Err(refused("too many queue pairs"));
        }
        let pd = self.pd(pd)?;
        let send_cq = self.device.create_cq(CQ_DEPTH).map_err(refused)?;
        let recv_cq = self.device.create_cq(CQ_DEPTH).map_err(refused)?;
        let options = QpOptions { recv_cq: recv_cq.clone(), ..QpOptions::new(qp_type, &send_cq) };
        let qp = pd.create_qp(&options).map_err(refused)?;
        let qpn = qp.qpn().value();
        self.qps.insert(name.to_owned(), Pair { qp, send_cq, recv_cq });
        Ok(Reply::Qp { qpn })
    }

    fn pair(&self, name: &str) -> Result<&Pair, CallError> {
        self.qps.get(name).ok_or_else(|| refused("no such queue pair"))
    }

    fn memory(&self, name: &str) -> Result<&Memory, CallError> {
        self.regions.get(name).ok_or_else(|| refused("no such region"))
    }

    fn sge(&self, piece: &Piece) -> Result<Sge, CallError> {
        let range = piece.offset as usize..(piece.offset + u64::from(piece.len)) as usize;
        Ok(match self.memory(&piece.region)? {
            Memory::User(mr) => mr.sge(range),
            Memory::Fast(mr) => mr.sge(range),
        })
    }

    fn path(&mut self, peer: IpAddr) -> Result<Addressing, CallError> {
        if let Some(path) = self.paths.get(&peer) {
            return Ok(*path);
        }
        // The engine chooses the source port of a connection.
        let path = Addressing { udp_sport: 0, ..self.device.resolve(peer, None).map_err(refused)? };
        self.paths.insert(peer, path);
        Ok(path)
    }

    fn modify(&mut self, name: &str, state: &str, attributes: &QpAttributes) -> Result<Reply, CallError> {
        let target = state_of(state)?;
        let up = [QpState::Init, QpState::Rtr, QpState::Rts];
        let path = self.path(attributes.peer_ip)?;
        let qp = self.pair(name)?.qp.clone();
        match up.iter().position(|&step| step == target) {
            Some(last) if qp.state() == QpState::Reset => {
                for &step in &up[..=last] {
                    self.step(&qp, step, attributes, path)?;
                }
            }
            _ => {
                let attr = QpAttr { state: target, ..QpAttr::default() };
                qp.modify(&attr, Mask::STATE).map_err(refused)?;
            }
        }
        Ok(Reply::Done)
    }

    fn step(&self, qp: &Qp, to: QpState, wish: &QpAttributes, path: Addressing) -> Result<(), CallError> {
        let mtu = Mtu::from_bytes(wish.mtu).ok_or_else(|| refused("no path MTU"))?;
        let attr = QpAttr {
            state: to,
            access: access(&wish.access)?,
            qkey: QKey::new(wish.qkey),
            path: Some(path),
            path_mtu: mtu,
            dest_qpn: Qpn::new(wish.peer_qpn),
            rq_psn: Psn::new(wish.peer_psn),
            sq_psn: Psn::new(wish.device_psn),
            max_rd_atomic: wish.reads,
            max_dest_rd_atomic: wish.slots,
            min_rnr_timer: wish.rnr_timer,
            timeout: wish.timeout,
            retry_cnt: wish.retry,
            rnr_retry: wish.rnr_retry,
            ..QpAttr::default()
        };
        let kind = qp.qp_type();
        let mask = match (to, kind) {
            (QpState::Init, QpType::Ud) => Mask::PKEY_INDEX | Mask::PORT | Mask::QKEY,
            (QpState::Init, _) => Mask::PKEY_INDEX | Mask::PORT | Mask::ACCESS,
            (QpState::Rtr, QpType::Ud) => Mask::empty(),
            (QpState::Rtr, QpType::Rc) => {
                Mask::AV
                    | Mask::PATH_MTU
                    | Mask::DEST_QPN
                    | Mask::RQ_PSN
                    | Mask::MAX_DEST_RD_ATOMIC
                    | Mask::MIN_RNR_TIMER
            }
            (QpState::Rtr, _) => Mask::AV | Mask::PATH_MTU | Mask::DEST_QPN | Mask::RQ_PSN,
            (_, QpType::Rc) => {
                Mask::SQ_PSN | Mask::TIMEOUT | Mask::RETRY_CNT | Mask::RNR_RETRY | Mask::MAX_RD_ATOMIC
            }
            (..) => Mask::SQ_PSN,
        };
        qp.modify(&attr, mask | Mask::STATE).map_err(refused)?;
        Ok(())
    }

    fn post(&mut self, name: &str, work: &Work) -> Result<Reply, CallError> {
        let mut wr = self.request(name, work)?;
        for piece in &work.pieces {
            wr = wr.sge(self.sge(piece)?);
        }
        if work.fence {
            wr = wr.fence();
        }
        if work.solicited {
            wr = wr.solicited();
        }
        if work.unsignaled {
            wr = wr.unsignaled();
        }
        self.pair(name)?.qp.post_send(wr).map_err(refused)?;
        Ok(Reply::Done)
    }

    fn request(&mut self, name: &str, work: &Work) -> Result<SendWr, CallError> {
        let id = work.id;
        let remote = rockhopper::Remote { addr: work.at, rkey: RKey::new(work.key) };
        let imm = work.imm.to_be_bytes();
        if self.pair(name)?.qp.qp_type() == QpType::Ud {
            return self.datagram(name, work);
        }
        Ok(match work.op.as_str() {
            "send" => SendWr::send(id),
            "send_imm" => SendWr::send_imm(id, imm),
            "send_inv" => SendWr::send_inv(id, remote.rkey),
            "write" => SendWr::write(id, remote),
            "write_imm" => SendWr::write_imm(id, remote, imm),
            "read" => SendWr::read(id, remote),
            "cmp_swap" => SendWr::compare_swap(id, remote, work.compare, work.swap),
            "fetch_add" => SendWr::fetch_add(id, remote, work.swap),
            "fast_register" => SendWr::reg_mr(id, self.fast(work)?, work.key as u8, all_rights()),
            "local_invalidate" => SendWr::local_inv(id, self.fast(work)?.key()),
            other => return Err(CallError::Unsupported(other.into())),
        })
    }

    fn fast(&self, work: &Work) -> Result<&FastMr, CallError> {
        let name = work.region.as_deref().unwrap_or_default();
        match self.memory(name)? {
            Memory::Fast(mr) => Ok(mr),
            Memory::User(_) => Err(refused("the region is not for fast registration")),
        }
    }

    fn datagram(&mut self, name: &str, work: &Work) -> Result<SendWr, CallError> {
        let peer = work.remote_ip.ok_or_else(|| refused("a datagram needs an address"))?;
        let imm = match work.op.as_str() {
            "send" => None,
            "send_imm" => Some(work.imm.to_be_bytes()),
            other => return Err(refused(format!("UD has no {other}"))),
        };
        let pd = self.pair(name)?.qp.pd().clone();
        let addressing = Addressing { udp_sport: 0xC000, dst: Gid::from(peer), ..self.path(peer)? };
        let ah = rockhopper::Ah::new(&pd, addressing).map_err(refused)?;
        Ok(SendWr::ud_send(work.id, &ah, Qpn::new(work.remote_qpn), QKey::new(work.qkey), imm))
    }
}

impl Memory {
    fn buffer(&self) -> &memory::Buffer {
        match self {
            Memory::User(mr) => mr.buffer(),
            Memory::Fast(mr) => mr.buffer(),
        }
    }
}

fn all_rights() -> Access {
    Access::LOCAL_WRITE | Access::REMOTE_WRITE | Access::REMOTE_READ | Access::REMOTE_ATOMIC
}

fn access(names: &[String]) -> Result<Access, CallError> {
    names.iter().try_fold(Access::empty(), |all, name| {
        Ok(all
            | match name.as_str() {
                "local_write" => Access::LOCAL_WRITE,
                "remote_write" => Access::REMOTE_WRITE,
                "remote_read" => Access::REMOTE_READ,
                "remote_atomic" => Access::REMOTE_ATOMIC,
                "flush_global" => Access::FLUSH_GLOBAL,
                "flush_persistent" => Access::FLUSH_PERSISTENT,
                "mw_bind" => Access::MW_BIND,
                "zero_based" => Access::ZERO_BASED,
                other => return Err(CallError::Unsupported(other.into())),
            })
    })
}

const STATES: [(QpState, &str); 7] = [
    (QpState::Reset, "reset"),
    (QpState::Init, "init"),
    (QpState::Rtr, "rtr"),
    (QpState::Rts, "rts"),
    (QpState::Sqd, "sqd"),
    (QpState::Sqe, "sqe"),
    (QpState::Err, "error"),
];

fn state_name(state: QpState) -> &'static str {
    STATES.iter().find(|(known, _)| *known == state).map_or("unknown", |(_, name)| name)
}

fn state_of(name: &str) -> Result<QpState, CallError> {
    let found = STATES.iter().find(|(_, known)| *known == name);
    found.map(|(state, _)| *state).ok_or_else(|| refused(format!("there is no state {name}")))
}

fn completion(cqe: &rockhopper::Cqe) -> Completion {
    Completion {
        id: cqe.wr_id,
        status: status_name(cqe.status).into(),
        len: cqe.byte_len,
        imm: cqe.imm.map(u32::from_be_bytes),
        invalidated: cqe.invalidated.map(|key| key.value()),
        src_qp: cqe.src_qp.value(),
    }
}

fn status_name(status: rockhopper::WcStatus) -> &'static str {
    use rockhopper::WcStatus as S;
    match status {
        S::Success => "success",
        S::LocLenErr => "loc_len_err",
        S::LocQpOpErr => "loc_qp_op_err",
        S::LocProtErr => "loc_prot_err",
        S::WrFlushErr => "wr_flush_err",
        S::MwBindErr => "mw_bind_err",
        S::BadRespErr => "bad_resp_err",
        S::LocAccessErr => "loc_access_err",
        S::RemInvReqErr => "rem_inv_req_err",
        S::RemAccessErr => "rem_access_err",
        S::RemOpErr => "rem_op_err",
        S::RetryExcErr => "retry_exc_err",
        S::RnrRetryExcErr => "rnr_retry_exc_err",
        S::RemAbortErr => "rem_abort_err",
        S::FatalErr => "fatal_err",
        S::GeneralErr => "general_err",
    }
}
