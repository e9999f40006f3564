//! The device agent: carries out the calls of rules on a device of ours.

mod connect;
mod names;
mod work;

use conform::{ABILITIES, CallError, DeviceCall, DeviceInfo, Piece, Reply, Side};
use names::{access, completion, state_name};
use rockhopper::{
    Addressing, Cq, Device, FastMr, Mr, Mw, MwType, Pd, Qp, QpOptions, QpType, RecvWr, Sge, Srq, SrqOptions,
    Srqn, Xrcd,
};
use std::collections::BTreeMap;
use std::net::IpAddr;

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
    windows: BTreeMap<String, Mw>,
    domains: BTreeMap<u8, Xrcd>,
    srqs: BTreeMap<String, Shared>,
    qps: BTreeMap<String, Pair>,
    /// Ways to peers that were found before.
    paths: BTreeMap<IpAddr, Addressing>,
}

/// A region of either kind.
enum Memory {
    User(Mr),
    Fast(FastMr),
}

/// A queue pair with its completion queues: a target of XRC has none.
struct Pair {
    qp: Qp,
    cqs: Option<[Cq; 2]>,
}

/// A shared receive queue, and the completion queue of an XRC SRQ.
struct Shared {
    srq: Srq,
    cq: Option<Cq>,
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
            windows: BTreeMap::new(),
            domains: BTreeMap::new(),
            srqs: BTreeMap::new(),
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
                self.srqs.clear();
                self.domains.clear();
                self.windows.clear();
                self.regions.clear();
                self.pds.clear();
                Ok(Reply::Done)
            }
            DeviceCall::Region(region) => self.region(region),
            DeviceCall::Qp { name, service, pd, srq, domain } => {
                self.create(name, service, *pd, srq.as_deref(), *domain)
            }
            DeviceCall::Srq { name, depth, pd, domain } => self.shared(name, *depth, *pd, *domain),
            DeviceCall::Window { name, kind, pd } => self.alloc_window(name, *kind, *pd),
            DeviceCall::Arm { srq, limit } => {
                self.srq(srq)?.srq.arm_limit(*limit).map_err(refused)?;
                Ok(Reply::Done)
            }
            DeviceCall::Limit { srq } => Ok(Reply::Limit(self.srq(srq)?.srq.query().limit)),
            DeviceCall::Modify { qp, state, attributes } => self.modify(qp, state, attributes),
            DeviceCall::Receive { qp, id, pieces } => {
                let wr = self.receive(*id, pieces)?;
                self.pair(qp)?.qp.post_recv(wr).map_err(refused)?;
                Ok(Reply::Done)
            }
            DeviceCall::ReceiveShared { srq, id, pieces } => {
                let wr = self.receive(*id, pieces)?;
                self.srq(srq)?.srq.post_recv(wr).map_err(refused)?;
                Ok(Reply::Done)
            }
            DeviceCall::Post { qp, work } => self.post(qp, work),
            DeviceCall::Poll { qp, side } => self.poll(qp, *side),
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
                if let Memory::User(mr) = self.memory(region)? {
                    mr.deregister().map_err(refused)?;
                }
                self.regions.remove(region);
                Ok(Reply::Done)
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
            // Ours has all of them.
            offers: ABILITIES.iter().copied().map(str::to_owned).collect(),
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

    fn alloc_window(&mut self, name: &str, kind: u8, pd: u8) -> Result<Reply, CallError> {
        if self.windows.len() >= MOST {
            return Err(refused("too many windows"));
        }
        let mw_type = if kind == 1 { MwType::Type1 } else { MwType::Type2 };
        let window = self.pd(pd)?.alloc_mw(mw_type).map_err(refused)?;
        let rkey = window.rkey().value();
        self.windows.insert(name.to_owned(), window);
        Ok(Reply::Window { addr: 0, rkey })
    }

    fn domain(&mut self, number: u8) -> Result<Xrcd, CallError> {
        if let Some(domain) = self.domains.get(&number) {
            return Ok(domain.clone());
        }
        if self.domains.len() >= MOST {
            return Err(refused("too many XRC domains"));
        }
        let domain = self.device.open_xrcd().map_err(refused)?;
        self.domains.insert(number, domain.clone());
        Ok(domain)
    }

    fn shared(&mut self, name: &str, depth: u32, pd: u8, domain: Option<u8>) -> Result<Reply, CallError> {
        if self.srqs.len() >= MOST {
            return Err(refused("too many shared receive queues"));
        }
        let (pd, options) = (self.pd(pd)?, SrqOptions { max_wr: depth, ..SrqOptions::default() });
        let shared = match domain {
            None => Shared { srq: pd.create_srq(&options).map_err(refused)?, cq: None },
            Some(domain) => {
                let domain = self.domain(domain)?;
                let cq = self.device.create_cq(CQ_DEPTH).map_err(refused)?;
                Shared { srq: pd.create_xrc_srq(&options, &domain, &cq).map_err(refused)?, cq: Some(cq) }
            }
        };
        let srqn = shared.srq.srqn().map_or(0, Srqn::value);
        self.srqs.insert(name.to_owned(), shared);
        Ok(Reply::Srq { srqn })
    }

    fn create(
        &mut self,
        name: &str,
        service: &str,
        pd: u8,
        srq: Option<&str>,
        domain: u8,
    ) -> Result<Reply, CallError> {
        let qp_type = match service {
            "rc" => QpType::Rc,
            "uc" => QpType::Uc,
            "ud" => QpType::Ud,
            "xrc_initiator" => QpType::XrcIni,
            "xrc" => QpType::XrcTgt,
            other => return Err(CallError::Unsupported(other.into())),
        };
        if self.qps.len() >= MOST {
            return Err(refused("too many queue pairs"));
        }
        let pair = if qp_type == QpType::XrcTgt {
            Pair { qp: self.domain(domain)?.create_target().map_err(refused)?, cqs: None }
        } else {
            let pd = self.pd(pd)?;
            let send_cq = self.device.create_cq(CQ_DEPTH).map_err(refused)?;
            let recv_cq = self.device.create_cq(CQ_DEPTH).map_err(refused)?;
            let srq = srq.map(|name| self.srq(name)).transpose()?.map(|shared| shared.srq.clone());
            let options = QpOptions { recv_cq: recv_cq.clone(), srq, ..QpOptions::new(qp_type, &send_cq) };
            Pair { qp: pd.create_qp(&options).map_err(refused)?, cqs: Some([send_cq, recv_cq]) }
        };
        let qpn = pair.qp.qpn().value();
        self.qps.insert(name.to_owned(), pair);
        Ok(Reply::Qp { qpn })
    }

    fn receive(&self, id: u64, pieces: &[Piece]) -> Result<RecvWr, CallError> {
        pieces.iter().try_fold(RecvWr::new(id), |wr, piece| Ok(wr.sge(self.sge(piece)?)))
    }

    /// Completions of a queue pair's side, or of an XRC SRQ.
    fn poll(&self, name: &str, side: Side) -> Result<Reply, CallError> {
        let cq = match (self.srqs.get(name), side) {
            (Some(_), Side::Send) => None,
            (Some(shared), Side::Recv) => shared.cq.as_ref(),
            (None, side) => self.pair(name)?.cqs.as_ref().map(|cqs| &cqs[usize::from(side == Side::Recv)]),
        };
        let mut found = Vec::new();
        if let Some(cq) = cq {
            cq.poll(&mut found, CQ_DEPTH as usize);
        }
        Ok(Reply::Completions(found.iter().map(completion).collect()))
    }

    fn srq(&self, name: &str) -> Result<&Shared, CallError> {
        self.srqs.get(name).ok_or_else(|| refused("no such shared receive queue"))
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
}

impl Memory {
    fn buffer(&self) -> &memory::Buffer {
        match self {
            Memory::User(mr) => mr.buffer(),
            Memory::Fast(mr) => mr.buffer(),
        }
    }
}
