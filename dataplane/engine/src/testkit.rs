//! Doubles for tests: memory on the heap, a sink that keeps what it gets, and a rig, which is an engine with
//! one QP whose peer is the test.
//!
//! Tests of roles are dialogues: a QP in this state, this packet in, exactly these packets and completions
//! out.

mod held;
mod memory;
mod shared;
mod sink;

pub use memory::HeapMemory;
pub use shared::{DOMAIN, SRQN, receive, srq, xrc_srq};
pub use sink::{Lends, ListSink, Withdraws};

use crate::access::Access;
use crate::counters::{Counter, DropReason};
use crate::engine::{Engine, EngineConfig, QpPlace};
use crate::event::{AsyncEvent, EventQueue};
use crate::memory::RegionId;
use crate::mr::{MemoryRegion, PdId};
use crate::mw::{Binding, MemoryWindow, MwType};
use crate::packet::{Payload, RxPacket};
use crate::qp::{QpAttr, QpAttrMask, QpInit, QpState, QpType, runs};
use crate::queue::{CompletionQueue, QpShared, RecvQueue, SendQueue};
use crate::status::Cqe;
use crate::wr::{RecvWr, SendWr, Sge};
use crate::{Nanos, limits};
use std::sync::Arc;
use wire::{
    Addressing, Aeth, AtomicAckEth, Bth, ExtHeader, ExtHeaders, Frame, Gid, HeaderTemplate, LKey, Mac, Msn,
    Mtu, Opcode, OpcodeInfo, Operation, Position, Psn, QKey, Qpn, RKey, RoceVersion, Run, Syndrome,
    TxHeaders,
};

/// A packet as a value: one that was sent, or one to deliver.
#[derive(Clone, Debug)]
pub struct Packet {
    /// The BTH, with the pad count that goes on the wire.
    pub bth: Bth,
    /// Extension headers.
    pub ext: ExtHeaders,
    /// Payload without pad.
    pub payload: Vec<u8>,
    /// Whether the engine said that its PSN was sent before.
    pub again: bool,
}

impl Packet {
    /// A packet of a service with a payload and the right pad; add headers [`with`](Self::with).
    ///
    /// # Panics
    /// When the service has no such packet.
    pub fn new(qp_type: QpType, op: Operation, at: Position, dest: Qpn, psn: Psn, payload: &[u8]) -> Packet {
        let opcode = Opcode::of(qp_type.service(), op, at).expect("the service has this opcode");
        let bth = Bth { pad_count: Bth::pad_for(payload.len()), ..Bth::new(opcode, dest, psn) };
        Packet { bth, ext: ExtHeaders::EMPTY, payload: payload.to_vec(), again: false }
    }

    /// With one more extension header.
    #[must_use]
    pub fn with(mut self, header: impl ExtHeader) -> Packet {
        self.ext = self.ext.with(header);
        self
    }

    /// With the AckReq bit.
    #[must_use]
    pub fn ack_req(mut self) -> Packet {
        self.bth.ack_req = true;
        self
    }

    /// With the solicited bit.
    #[must_use]
    pub fn solicited(mut self) -> Packet {
        self.bth.solicited = true;
        self
    }

    /// What its opcode means.
    pub fn info(&self) -> &'static OpcodeInfo {
        self.bth.opcode.info().expect("a defined opcode")
    }

    /// Its operation and position.
    pub fn kind(&self) -> (Operation, Position) {
        (self.info().operation, self.info().position)
    }

    /// One of its extension headers.
    pub fn header<H: ExtHeader>(&self) -> Option<H> {
        H::parse(&self.ext.as_bytes()[self.info().offset_of(H::KIND)? - Bth::LEN..])
    }

    /// The syndrome of its AETH.
    pub fn syndrome(&self) -> Option<Syndrome> {
        Some(self.header::<Aeth>()?.syndrome)
    }

    /// The MSN of its AETH.
    pub fn msn(&self) -> Option<Msn> {
        Some(self.header::<Aeth>()?.msn)
    }

    /// The original value of an ATOMIC Acknowledge.
    pub fn original(&self) -> Option<u64> {
        Some(self.header::<AtomicAckEth>()?.original)
    }

    /// The whole frame, with a right iCRC.
    pub fn frame(&self, template: &HeaderTemplate) -> Vec<u8> {
        let mut frame = vec![0; wire::MAX_HEADERS_LEN];
        let TxHeaders { len, bth_offset, mut icrc } =
            wire::write_headers(template, &self.bth.to_bytes(), &self.ext, 0, self.payload.len(), &mut frame);
        let pad = &[0; 3][..usize::from(self.bth.pad_count)];
        frame.truncate(len);
        icrc.update(&frame[bth_offset..]);
        for piece in [&self.payload[..], pad] {
            icrc.update(piece);
            frame.extend_from_slice(piece);
        }
        frame.extend_from_slice(&icrc.to_wire());
        frame
    }
}

/// A registered region of the rig.
#[derive(Clone, Debug)]
pub struct Region {
    /// Its memory.
    pub id: RegionId,
    /// Its key object, shared with the engine.
    pub mr: Arc<MemoryRegion>,
    /// Address of its first byte.
    pub addr: u64,
}

impl Region {
    /// Its key for local use.
    pub fn lkey(&self) -> LKey {
        LKey::new(self.mr.key())
    }

    /// Its key for the peer.
    pub fn rkey(&self) -> RKey {
        RKey::new(self.mr.key())
    }

    /// `len` bytes of it, for a memory window.
    pub fn binding(&self, offset: u64, len: u64, access: Access) -> Binding {
        let (mr, mr_key) = (Arc::clone(&self.mr), self.mr.key());
        Binding { mr, mr_key, addr: self.addr + offset, len, access }
    }

    /// A piece of it.
    pub fn sge(&self, offset: u64, len: u32) -> Sge {
        Sge { addr: self.addr + offset, len, lkey: self.lkey() }
    }
}

/// The rig's own QP number.
pub const QPN: Qpn = Qpn::new(0x11);
/// The QP number of the peer, which the test plays.
pub const PEER_QPN: Qpn = Qpn::new(0x22);
/// The rig's address.
pub const LOCAL: Gid = Gid::from_v4([192, 0, 2, 10]);
/// The peer's address.
pub const PEER: Gid = Gid::from_v4([192, 0, 2, 20]);
/// The rig's protection domain.
pub const PD: PdId = PdId(1);

/// The addressing of packets from `src` to `dst`.
pub fn addressing(src: Gid, dst: Gid) -> Addressing {
    Addressing {
        version: RoceVersion::V2,
        smac: Mac([2, 0, 0, 0, 0, 10]),
        dmac: Mac([2, 0, 0, 0, 0, 20]),
        vlan: None,
        src,
        dst,
        traffic_class: 0,
        flow_label: 0,
        hop_limit: 64,
        udp_sport: 0xC123,
    }
}

/// Attributes of a connection that allows everything: MTU 256, both PSNs 0x100, four READs each way.
pub fn attributes() -> QpAttr {
    QpAttr {
        access: Access::LOCAL_WRITE
            | Access::REMOTE_WRITE
            | Access::REMOTE_READ
            | Access::REMOTE_ATOMIC
            | Access::FLUSH_GLOBAL
            | Access::FLUSH_PERSISTENT,
        qkey: QKey::new(0x1234),
        path: Some(addressing(LOCAL, PEER)),
        path_mtu: Mtu::Mtu256,
        dest_qpn: PEER_QPN,
        rq_psn: Psn::new(0x100),
        sq_psn: Psn::new(0x100),
        max_rd_atomic: 4,
        max_dest_rd_atomic: 4,
        min_rnr_timer: 12,
        ..QpAttr::default()
    }
}

fn own_receives(depth: u32) -> Arc<RecvQueue> {
    Arc::new(RecvQueue::new(depth, limits::MAX_SGE))
}

/// An engine with one QP, its queues, and hands for both of its ends.
#[derive(Debug)]
pub struct Rig {
    /// The engine.
    pub engine: Engine<HeapMemory>,
    /// Its memory.
    pub memory: HeapMemory,
    /// What the QP shares with posters.
    pub shared: Arc<QpShared>,
    /// Completions of sends.
    pub send_cq: Arc<CompletionQueue>,
    /// Completions of receives.
    pub recv_cq: Arc<CompletionQueue>,
    /// Asynchronous events.
    pub events: Arc<EventQueue>,
    /// The time.
    pub now: Nanos,
    /// Headers of packets from the peer.
    pub from_peer: HeaderTemplate,
    qp_type: QpType,
    attr: QpAttr,
    keys: u32,
}

impl Rig {
    /// A QP in RTS with the usual [`attributes`].
    pub fn new(qp_type: QpType) -> Rig {
        Rig::with(qp_type, QpState::Rts, attributes())
    }

    /// A QP in `state` (RESET, INIT, RTR, RTS, SQD or ERR).
    pub fn with(qp_type: QpType, state: QpState, attr: QpAttr) -> Rig {
        Rig::build(QPN, qp_type, state, attr, own_receives(64), 64, 256)
    }

    /// As [`with`](Self::with), under another number.
    pub fn numbered(qpn: Qpn, qp_type: QpType, state: QpState, attr: QpAttr) -> Rig {
        Rig::build(qpn, qp_type, state, attr, own_receives(64), 64, 256)
    }

    /// As [`with`](Self::with), with so many work requests in each queue and completions in each CQ.
    pub fn with_capacities(qp_type: QpType, state: QpState, attr: QpAttr, depth: u32, cqes: usize) -> Rig {
        Rig::build(QPN, qp_type, state, attr, own_receives(depth), depth, cqes)
    }

    /// As [`with_capacities`](Self::with_capacities), with any receive queue.
    pub fn with_queues(
        qp_type: QpType,
        state: QpState,
        attr: QpAttr,
        rq: &Arc<RecvQueue>,
        depth: u32,
        cqes: usize,
    ) -> Rig {
        Rig::build(QPN, qp_type, state, attr, Arc::clone(rq), depth, cqes)
    }

    fn build(
        qpn: Qpn,
        qp_type: QpType,
        state: QpState,
        attr: QpAttr,
        rq: Arc<RecvQueue>,
        depth: u32,
        cqes: usize,
    ) -> Rig {
        let config = EngineConfig { max_qps: 4, max_mrs: 16, ..EngineConfig::default() };
        Rig::configured(config, (qpn, qp_type), state, attr, rq, (depth, cqes))
    }

    /// In an engine of its own, with so many work requests and completions.
    pub fn configured(
        config: EngineConfig,
        (qpn, qp_type): (Qpn, QpType),
        state: QpState,
        attr: QpAttr,
        rq: Arc<RecvQueue>,
        (depth, cqes): (u32, usize),
    ) -> Rig {
        let memory = HeapMemory::default();
        let events = Arc::new(EventQueue::new(64));
        let send_cq = Arc::new(CompletionQueue::new(1, cqes, || {}));
        let recv_cq = Arc::new(CompletionQueue::new(2, cqes, || {}));
        let sq = SendQueue::new(depth, limits::MAX_SGE, limits::MAX_INLINE);
        let shared = Arc::new(QpShared::new(qpn, qp_type, sq, rq));
        let mut engine = Engine::new(config, memory.clone(), Arc::clone(&events));
        let init = QpInit {
            shared: Arc::clone(&shared),
            pd: PD,
            send_cq: Arc::clone(&send_cq),
            recv_cq: Arc::clone(&recv_cq),
            sq_sig_all: false,
            port_mtu: Mtu::Mtu4096,
        };
        engine.create_qp(init).expect("an empty engine has room");
        let from_peer = HeaderTemplate::new(&addressing(PEER, LOCAL)).expect("both are IPv4");
        let mut rig = Rig {
            engine,
            memory,
            shared,
            send_cq,
            recv_cq,
            events,
            now: 1_000_000,
            from_peer,
            qp_type,
            attr,
            keys: 0,
        };
        rig.climb(state);
        rig
    }

    /// Moves the QP up to `state`, through all that lies between.
    fn climb(&mut self, state: QpState) {
        let way: &[QpState] = match state {
            QpState::Reset => &[],
            QpState::Init => &[QpState::Init],
            QpState::Rtr => &[QpState::Init, QpState::Rtr],
            QpState::Rts => &[QpState::Init, QpState::Rtr, QpState::Rts],
            QpState::Sqd | QpState::Sqe | QpState::Err => &[QpState::Init, QpState::Rtr, QpState::Rts, state],
        };
        for &step in way {
            self.modify(step);
        }
    }

    /// Moves the QP one step, with what the move requires.
    pub fn modify(&mut self, to: QpState) {
        let from = self.state();
        let rule = crate::qp::rule(self.qp_type, from, to).expect("the move exists");
        let attr = QpAttr { state: to, ..self.attr.clone() };
        let mask = rule.required | QpAttrMask::STATE;
        self.engine.modify_qp(self.now, self.qpn(), &attr, mask).expect("the attributes are right");
    }

    fn qpn(&self) -> Qpn {
        self.shared.qpn()
    }

    /// The QP's state.
    pub fn state(&self) -> QpState {
        self.engine.qp(self.qpn()).expect("the rig's QP exists").state()
    }

    /// A counter of the QP.
    pub fn count(&self, counter: Counter) -> u64 {
        self.engine.counters().get(counter)
    }

    /// Discarded packets.
    pub fn dropped(&self, reason: DropReason) -> u64 {
        self.engine.counters().dropped(reason)
    }

    /// A region of `len` bytes that grants `access`, in the rig's PD. Its bytes count up from 1.
    pub fn region(&mut self, len: usize, access: Access) -> Region {
        self.region_of(PD, len, access)
    }

    /// As [`region`](Self::region), in another PD.
    pub fn region_of(&mut self, pd: PdId, len: usize, access: Access) -> Region {
        let id = self.memory.add((0..len).map(|i| (i % 251) as u8 + 1).collect());
        let addr = 0x10_0000 * u64::from(self.keys + 1);
        let mr = MemoryRegion::user(pd, id, self.next_key(), addr, len as u64, access);
        self.register(id, mr, addr)
    }

    /// A region for fast registration, valid already, with `access`.
    pub fn fast_region(&mut self, len: usize, access: Access) -> Region {
        let id = self.memory.add(vec![0; len]);
        let addr = 0x10_0000 * u64::from(self.keys + 1);
        let mr = MemoryRegion::fast(PD, id, self.next_key(), len as u64);
        mr.register(PD, RKey::new(mr.key()), addr, len as u64, access).expect("the region is free");
        self.register(id, mr, addr)
    }

    /// A memory window that is not bound.
    pub fn window(&mut self, pd: PdId, mw_type: MwType) -> Arc<MemoryWindow> {
        let mw = Arc::new(MemoryWindow::new(pd, mw_type, self.next_key()));
        self.engine.add_mw(Arc::clone(&mw));
        mw
    }

    fn next_key(&mut self) -> u32 {
        self.keys += 1;
        self.keys << 8 | 0x5A
    }

    fn register(&mut self, id: RegionId, mr: MemoryRegion, addr: u64) -> Region {
        let mr = Arc::new(mr);
        self.engine.add_mr(Arc::clone(&mr));
        Region { id, mr, addr }
    }

    /// Posts a receive.
    pub fn post_recv(&mut self, wr_id: u64, sges: &[Sge]) {
        let wr = RecvWr { wr_id, sges: sges.iter().copied().collect() };
        if self.shared.post_recv(wr).expect("the receive is right and has room") {
            self.doorbell();
        }
    }

    /// Posts a send request and rings.
    pub fn post_send(&mut self, wr: SendWr) {
        if self.shared.post_send(wr).expect("the request is right and has room") {
            self.doorbell();
        }
    }

    fn doorbell(&mut self) {
        self.engine.on_doorbell(self.now, self.qpn());
    }

    /// A packet of the peer to the rig's QP.
    pub fn packet(&self, op: Operation, at: Position, psn: u32, payload: &[u8]) -> Packet {
        Packet::new(self.qp_type, op, at, self.qpn(), Psn::new(psn), payload)
    }

    /// A packet of the peer arrives.
    pub fn deliver(&mut self, packet: &Packet) {
        let frame = packet.frame(&self.from_peer);
        self.deliver_frame(&frame);
    }

    /// As [`deliver`](Self::deliver), in a burst that goes on.
    pub fn deliver_in_burst(&mut self, packet: &Packet) {
        let bytes = packet.frame(&self.from_peer);
        let frame = Frame::parse(&bytes, bytes.len()).expect("a frame that parses");
        let payload = Payload::contiguous(&packet.payload);
        let qpn = frame.bth().dest_qpn;
        self.engine.deliver(self.now, qpn, &RxPacket { frame: &frame, head: &bytes, payload });
    }

    /// Packets of a burst, which goes on, as a worker delivers them: those that run, together. How many were executed together.
    pub fn deliver_runs(&mut self, packets: &[Packet]) -> u32 {
        let frames: Vec<_> = packets.iter().map(|packet| packet.frame(&self.from_peer)).collect();
        let (mut rest, mut together) = (&frames[..], 0);
        while let Some((first, behind)) = rest.split_first() {
            let frame = Frame::parse(first, first.len()).expect("a frame that parses");
            let payload = Payload::contiguous(&first[frame.payload_offset()..][..frame.payload_len()]);
            let (qpn, now) = (frame.bth().dest_qpn, self.now);
            let mut run = Run::of(&frame, first).filter(|_| runs(frame.info));
            let follows = |bytes: &&Vec<u8>| run.as_mut().is_some_and(|run| run.take(bytes));
            let count = behind.iter().take_while(follows).count();
            let place = self.engine.place_of(qpn, frame.info).unwrap_or(QpPlace::NOWHERE);
            self.engine.deliver_at(now, place, qpn, &RxPacket { frame: &frame, head: first, payload });
            let (followers, odd) = behind.split_at(count);
            together += self.engine.deliver_followers(now, place, &frame, followers, Vec::as_slice);
            rest = odd;
        }
        together
    }

    /// The burst ends.
    pub fn end_burst(&mut self) {
        self.engine.end_burst(self.now);
    }

    /// A frame arrives. It must be one that the parser takes.
    pub fn deliver_frame(&mut self, bytes: &[u8]) {
        let frame = Frame::parse(bytes, bytes.len()).expect("a frame that parses");
        let payload = &bytes[frame.payload_offset()..][..frame.payload_len()];
        let packet = RxPacket { frame: &frame, head: bytes, payload: Payload::contiguous(payload) };
        self.engine.on_packet(self.now, &packet);
    }

    /// A packet arrives in a buffer of segments: its payload is cut into pieces of these lengths, and the
    /// rest.
    pub fn deliver_cut(&mut self, packet: &Packet, lengths: &[usize]) {
        let bytes = packet.frame(&self.from_peer);
        let frame = Frame::parse(&bytes, bytes.len()).expect("a frame that parses");
        let (first, mut later) = packet.payload.split_at(lengths[0]);
        let mut rest = Vec::new();
        for &len in &lengths[1..] {
            let (piece, behind) = later.split_at(len);
            rest.push(piece);
            later = behind;
        }
        rest.push(later);
        let packet = RxPacket { frame: &frame, head: &bytes, payload: Payload::segmented(first, &rest) };
        self.engine.on_packet(self.now, &packet);
    }

    /// All that the engine sends now.
    pub fn sent(&mut self) -> Vec<Packet> {
        self.sent_into(usize::MAX)
    }

    /// What the engine sends into a sink of this much room.
    pub fn sent_into(&mut self, room: usize) -> Vec<Packet> {
        let mut sink = ListSink::new(self.memory.clone(), room);
        self.engine.poll_transmit(self.now, &mut sink);
        sink.sent
    }

    /// A packet arrives; gives what the engine sends then.
    pub fn answer(&mut self, packet: &Packet) -> Vec<Packet> {
        self.deliver(packet);
        self.sent()
    }

    /// The time goes on, and timers fire.
    pub fn advance(&mut self, by: Nanos) {
        self.now += by;
        self.engine.on_timeout(self.now);
    }

    /// Receive completions so far.
    pub fn recv_cqes(&self) -> Vec<Cqe> {
        std::iter::from_fn(|| self.recv_cq.poll()).collect()
    }

    /// Send completions so far.
    pub fn send_cqes(&self) -> Vec<Cqe> {
        std::iter::from_fn(|| self.send_cq.poll()).collect()
    }

    /// Events so far.
    pub fn raised(&self) -> Vec<AsyncEvent> {
        std::iter::from_fn(|| self.events.poll()).collect()
    }
}
