//! An engine with one QP, and what it takes to bring it to a state.

use engine::qp::ModifyError;
use engine::queue::{QpShared, RecvQueue, SendQueue};
use engine::{
    CompletionQueue, Engine, EngineConfig, EventQueue, Extent, Memory, PacketSink, PdId, PersistError,
    QpAttr, QpAttrMask, QpInit, QpState, QpType, RecvWr, RegionGone, SendFlags, SendOp, SendWr, SinkError,
    Span, TxPacket, WrData,
};
use std::sync::Arc;
use wire::{Addressing, Gid, Mac, Mtu, Psn, QKey, Qpn, RoceVersion};

pub const QPN: Qpn = Qpn::new(0x12_3456);
pub const PEER: Qpn = Qpn::new(0x65_4321);

/// Memory without a region: these tests move no bytes.
pub struct NoMemory;

impl Memory for NoMemory {
    fn store(&self, _: Span, _: [u8; 8]) -> Result<(), RegionGone> {
        Err(RegionGone)
    }
    fn make_visible(&self, _: Extent) -> Result<(), RegionGone> {
        Err(RegionGone)
    }
    fn persist(&self, _: Extent) -> Result<(), PersistError> {
        Err(PersistError::Gone(RegionGone))
    }
    fn read(&self, _: Span, _: &mut [u8]) -> Result<(), RegionGone> {
        Err(RegionGone)
    }
    fn write(&self, _: Span, _: &[u8]) -> Result<(), RegionGone> {
        Err(RegionGone)
    }
    fn fetch_add(&self, _: Span, _: u64) -> Result<u64, RegionGone> {
        Err(RegionGone)
    }
    fn compare_swap(&self, _: Span, _: u64, _: u64) -> Result<u64, RegionGone> {
        Err(RegionGone)
    }
}

/// Takes every packet and forgets it.
pub struct Swallow;

impl PacketSink for Swallow {
    fn emit(&mut self, _: &TxPacket<'_>) -> Result<(), SinkError> {
        Ok(())
    }
}

/// One engine with one QP of a type, in RESET.
pub struct One {
    pub engine: Engine<NoMemory>,
    pub events: Arc<EventQueue>,
    pub shared: Arc<QpShared>,
    pub cq: Arc<CompletionQueue>,
}

impl One {
    pub fn new(qp_type: QpType) -> One {
        Self::with_rq(qp_type, Arc::new(RecvQueue::new(16, 4)))
    }

    pub fn with_rq(qp_type: QpType, rq: Arc<RecvQueue>) -> One {
        let events = Arc::new(EventQueue::new(16));
        let config = EngineConfig { max_qps: 4, max_mrs: 4, ..EngineConfig::default() };
        let mut engine = Engine::new(config, NoMemory, events.clone());
        let cq = Arc::new(CompletionQueue::new(1, 64, || {}));
        let init = qp_init(QPN, qp_type, rq, &cq);
        let shared = init.shared.clone();
        engine.create_qp(init).expect("room for one QP");
        One { engine, events, shared, cq }
    }

    /// The same, brought to a state by the usual moves.
    pub fn in_state(qp_type: QpType, state: QpState) -> One {
        let mut one = One::new(qp_type);
        one.raise_to(state);
        one
    }

    pub fn raise_to(&mut self, state: QpState) {
        use QpState::*;
        let moves: &[QpState] = match state {
            Reset => &[],
            Init => &[Init],
            Rtr => &[Init, Rtr],
            Rts => &[Init, Rtr, Rts],
            Sqd => &[Init, Rtr, Rts, Sqd],
            Err => &[Init, Err],
            Sqe => panic!("no modify leads to SQE"),
        };
        for &to in moves {
            self.go(to).unwrap_or_else(|error| panic!("to {to:?}: {error}"));
        }
    }

    /// A move with exactly what it requires.
    pub fn go(&mut self, to: QpState) -> Result<QpState, ModifyError> {
        let qp_type = self.shared.qp_type();
        let required =
            engine::qp::rule(qp_type, self.state(), to).map(|rule| rule.required).unwrap_or_default();
        self.modify(&QpAttr { state: to, ..good() }, required | QpAttrMask::STATE)
    }

    pub fn modify(&mut self, attr: &QpAttr, mask: QpAttrMask) -> Result<QpState, ModifyError> {
        self.engine.modify_qp(0, QPN, attr, mask)
    }

    pub fn state(&self) -> QpState {
        self.engine.qp(QPN).expect("the QP").state()
    }

    pub fn attr(&self) -> QpAttr {
        self.engine.qp(QPN).expect("the QP").attr()
    }
}

/// Attributes with a good value everywhere.
pub fn good() -> QpAttr {
    QpAttr {
        access: engine::Access::REMOTE_WRITE,
        path: Some(path()),
        path_mtu: Mtu::Mtu1024,
        dest_qpn: PEER,
        rq_psn: Psn::new(100),
        sq_psn: Psn::new(200),
        qkey: QKey::new(0x1111),
        max_rd_atomic: 4,
        max_dest_rd_atomic: 8,
        min_rnr_timer: 10,
        timeout: 12,
        retry_cnt: 5,
        rnr_retry: 6,
        ..QpAttr::default()
    }
}

pub fn path() -> Addressing {
    Addressing {
        version: RoceVersion::V2,
        smac: Mac([2, 0, 0, 0, 0, 0xA]),
        dmac: Mac([2, 0, 0, 0, 0, 0xB]),
        vlan: None,
        src: Gid::from_v4([10, 0, 0, 1]),
        dst: Gid::from_v4([10, 0, 0, 2]),
        traffic_class: 0,
        flow_label: 0,
        hop_limit: 64,
        udp_sport: 0,
    }
}

pub fn qp_init(qpn: Qpn, qp_type: QpType, rq: Arc<RecvQueue>, cq: &Arc<CompletionQueue>) -> QpInit {
    let sq = SendQueue::new(8, 4, 64);
    QpInit {
        shared: Arc::new(QpShared::new(qpn, qp_type, sq, rq)),
        pd: PdId(1),
        send_cq: cq.clone(),
        recv_cq: cq.clone(),
        sq_sig_all: false,
        port_mtu: Mtu::Mtu2048,
    }
}

/// An inline SEND of nothing.
pub fn send(wr_id: u64) -> SendWr {
    let data = WrData::Inline(Default::default());
    SendWr { wr_id, op: SendOp::Send, data, flags: SendFlags::SIGNALED }
}

pub fn recv(wr_id: u64) -> RecvWr {
    RecvWr { wr_id, sges: Default::default() }
}
