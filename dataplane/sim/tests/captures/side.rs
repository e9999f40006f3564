//! One of our engines in the place of a Linux machine: one QP, and memory of the shape that Linux had.

use crate::capture::Seen;
use crate::flows::End;
use engine::qp::rule;
use engine::queue::{CompletionQueue, QpShared, RecvQueue, SendQueue};
use engine::{
    Access, Engine, EngineConfig, EventQueue, MemoryRegion, Nanos, Payload, PdId, QpAttr, QpAttrMask, QpInit,
    QpState, QpType, RecvWr, RegionId, RxPacket, SendWr, Sge,
};
use sim::{FrameSink, VecMemory};
use std::sync::Arc;
use wire::{Addressing, Frame, LKey, Mtu, Psn, QKey, Qpn, RoceVersion};

const PD: PdId = PdId(1);

/// What a QP is made with.
pub struct Spec {
    pub qp_type: QpType,
    pub own: End,
    pub peer: End,
    pub mtu: Mtu,
    pub rq_psn: Psn,
    pub sq_psn: Psn,
    pub qkey: QKey,
}

pub struct Side {
    pub engine: Engine<VecMemory>,
    pub memory: VecMemory,
    pub shared: Arc<QpShared>,
    pub send_cq: Arc<CompletionQueue>,
    pub recv_cq: Arc<CompletionQueue>,
    pub now: Nanos,
    qpn: Qpn,
    ip_id: u16,
}

impl Side {
    pub fn new(spec: &Spec) -> Side {
        let memory = VecMemory::default();
        let config = EngineConfig { max_qps: 1, max_mrs: 8, ..EngineConfig::default() };
        let mut engine = Engine::new(config, memory.clone(), Arc::new(EventQueue::new(8)));
        let shared = Arc::new(QpShared::new(
            spec.own.qpn,
            spec.qp_type,
            SendQueue::new(256, 1, 0),
            Arc::new(RecvQueue::new(256, 1)),
        ));
        let cq = |id| Arc::new(CompletionQueue::new(id, 512, || {}));
        let (send_cq, recv_cq) = (cq(1), cq(2));
        let init = QpInit {
            shared: shared.clone(),
            pd: PD,
            send_cq: send_cq.clone(),
            recv_cq: recv_cq.clone(),
            sq_sig_all: true,
            port_mtu: Mtu::Mtu4096,
        };
        engine.create_qp(init).expect("room for one QP");
        let mut side = Side { engine, memory, shared, send_cq, recv_cq, now: 1, qpn: spec.own.qpn, ip_id: 0 };
        side.raise(spec);
        side
    }

    fn raise(&mut self, spec: &Spec) {
        for (from, to) in
            [(QpState::Reset, QpState::Init), (QpState::Init, QpState::Rtr), (QpState::Rtr, QpState::Rts)]
        {
            let attr = QpAttr {
                state: to,
                access: Access::REMOTE_WRITE | Access::REMOTE_READ | Access::REMOTE_ATOMIC,
                qkey: spec.qkey,
                path: Some(addressing(&spec.own, &spec.peer)),
                path_mtu: spec.mtu,
                dest_qpn: spec.peer.qpn,
                rq_psn: spec.rq_psn,
                sq_psn: spec.sq_psn,
                max_rd_atomic: 16,
                max_dest_rd_atomic: 16,
                min_rnr_timer: 12,
                ..QpAttr::default()
            };
            let required = rule(spec.qp_type, from, to).expect("the way up").required;
            self.engine.modify_qp(0, self.qpn, &attr, required | QpAttrMask::STATE).expect("good attributes");
        }
    }

    /// Memory at an address under a key.
    pub fn register(&mut self, key: u32, addr: u64, content: Vec<u8>, access: Access) -> RegionId {
        let len = content.len() as u64;
        let id = self.memory.add(content);
        self.engine.add_mr(Arc::new(MemoryRegion::user(PD, id, key, addr, len, access)));
        id
    }

    pub fn post_recv(&mut self, wr_id: u64, sge: Sge) {
        self.shared.post_recv(RecvWr { wr_id, sges: [sge].into_iter().collect() }).expect("a deep queue");
    }

    pub fn post_send(&mut self, wr: SendWr) {
        if self.shared.post_send(wr).expect("a deep queue") {
            self.engine.on_doorbell(self.now, self.qpn);
        }
    }

    /// A frame of the capture arrives.
    pub fn deliver(&mut self, seen: &Seen) {
        let payload = Payload::contiguous(seen.payload());
        let packet = RxPacket { frame: &seen.frame, head: &seen.bytes, payload };
        match seen.frame.bth().dest_qpn {
            // The worker finds the members of a group.
            Qpn::MULTICAST => self.engine.deliver(self.now, self.qpn, &packet),
            _ => self.engine.on_packet(self.now, &packet),
        }
    }

    /// What our side sends now, as frames that were sealed and parsed again.
    pub fn emitted(&mut self) -> Vec<Seen> {
        let mut sink = FrameSink::new(&self.memory, usize::MAX, &mut self.ip_id);
        self.engine.poll_transmit(self.now, &mut sink);
        let parse = |bytes: Vec<u8>| {
            let frame = Frame::parse(&bytes, bytes.len()).expect("our own frames parse");
            frame.verify_icrc(&bytes, [&bytes[..]]).expect("and are sealed");
            Seen { at: self.now, bytes, frame }
        };
        sink.into_frames().into_iter().map(parse).collect()
    }

    pub fn received(&self) -> Vec<engine::Cqe> {
        std::iter::from_fn(|| self.recv_cq.poll()).collect()
    }

    pub fn completed(&self) -> Vec<engine::Cqe> {
        std::iter::from_fn(|| self.send_cq.poll()).collect()
    }
}

/// What frames from one end to the other carry below the BTH.
pub fn addressing(from: &End, to: &End) -> Addressing {
    Addressing {
        version: RoceVersion::V2,
        smac: from.mac,
        dmac: to.mac,
        vlan: None,
        src: from.gid,
        dst: to.gid,
        traffic_class: 0,
        flow_label: 0,
        hop_limit: 64,
        udp_sport: 0,
    }
}

/// Local memory of our side: keys that no capture has.
pub fn local(key: u32, offset: u64, len: u32) -> Sge {
    Sge { addr: offset, len, lkey: LKey::new(key) }
}

/// The key of the region that messages are sent from.
pub const OUT: u32 = 0xFFFF_F100;
/// The key of the region that receives and results go to.
pub const IN: u32 = 0xFFFF_F200;
