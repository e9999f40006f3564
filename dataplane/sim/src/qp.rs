//! QPs of a world: how they are made and connected.

use crate::endpoint::{EndpointId, PD};
use crate::world::World;
use engine::qp::rule;
use engine::queue::{CompletionQueue, QpShared, RecvQueue, SendQueue};
use engine::wr::AddressHandle;
use engine::{Access, QpAttr, QpAttrMask, QpInit, QpState, QpType, limits};
use rand::RngExt;
use std::sync::Arc;
use wire::{Addressing, HeaderTemplate, Mtu, Psn, QKey, Qpn, RoceVersion};

/// Names a QP of a world.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct QpId(pub(crate) usize);

/// How QPs are made and connected.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Path MTU.
    pub mtu: Mtu,
    /// Over IPv6 rather than IPv4.
    pub v6: bool,
    /// Places in each work queue.
    pub depth: u32,
    /// READs and atomics in flight, each way.
    pub max_rd_atomic: u8,
    /// ACK timeout code.
    pub timeout: u8,
    /// Retries after timeouts and sequence errors.
    pub retry_cnt: u8,
    /// Retries after RNR NAKs.
    pub rnr_retry: u8,
    /// RNR timer code.
    pub min_rnr_timer: u8,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            mtu: Mtu::Mtu1024,
            v6: false,
            depth: 128,
            max_rd_atomic: 4,
            timeout: 12,
            retry_cnt: 7,
            rnr_retry: 7,
            min_rnr_timer: 8,
        }
    }
}

pub(crate) struct SimQp {
    pub endpoint: EndpointId,
    pub qpn: Qpn,
    pub shared: Arc<QpShared>,
    pub send_cq: Arc<CompletionQueue>,
    pub recv_cq: Arc<CompletionQueue>,
}

/// The Q_Key of every UD QP.
pub(crate) const QKEY: QKey = QKey::new(0x0102_0304);

impl World {
    /// A QP in RESET.
    pub fn create_qp(&mut self, endpoint: EndpointId, qp_type: QpType, options: &Options) -> QpId {
        let rq = Arc::new(RecvQueue::new(options.depth, limits::MAX_SGE));
        self.create_qp_with(endpoint, qp_type, options, rq)
    }

    pub(crate) fn create_qp_with(
        &mut self,
        endpoint: EndpointId,
        qp_type: QpType,
        options: &Options,
        rq: Arc<RecvQueue>,
    ) -> QpId {
        let id = QpId(self.qps.len());
        // Unlike each other and without pattern, as real ones are.
        let qpn = Qpn::new(self.rng.random_range(0x10..0x10_0000) << 4 | id.0 as u32 & 0xF);
        let sq = SendQueue::new(options.depth, limits::MAX_SGE, limits::MAX_INLINE);
        let cqes = options.depth.max(rq.depth()) as usize * 2;
        let cq = |which| Arc::new(CompletionQueue::new(which, cqes, || {}));
        let qp = SimQp {
            endpoint,
            qpn,
            shared: Arc::new(QpShared::new(qpn, qp_type, sq, rq)),
            send_cq: cq(2 * id.0 as u32),
            recv_cq: cq(2 * id.0 as u32 + 1),
        };
        let init = QpInit {
            shared: qp.shared.clone(),
            pd: PD,
            send_cq: qp.send_cq.clone(),
            recv_cq: qp.recv_cq.clone(),
            sq_sig_all: false,
            port_mtu: Mtu::Mtu4096,
        };
        self.endpoints[endpoint.0].engines[0]
            .create_qp(init)
            .expect("a world has room for 64 QPs per endpoint");
        self.qps.push(qp);
        id
    }

    /// Two QPs of a connected type, connected to each other and in RTS.
    pub fn connect(
        &mut self,
        qp_type: QpType,
        a: EndpointId,
        b: EndpointId,
        options: &Options,
    ) -> (QpId, QpId) {
        let (one, other) = (self.create_qp(a, qp_type, options), self.create_qp(b, qp_type, options));
        self.join(one, other, options);
        (one, other)
    }

    /// Connects two QPs in RESET to each other.
    pub(crate) fn join(&mut self, one: QpId, other: QpId, options: &Options) {
        let (one_psn, other_psn) = (self.first_psn(), self.first_psn());
        let end = |qp: QpId, psn| {
            let SimQp { endpoint, qpn, .. } = self.qps[qp.0];
            let endpoint = &self.endpoints[endpoint.0];
            let gid = if options.v6 { endpoint.v6 } else { endpoint.v4 };
            (self.qps[qp.0].endpoint, check::End { gid, qpn, psn })
        };
        let (a, b) = (end(one, one_psn), end(other, other_psn));
        self.taps.connect(a, b, options.mtu);
        self.raise(one, self.attributes(one, other, one_psn, other_psn, options));
        self.raise(other, self.attributes(other, one, other_psn, one_psn, options));
    }

    /// Takes two QPs, whatever became of them, through RESET and connects them anew, with other first PSNs.
    pub(crate) fn reconnect(&mut self, qps: [QpId; 2], options: &Options) {
        for qp in qps {
            let attr = QpAttr { state: QpState::Reset, ..QpAttr::default() };
            self.modify(qp, &attr, QpAttrMask::STATE).expect("every state may be reset");
        }
        match self.qp_type(qps[0]) {
            QpType::Ud => qps.into_iter().for_each(|qp| self.ready_ud(qp)),
            _ => self.join(qps[0], qps[1], options),
        }
    }

    /// Receives that wait in a QP's queue.
    pub(crate) fn receives_waiting(&self, qp: QpId) -> usize {
        self.qps[qp.0].shared.rq().len()
    }

    /// Destroys a QP; tells whether anybody still holds on to it.
    pub(crate) fn destroy(&mut self, qp: QpId) -> bool {
        let SimQp { endpoint, qpn, ref shared, .. } = self.qps[qp.0];
        let shared = Arc::clone(shared);
        let gone = self.endpoints[endpoint.0]
            .engines
            .iter_mut()
            .filter(|engine| engine.has_qp(qpn))
            .all(|engine| engine.destroy_qp(qpn));
        // The world's own, and this one.
        !gone || Arc::strong_count(&shared) > 2
    }

    /// A UD QP in RTS.
    pub fn create_ud(&mut self, endpoint: EndpointId, options: &Options) -> QpId {
        let id = self.create_qp(endpoint, QpType::Ud, options);
        self.ready_ud(id);
        id
    }

    pub(crate) fn ready_ud(&mut self, qp: QpId) {
        let sq_psn = self.first_psn();
        self.raise(qp, QpAttr { qkey: QKEY, sq_psn, ..QpAttr::default() });
    }

    /// The way from one endpoint to another, for UD.
    pub fn address_handle(&self, from: EndpointId, to: EndpointId, options: &Options) -> Arc<AddressHandle> {
        let addressing = Addressing { udp_sport: 0xC000, ..self.addressing(from, to, options) };
        let template = HeaderTemplate::new(&addressing).expect("addresses of one family");
        Arc::new(AddressHandle::new(PD, addressing.dst, template))
    }

    /// Random, and often near the end of the space: sequence numbers must wrap in many runs.
    fn first_psn(&mut self) -> Psn {
        let near_the_end = self.rng.random_bool(0.5);
        Psn::new(if near_the_end { self.rng.random_range(0xFF_FFC0..0x100_0000) } else { self.rng.random() })
    }

    fn addressing(&self, from: EndpointId, to: EndpointId, options: &Options) -> Addressing {
        let (from, to) = (&self.endpoints[from.0], &self.endpoints[to.0]);
        Addressing {
            version: RoceVersion::V2,
            smac: from.mac,
            dmac: to.mac,
            vlan: None,
            src: if options.v6 { from.v6 } else { from.v4 },
            dst: if options.v6 { to.v6 } else { to.v4 },
            traffic_class: 0,
            flow_label: 0,
            hop_limit: 64,
            udp_sport: 0,
        }
    }

    fn attributes(&self, own: QpId, peer: QpId, sq_psn: Psn, rq_psn: Psn, options: &Options) -> QpAttr {
        let (own, peer) = (&self.qps[own.0], &self.qps[peer.0]);
        QpAttr {
            access: Access::REMOTE_WRITE
                | Access::REMOTE_READ
                | Access::REMOTE_ATOMIC
                | Access::FLUSH_GLOBAL
                | Access::FLUSH_PERSISTENT,
            path: Some(self.addressing(own.endpoint, peer.endpoint, options)),
            path_mtu: options.mtu,
            dest_qpn: peer.qpn,
            sq_psn,
            rq_psn,
            max_rd_atomic: options.max_rd_atomic,
            max_dest_rd_atomic: options.max_rd_atomic,
            min_rnr_timer: options.min_rnr_timer,
            timeout: options.timeout,
            retry_cnt: options.retry_cnt,
            rnr_retry: options.rnr_retry,
            ..QpAttr::default()
        }
    }

    /// RESET → INIT → RTR → RTS.
    fn raise(&mut self, qp: QpId, attr: QpAttr) {
        for to in [QpState::Init, QpState::Rtr, QpState::Rts] {
            let from = self.state(qp);
            let rule = rule(self.qps[qp.0].shared.qp_type(), from, to).expect("the way up");
            self.modify(qp, &QpAttr { state: to, ..attr.clone() }, rule.required | QpAttrMask::STATE)
                .unwrap_or_else(|error| panic!("{from:?} to {to:?}: {error}"));
        }
    }
}
