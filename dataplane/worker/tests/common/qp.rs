//! QPs and memory of a test endpoint, in verbs' steps.

use super::raw::way;
use super::{Endpoint, done};
use engine::{
    Access, CompletionQueue, Cqe, MemoryRegion, PdId, QpAttr, QpAttrMask, QpInit, QpShared, QpState, QpType,
    RecvQueue, RecvWr, SendFlags, SendOp, SendQueue, SendWr, Sge, WrData,
};
use memory::Buffer;
use std::sync::Arc;
use wire::{Addressing, LKey, Mtu, Psn, QKey, Qpn, RKey};
use worker::{CallError, Command, QpSnapshot, Reply};

/// First PSN of both directions: the 24 bits wrap soon.
pub const PSN: u32 = 0xFF_FFF0;

/// A QP of a test with its CQs.
pub struct TestQp {
    pub shared: Arc<QpShared>,
    pub sends: Arc<CompletionQueue>,
    pub receives: Arc<CompletionQueue>,
    pub home: usize,
}

/// A registered buffer.
pub struct TestMr {
    pub buffer: Arc<Buffer>,
    pub region: Arc<MemoryRegion>,
}

impl TestMr {
    pub fn sge(&self, offset: usize, len: u32) -> Sge {
        Sge { addr: self.buffer.addr() + offset as u64, len, lkey: LKey::new(self.region.key()) }
    }

    pub fn remote(&self, offset: usize) -> engine::wr::Remote {
        engine::wr::Remote { addr: self.buffer.addr() + offset as u64, rkey: RKey::new(self.region.key()) }
    }

    pub fn bytes(&self, offset: usize, len: usize) -> Vec<u8> {
        let mut bytes = vec![0; len];
        self.buffer.read(offset, &mut bytes).unwrap();
        bytes
    }
}

impl Endpoint {
    pub fn register(&self, index: u32, len: usize) -> TestMr {
        let buffer = Arc::new(Buffer::new(len).unwrap());
        let region = self.regions.register(Arc::clone(&buffer)).unwrap();
        let access = Access::LOCAL_WRITE | Access::REMOTE_WRITE | Access::REMOTE_READ | Access::REMOTE_ATOMIC;
        let region = Arc::new(MemoryRegion::user(
            PdId(1),
            region,
            index << 8 | 0x5A,
            buffer.addr(),
            len as u64,
            access,
        ));
        for handle in &self.handles {
            done(handle.call(Command::AddMr { lane: 0, region: Arc::clone(&region) }));
        }
        TestMr { buffer, region }
    }

    pub fn create_qp(&self, home: usize, qpn: Qpn, qp_type: QpType) -> TestQp {
        let queue = RecvQueue::new(256, 4);
        let shared = Arc::new(QpShared::new(qpn, qp_type, SendQueue::new(256, 4, 64), Arc::new(queue)));
        let sends = Arc::new(CompletionQueue::new(1, 1024, || {}));
        let receives = Arc::new(CompletionQueue::new(2, 1024, || {}));
        let init = QpInit {
            shared: Arc::clone(&shared),
            pd: PdId(1),
            send_cq: Arc::clone(&sends),
            recv_cq: Arc::clone(&receives),
            sq_sig_all: false,
            port_mtu: Mtu::Mtu4096,
        };
        done(self.handles[home].call(Command::CreateQp { lane: 0, init: Box::new(init) }));
        TestQp { shared, sends, receives, home }
    }

    /// RESET → INIT → RTR → RTS towards a QP of the peer.
    pub fn connect(&self, qp: &TestQp, peer: Qpn, mtu: Mtu) {
        self.connect_by(&way(self.at, self.peer), qp, peer, mtu);
    }

    /// RESET → INIT → RTR → RTS towards a QP on the other end of a way.
    pub fn connect_by(&self, way: &Addressing, qp: &TestQp, peer: Qpn, mtu: Mtu) {
        self.connect_waiting(way, qp, peer, mtu, 14);
    }

    /// Moves a QP to INIT, and tries RTR.
    pub fn try_connect_by(
        &self,
        way: &Addressing,
        qp: &TestQp,
        peer: Qpn,
        mtu: Mtu,
    ) -> Result<(), CallError> {
        use QpAttrMask as M;
        let init = QpAttr { state: QpState::Init, ..QpAttr::default() };
        self.modify(qp, init, M::STATE | M::PKEY_INDEX | M::PORT | M::ACCESS);
        let attr = QpAttr {
            state: QpState::Rtr,
            path: Some(*way),
            path_mtu: mtu,
            dest_qpn: peer,
            ..QpAttr::default()
        };
        let mask = M::STATE | M::AV | M::PATH_MTU | M::DEST_QPN | M::RQ_PSN;
        let mask = mask | M::MAX_DEST_RD_ATOMIC | M::MIN_RNR_TIMER;
        let qpn = qp.shared.qpn();
        let home = self.link.home(qpn).expect("the QP lives");
        let command = Command::ModifyQp { lane: 0, qpn, attr: Box::new(attr), mask };
        self.handles[home].call(command).map(|_| ())
    }

    /// As [`connect_by`](Self::connect_by), with the code of the ACK timeout; 0 waits for ever.
    pub fn connect_waiting(&self, way: &Addressing, qp: &TestQp, peer: Qpn, mtu: Mtu, timeout: u8) {
        use QpAttrMask as M;
        let init = M::STATE | M::PKEY_INDEX | M::PORT | M::ACCESS;
        let mut rtr = M::STATE | M::AV | M::PATH_MTU | M::DEST_QPN | M::RQ_PSN;
        let mut rts = M::STATE | M::SQ_PSN;
        if qp.shared.qp_type() == QpType::Rc {
            rtr |= M::MAX_DEST_RD_ATOMIC | M::MIN_RNR_TIMER;
            rts |= M::TIMEOUT | M::RETRY_CNT | M::RNR_RETRY | M::MAX_RD_ATOMIC;
        }
        for (state, mask) in [(QpState::Init, init), (QpState::Rtr, rtr), (QpState::Rts, rts)] {
            let attr = QpAttr {
                state,
                access: Access::REMOTE_WRITE | Access::REMOTE_READ | Access::REMOTE_ATOMIC,
                path: Some(*way),
                path_mtu: mtu,
                dest_qpn: peer,
                rq_psn: Psn::new(PSN),
                sq_psn: Psn::new(PSN),
                max_rd_atomic: 16,
                max_dest_rd_atomic: 16,
                min_rnr_timer: 1,
                timeout,
                ..QpAttr::default()
            };
            self.modify(qp, attr, mask);
        }
    }

    /// A UD QP ready to send and receive.
    pub fn activate_ud(&self, qp: &TestQp, qkey: QKey) {
        use QpAttrMask as M;
        let init = M::STATE | M::PKEY_INDEX | M::PORT | M::QKEY;
        for (state, mask) in
            [(QpState::Init, init), (QpState::Rtr, M::STATE), (QpState::Rts, M::STATE | M::SQ_PSN)]
        {
            self.modify(qp, QpAttr { state, qkey, ..QpAttr::default() }, mask);
        }
    }

    #[track_caller]
    pub fn modify(&self, qp: &TestQp, attr: QpAttr, mask: QpAttrMask) {
        let state = attr.state;
        let home = self.link.home(qp.shared.qpn()).expect("the QP lives");
        let command = Command::ModifyQp { lane: 0, qpn: qp.shared.qpn(), attr: Box::new(attr), mask };
        match self.handles[home].call(command) {
            Ok(Reply::State(now)) => assert_eq!(now, state),
            other => panic!("{other:?}"),
        }
    }

    #[track_caller]
    pub fn query(&self, worker: usize, qpn: Qpn) -> QpSnapshot {
        match self.handles[worker].call(Command::QueryQp { lane: 0, qpn }) {
            Ok(Reply::Qp(qp)) => *qp,
            other => panic!("{other:?}"),
        }
    }

    pub fn post(&self, qp: &TestQp, wr_id: u64, op: SendOp, data: WrData) {
        let wr = SendWr { wr_id, op, data, flags: SendFlags::SIGNALED };
        if qp.shared.post_send(wr).unwrap() {
            self.link.ring(qp.shared.qpn());
        }
    }
}

impl TestQp {
    pub fn post_recv(&self, wr_id: u64, sge: Sge) {
        let sges = std::iter::once(sge).collect();
        assert!(!self.shared.post_recv(RecvWr { wr_id, sges }).unwrap());
    }
}

pub fn sges(sges: &[Sge]) -> WrData {
    WrData::Sges(sges.iter().copied().collect())
}

/// Everything in a CQ.
pub fn poll_all(cq: &CompletionQueue) -> Vec<Cqe> {
    std::iter::from_fn(|| cq.poll()).collect()
}
