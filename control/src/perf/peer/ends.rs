//! This end's objects: memory, completion queue, QPs, and the way to the peer's.
//!
//! With rdma_cm each QP belongs to an identifier that connects it; else the records that the peer tells do.

use super::super::error::RunError;
use super::super::op::{Transport, Verb};
use super::super::params::Params;
use super::super::pattern::{Pattern, inside};
use super::super::poster::tag;
use super::content::{PINGPONG_FILL, room};
use super::record::Record;
use super::{CmWay, PeerOptions, PeerProgram};
use crate::cm::{CmId, CmOptions, ConnParam, PortSpace};
use crate::programs::ProgramError;
use crate::stats::Named;
use crate::verbs::{
    Ah, ConnectOptions, Cq, Device, Mr, Pd, Qp, QpCaps, QpInfo, QpOptions, RecvWr, RemoteMemory, SendWr,
};
use engine::limits::UD_GRH_BYTES;
use engine::{Access, QpType};
use wire::{Mtu, QKey};

/// The Q_Key of all of these programs' datagram QPs.
const QKEY: QKey = QKey::new(0x1111_1111);
/// Memory for messages under way, per direction.
const MEMORY: u64 = 128 << 20;
/// Most receives that are posted at a time, per QP.
const MAX_RECEIVES: u64 = 512;

/// Send requests beyond the window, for those that the peer has answered before it acknowledged.
const SPARE_SENDS: u32 = 8;

/// A QP of the peer, and how to reach it.
pub(super) struct Lane {
    /// Its memory, as far as it told.
    pub remote: RemoteMemory,
    datagram: Option<(Ah, wire::Qpn)>,
}

/// This end's objects.
pub(super) struct Ends {
    pub cq: Cq,
    pub qps: Vec<Qp>,
    /// What is sent from or fetched to: `window` slots per QP.
    pub local: Mr,
    /// What the peer reaches, or receives land in.
    pub target: Mr,
    /// Messages under way per QP at most.
    pub window: u32,
    /// Receives per QP.
    pub receives: u64,
    pub lanes: Vec<Lane>,
    /// With rdma_cm: what connects each QP.
    ids: Vec<CmId>,
    size: u32,
    verb: Verb,
    fill: Option<u8>,
    marks: bool,
    patterns: Vec<Pattern>,
    pd: Pd,
    options: ConnectOptions,
    qp_options: QpOptions,
}

/// From one message's memory to the next: what perftest has for a QP, room for a datagram's header, and whole words.
fn stride(size: u32) -> u64 {
    (room(size) + u64::from(UD_GRH_BYTES)).next_multiple_of(64)
}

impl Ends {
    /// The objects of a run, its QPs in INIT and its receives posted: a peer may send as soon as it can.
    pub fn new(
        device: &Device,
        params: &Params,
        options: &PeerOptions<'_>,
        gid_index: usize,
    ) -> Result<Ends, RunError> {
        let iters = params.iters().unwrap_or(1);
        let qps = u64::from(params.qps);
        let slots = (MEMORY / qps / room(params.size)).max(1);
        let window = slots.min(params.depth.into()).max(1) as u32;
        let lands = params.op.verb == Verb::Send;
        let receives = if lands { slots.min(iters + 1).min(MAX_RECEIVES) } else { 0 };
        let pd = device.alloc_pd();
        let room = stride(params.size);
        let remote = Access::REMOTE_WRITE | Access::REMOTE_READ | Access::REMOTE_ATOMIC;
        let local = pd.reg_mr((room * qps * u64::from(window)) as usize, Access::LOCAL_WRITE)?;
        let target = pd.reg_mr((room * qps * receives.max(1)) as usize, Access::LOCAL_WRITE | remote)?;
        let cq = device.create_cq((params.qps * (window + receives as u32 + 1)).max(16))?;
        let connect = ConnectOptions {
            sgid_index: Some(gid_index),
            path_mtu: Mtu::from_bytes(params.mtu),
            max_rd_atomic: params.outs,
            traffic_class: params.tos,
            qkey: QKEY,
            ..ConnectOptions::default()
        };
        let qp_type = match params.transport {
            Transport::Rc => QpType::Rc,
            Transport::Uc => QpType::Uc,
            Transport::Ud => QpType::Ud,
        };
        let qp_options = QpOptions {
            caps: QpCaps {
                max_send_wr: window + SPARE_SENDS,
                max_recv_wr: receives.max(1) as u32,
                ..QpCaps::default()
            },
            ..QpOptions::new(qp_type, &cq)
        };
        let ids = match &options.cm {
            Some(cm) => (0..qps).map(|_| identifier(cm, params)).collect::<Result<_, _>>()?,
            None => Vec::new(),
        };
        let make = |index: usize| -> Result<Qp, RunError> {
            match ids.get(index) {
                Some(id) => Ok(id.create_qp(&pd, &qp_options).map_err(ProgramError::from)?),
                None => Ok(pd.create_qp(&qp_options)?),
            }
        };
        let made = (0..qps as usize).map(make).collect::<Result<Vec<Qp>, RunError>>()?;
        let echo = options.program == PeerProgram::Pingpong;
        let ends = Ends {
            cq,
            qps: made,
            local,
            target,
            window,
            receives,
            lanes: Vec::new(),
            ids,
            size: params.size,
            verb: params.op.verb,
            // With one buffer for many QPs, nobody knows whose message comes back.
            fill: (echo && params.qps > 1).then_some(PINGPONG_FILL),
            marks: params.op.verb == Verb::Write && params.op.is_latency(),
            patterns: (0..params.qps as usize)
                .map(|qp| Pattern::new(params.seed, qp, !options.is_server))
                .collect(),
            pd,
            options: connect,
            qp_options,
        };
        if ends.verb == Verb::Read {
            ends.fill_target();
        }
        ends.open()?;
        Ok(ends)
    }

    /// What a READ of the peer brings: for each QP, its message 0.
    fn fill_target(&self) {
        for (qp, pattern) in self.patterns.iter().enumerate() {
            pattern.write(0, self.target.buffer(), self.target_offset(qp, 0), self.size);
        }
    }

    fn open(&self) -> Result<(), RunError> {
        for (index, qp) in self.qps.iter().enumerate() {
            match qp.qp_type() {
                // It is in INIT already.
                _ if self.is_cm() => {}
                QpType::Ud => qp.activate(&self.options)?,
                _ => qp.to_init(&self.options)?,
            }
            for slot in 0..self.receives {
                self.post_recv(index, slot)?;
            }
        }
        Ok(())
    }

    /// What to tell the peer of a QP.
    pub fn record(&self, index: usize) -> Record {
        let info = self.qps[index].info(&self.options);
        let addr = self.target.addr() + self.target_offset(index, 0);
        let reads = self.options.max_rd_atomic;
        Record { reads, qpn: info.qpn, psn: info.psn, rkey: self.target.rkey().value(), addr, gid: info.gid }
    }

    /// Whether rdma_cm connects the QPs.
    pub fn is_cm(&self) -> bool {
        !self.ids.is_empty()
    }

    /// Connects all QPs by rdma_cm.
    ///
    /// perftest's server ends its listener once the first connection is there, and makes another for those of its QPs when it has
    /// answered the empty record. Nothing tells when, and until then Linux rejects: in a capture its own client asks 0.7 ms later. So
    /// it is asked at once, and again where nobody listens.
    pub fn dial(&mut self, cm: &CmWay<'_>, params: &Params) -> Result<(), RunError> {
        let depth = self.options.max_rd_atomic;
        let param = ConnParam { responder_resources: depth, initiator_depth: depth, ..ConnParam::default() };
        for index in 0..self.ids.len() {
            let first = self.ids[index].clone();
            self.ids[index] =
                cm.dial.connect_when_heard(first, &param, || self.begin_anew(index, cm, params))?;
        }
        Ok(())
    }

    /// Another identifier for a QP that was refused, and another QP: with that one all its receives have ended. No other QP's
    /// have, as no peer sends before all are connected.
    fn begin_anew(&mut self, index: usize, cm: &CmWay<'_>, params: &Params) -> Result<CmId, ProgramError> {
        while self.cq.poll_one().is_some() {}
        let id = identifier(cm, params)?;
        self.qps[index] = id.create_qp(&self.pd, &self.qp_options)?;
        (0..self.receives).try_for_each(|slot| self.qps[index].post_recv(self.receive(index, slot)))?;
        Ok(id)
    }

    /// Disconnects them.
    pub fn hang_up(&self) {
        for id in &self.ids {
            // Where the peer was faster there is nothing to do.
            let _ = id.disconnect();
        }
    }

    /// Connects the next QP to what the peer told. By rdma_cm it is connected: its peer's memory is all there is to learn.
    pub fn connect(&mut self, record: &Record) -> Result<(), RunError> {
        let qp = &self.qps[self.lanes.len()];
        let info = QpInfo {
            qpn: record.qpn,
            psn: record.psn,
            gid: record.gid,
            gid_type: None,
            mtu: self.options.path_mtu.map_or(4096, Mtu::bytes),
            max_rd_atomic: record.reads.max(1),
            qkey: QKEY.value(),
        };
        let datagram = if qp.qp_type() == QpType::Ud {
            let ah = self.pd.create_ah(info.gid, self.options.sgid_index)?;
            Some((ah, info.qpn()?))
        } else {
            if !self.is_cm() {
                qp.connect(&info, &self.options)?;
            }
            None
        };
        let remote = RemoteMemory { addr: record.addr, len: room(self.size), rkey: record.rkey };
        self.lanes.push(Lane { remote, datagram });
        Ok(())
    }

    /// Where message `number` of a QP lies here while it is under way.
    pub fn local_offset(&self, qp: usize, number: u64) -> u64 {
        (qp as u64 * u64::from(self.window) + number % u64::from(self.window)) * stride(self.size)
    }

    /// Where a QP's receive `slot` lands, or where its peer writes (slot 0).
    pub fn target_offset(&self, qp: usize, slot: u64) -> u64 {
        (qp as u64 * self.receives.max(1) + slot) * stride(self.size)
    }

    /// Bytes before the payload of a receive.
    pub fn skip(&self) -> u32 {
        if self.qps.first().is_some_and(|qp| qp.qp_type() == QpType::Ud) { UD_GRH_BYTES } else { 0 }
    }

    /// Our messages on each QP.
    pub fn patterns(&self) -> Vec<Pattern> {
        self.patterns.clone()
    }

    /// Posts message `number` of a QP.
    pub fn post(&self, qp: usize, number: u64) -> Result<(), RunError> {
        let offset = self.local_offset(qp, number);
        self.prepare(qp, number, offset);
        let lane = &self.lanes[qp];
        let id = tag(qp, number);
        let at = lane.remote.at(0);
        let wr = match (self.verb, &lane.datagram) {
            (Verb::Send, Some((ah, qpn))) => SendWr::ud_send(id, ah, *qpn, QKEY, None),
            (Verb::Send, None) => SendWr::send(id),
            (Verb::Write, _) => SendWr::write(id, at),
            (Verb::Read, _) => SendWr::read(id, at),
            (Verb::Atomic, _) => SendWr::fetch_add(id, at, 1),
        };
        let wr = wr.sge(self.local.sge(offset as usize..offset as usize + self.size as usize));
        self.qps[qp].post_send(wr).map_err(|why| RunError::Post { qp, why })
    }

    /// The content of a message to send; elsewhere nothing that looks like what will be fetched.
    fn prepare(&self, qp: usize, number: u64, offset: u64) {
        match (self.verb, self.fill) {
            (Verb::Send, Some(byte)) => {
                inside(self.local.buffer().fill(offset as usize, self.size as usize, byte));
            }
            (Verb::Send | Verb::Write, _) => {
                self.patterns[qp].write(number, self.local.buffer(), offset, self.size);
            }
            (Verb::Read | Verb::Atomic, _) => {
                inside(self.local.buffer().fill(offset as usize, self.size as usize, 0));
            }
        }
        if self.marks {
            let last = offset as usize + self.size as usize - 1;
            inside(self.local.write(last, &[(number + 1) as u8]));
        }
    }

    /// Posts a receive.
    pub fn post_recv(&self, qp: usize, slot: u64) -> Result<(), RunError> {
        self.qps[qp].post_recv(self.receive(qp, slot)).map_err(|why| RunError::Post { qp, why })
    }

    fn receive(&self, qp: usize, slot: u64) -> RecvWr {
        let offset = self.target_offset(qp, slot) as usize;
        RecvWr::new(tag(qp, slot)).sge(self.target.sge(offset..offset + (self.size + self.skip()) as usize))
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

/// An identifier that knows the way to the peer.
fn identifier(cm: &CmWay<'_>, params: &Params) -> Result<CmId, ProgramError> {
    let id = cm.dial.resolve(PortSpace::Tcp, cm.from, &cm.to)?;
    let options =
        CmOptions { path_mtu: Mtu::from_bytes(params.mtu), traffic_class: params.tos, ..id.options() };
    id.set_options(options)?;
    Ok(id)
}
