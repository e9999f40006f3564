//! One end's objects for one run: memory, completion queue, queue pairs, and the way to the peer's.

use super::error::RunError;
use super::layout::Layout;
use super::op::Transport;
use super::params::Params;
use super::pattern::inside;
use super::protocol::End;
use super::target;
use crate::stats::Named;
use crate::verbs::{
    Ah, ConnectOptions, Cq, Device, Mr, Pd, Qp, QpCaps, QpInfo, QpOptions, RemoteMemory, same_gid_type,
};
use arrayvec::ArrayVec;
use engine::limits::{MAX_CQE, MAX_INLINE};
use engine::{Access, AddressHandle, QpType};
use std::net::IpAddr;
use std::sync::Arc;
use wire::{Mtu, QKey, Qpn};

/// RNR timer code that we ask for: 10 µs, the shortest there is, since receives are posted again at once.
const RNR_TIMER: u8 = 1;
/// Local ACK timeout, 4.096 µs × 2^16 = 268 ms: with its retries an end may be kept from its core for two
/// seconds, as happens to measurements on a machine that does other things too. A peer that died is noticed
/// by its closed line.
const ACK_TIMEOUT: u8 = 16;

/// Where a QP's messages go.
pub(super) struct Peer {
    /// Address of the peer's target area.
    pub target_addr: u64,
    /// Its key.
    pub target_rkey: u32,
    /// UD: the way to the peer's QP.
    pub datagram: Option<Datagram>,
}

/// The way to a UD QP.
pub(super) struct Datagram {
    pub ah: Arc<AddressHandle>,
    pub qpn: Qpn,
    pub qkey: QKey,
    /// Keeps the handle's protection domain.
    _ah: Ah,
}

/// One end's objects.
pub(super) struct Side {
    pub cq: Cq,
    pub qps: Vec<Qp>,
    /// What is sent from or fetched to.
    pub local: Mr,
    /// What the peer sends to or reads from.
    pub target: Mr,
    pd: Pd,
    options: ConnectOptions,
}

impl Side {
    /// The objects for a run, its QPs in INIT. `gid_index` is the GID to use.
    pub fn new(
        device: &Device,
        params: &Params,
        gid_index: usize,
        is_server: bool,
    ) -> Result<Side, RunError> {
        let layout = Layout::of(params);
        let pd = device.alloc_pd();
        let remote = Access::REMOTE_WRITE | Access::REMOTE_READ | Access::REMOTE_ATOMIC;
        let local = pd.reg_mr(layout.local_len() as usize, Access::LOCAL_WRITE)?;
        let target = pd.reg_mr(layout.target_len() as usize, Access::LOCAL_WRITE | remote)?;
        inside(local.buffer().fill(0, local.len(), 0));
        target::prepare(params, &target, is_server);
        // No more than are under way: each place more is memory that messages take turns in.
        let sends = layout.window;
        let completions = u64::from(params.qps) * u64::from(sends + layout.receives);
        let cq = device.create_cq(completions.min(MAX_CQE.into()) as u32)?;
        let options = ConnectOptions {
            sgid_index: Some(gid_index),
            path_mtu: Mtu::from_bytes(params.mtu),
            max_rd_atomic: params.outs,
            timeout: ACK_TIMEOUT,
            min_rnr_timer: RNR_TIMER,
            traffic_class: params.tos,
            ..ConnectOptions::default()
        };
        let qp_options = QpOptions {
            caps: QpCaps {
                max_send_wr: sends,
                max_recv_wr: layout.receives.max(1),
                max_send_sge: 1,
                max_recv_sge: 1,
                max_inline_data: params.inline.min(MAX_INLINE as u32) as usize,
            },
            ..QpOptions::new(qp_type(params.transport), &cq)
        };
        let qps = (0..params.qps).map(|_| pd.create_qp(&qp_options)).collect::<Result<Vec<Qp>, _>>()?;
        for qp in &qps {
            match params.transport {
                Transport::Ud => qp.activate(&options)?,
                Transport::Rc | Transport::Uc => qp.to_init(&options)?,
            }
        }
        Ok(Side { cq, qps, local, target, pd, options })
    }

    /// What to tell the peer.
    pub fn end(&self) -> End {
        let qps = self.qps.iter().map(|qp| qp.info(&self.options)).collect();
        End { qps, target: self.target.remote() }
    }

    /// Connects to what the peer told.
    pub fn connect(&self, peer: &End) -> Result<Vec<Peer>, RunError> {
        if peer.qps.len() != self.qps.len() {
            return Err(RunError::Mismatch { ours: self.qps.len(), theirs: peer.qps.len() });
        }
        let pairs = self.qps.iter().zip(&peer.qps);
        if self.qps.first().is_some_and(|qp| qp.qp_type() == QpType::Ud) {
            // All of them are at the same port.
            let Some(first) = peer.qps.first() else { return Ok(Vec::new()) };
            let index = self.options.sgid_index.unwrap_or_else(|| self.pd.device().default_gid_index());
            same_gid_type(self.pd.device(), index, first)?;
            let ah = self.address(first.gid)?;
            return pairs.map(|(_, info)| datagram(info, &ah, peer.target)).collect();
        }
        pairs
            .map(|(qp, info)| {
                qp.connect(info, &self.options)?;
                Ok(Peer { target_addr: peer.target.addr, target_rkey: peer.target.rkey, datagram: None })
            })
            .collect()
    }

    fn address(&self, gid: IpAddr) -> Result<Ah, RunError> {
        let mut addressing =
            self.pd.device().resolve(gid, self.options.sgid_index).map_err(crate::error::QpError::from)?;
        addressing.traffic_class = self.options.traffic_class.unwrap_or(addressing.traffic_class);
        Ok(Ah::new(&self.pd, addressing)?)
    }

    /// What the QPs have counted, zeros left out.
    pub fn counters(&self) -> Named {
        let mut sum = Named::new();
        // A QP whose worker does not answer is left out.
        for counters in self.qps.iter().filter_map(|qp| qp.counters().ok()) {
            for (name, value) in counters.iter().filter(|&(_, value)| value != 0) {
                *sum.entry(name.to_owned()).or_default() += value;
            }
        }
        sum
    }
}

fn datagram(info: &QpInfo, ah: &Ah, target: RemoteMemory) -> Result<Peer, RunError> {
    let qkey = QKey::new(info.qkey);
    let datagram = Datagram { ah: Arc::clone(ah.handle()), qpn: info.qpn()?, qkey, _ah: ah.clone() };
    Ok(Peer { target_addr: target.addr, target_rkey: target.rkey, datagram: Some(datagram) })
}

fn qp_type(transport: Transport) -> QpType {
    match transport {
        Transport::Rc => QpType::Rc,
        Transport::Uc => QpType::Uc,
        Transport::Ud => QpType::Ud,
    }
}

/// A message's bytes, to be carried in the request.
#[inline]
pub(super) fn inline_bytes(local: &Mr, offset: u64, len: u32) -> ArrayVec<u8, MAX_INLINE> {
    let mut bytes = [0; MAX_INLINE];
    let len = (len as usize).min(MAX_INLINE);
    inside(local.read(offset as usize, &mut bytes[..len]));
    let mut inline = ArrayVec::from(bytes);
    inline.truncate(len);
    inline
}

/// Changes the middle byte of a message, so that a check must fail.
pub(super) fn spoil(local: &Mr, offset: u64, len: u32) {
    if len > 0 {
        let at = offset as usize + len as usize / 2;
        let mut byte = [0];
        inside(local.read(at, &mut byte));
        inside(local.write(at, &[!byte[0]]));
    }
}
