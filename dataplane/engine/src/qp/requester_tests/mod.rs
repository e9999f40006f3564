//! Dialogues of the sending side: requests posted and responses in, exactly these packets and completions out.
//!
//! A packet is shown as a line: PSN in hex, name, payload bytes, then `A` (AckReq), `SE`, and the extension headers:
//! `@va+len` for a RETH, `atomic(swap or add, compare)`, `imm(…)`, `inv(…)`, `to(qkey)` for a DETH.

mod ack_requests;
mod atomics;
mod bind_mw;
mod completion;
mod cq_overflow;
mod drain;
mod error_flush;
mod fast_register;
mod fence;
mod flush;
mod full_sink;
mod go_back;
mod huge;
mod lent;
mod local_faults;
mod local_invalidate;
mod middles;
mod operations;
mod places;
mod plain;
mod rd_atomic_limit;
mod read;
mod read_middles;
mod read_restart;
mod refusals;
mod rnr;
mod runs;
mod segmentation;
mod timeout;
mod uc;
mod ud;
mod window;
mod xrc;

use crate::memory::Memory;
use crate::packet::{Payload, RxPacket};
use crate::status::{Cqe, WcStatus};
use crate::testkit::{LOCAL, PD, PEER, Packet, QPN, Region, Rig, addressing, attributes};
use crate::wr::{Remote, SendFlags, SendOp, SendWr, Sge, WrData};
use crate::{Access, QpAttr, QpAttrMask, QpInit, QpState, QpType};
use crate::{CompletionQueue, Engine, EngineConfig, EventQueue, QpShared, RecvQueue, SendQueue};
use std::sync::Arc;
use wire::{
    Aeth, AtomicAckEth, AtomicEth, Bth, Deth, ExtHeader, HeaderTemplate, Ieth, ImmDt, Msn, Mtu, NakCode,
    Operation, Position, Qpn, RKey, Reth, Syndrome,
};

/// Where the peer's memory is said to be.
const REMOTE: Remote = Remote { addr: 0x7F00_0000, rkey: RKey::new(0xABCD) };

/// A signaled request.
fn wr(wr_id: u64, op: SendOp, sges: &[Sge]) -> SendWr {
    let data = WrData::Sges(sges.iter().copied().collect());
    SendWr { wr_id, op, data, flags: SendFlags::SIGNALED }
}

/// A signaled request with its data in itself.
fn inline(wr_id: u64, op: SendOp, bytes: &[u8]) -> SendWr {
    let data = WrData::Inline(bytes.iter().copied().collect());
    SendWr { wr_id, op, data, flags: SendFlags::SIGNALED }
}

fn with_flags(wr: SendWr, flags: SendFlags) -> SendWr {
    SendWr { flags, ..wr }
}

/// Another RC QP of the same engine, in RTS, whose peer has its number.
fn neighbour(rig: &mut Rig, depth: u32) -> Arc<QpShared> {
    let (qpn, sq) = (Qpn::new(0x12), SendQueue::new(depth, 1, 0));
    let shared = Arc::new(QpShared::new(qpn, QpType::Rc, sq, Arc::new(RecvQueue::new(1, 1))));
    let init = QpInit {
        shared: Arc::clone(&shared),
        pd: PD,
        send_cq: Arc::clone(&rig.send_cq),
        recv_cq: Arc::clone(&rig.send_cq),
        sq_sig_all: false,
        port_mtu: Mtu::Mtu4096,
    };
    rig.engine.create_qp(init).unwrap();
    for state in [QpState::Init, QpState::Rtr, QpState::Rts] {
        let rule = crate::qp::rule(QpType::Rc, shared.state(), state).unwrap();
        let attr = QpAttr { state, dest_qpn: qpn, ..attributes() };
        rig.engine.modify_qp(rig.now, qpn, &attr, rule.required | QpAttrMask::STATE).unwrap();
    }
    shared
}

/// An RC QP in RTS and a region that may be used for everything.
fn rc() -> (Rig, Region) {
    rc_with(attributes())
}

/// A QP in an engine that is made for it: what the rig has no words for.
struct Own<M> {
    engine: Engine<M>,
    shared: Arc<QpShared>,
    cq: Arc<CompletionQueue>,
    events: Arc<EventQueue>,
}

impl<M: Memory> Own<M> {
    fn new(memory: M, sq_sig_all: bool, rq: Arc<RecvQueue>) -> Self {
        Own::with_cq(memory, sq_sig_all, rq, Arc::new(CompletionQueue::new(1, 16, || {})))
    }

    fn with_cq(memory: M, sq_sig_all: bool, rq: Arc<RecvQueue>, cq: Arc<CompletionQueue>) -> Self {
        let events = Arc::new(EventQueue::new(8));
        let sq = SendQueue::new(8, 8, 0);
        let shared = Arc::new(QpShared::new(QPN, QpType::Rc, sq, rq));
        let mut engine = Engine::new(
            EngineConfig { max_qps: 1, max_mrs: 1, ..EngineConfig::default() },
            memory,
            Arc::clone(&events),
        );
        let init = QpInit {
            shared: Arc::clone(&shared),
            pd: PD,
            send_cq: Arc::clone(&cq),
            recv_cq: Arc::clone(&cq),
            sq_sig_all,
            port_mtu: Mtu::Mtu4096,
        };
        engine.create_qp(init).unwrap();
        Own { engine, shared, cq, events }
    }

    fn modify(&mut self, attr: &QpAttr, state: QpState) {
        let rule = crate::qp::rule(QpType::Rc, self.shared.state(), state).unwrap();
        let attr = QpAttr { state, ..attr.clone() };
        self.engine.modify_qp(0, QPN, &attr, rule.required | QpAttrMask::STATE).unwrap();
    }

    fn connect(&mut self, attr: &QpAttr) {
        for state in [QpState::Init, QpState::Rtr, QpState::Rts] {
            self.modify(attr, state);
        }
    }

    fn post(&mut self, wr: SendWr) {
        self.shared.post_send(wr).unwrap();
        self.engine.on_doorbell(0, QPN);
    }

    fn deliver(&mut self, packet: &Packet) {
        let bytes = packet.frame(&HeaderTemplate::new(&addressing(PEER, LOCAL)).unwrap());
        let frame = wire::Frame::parse(&bytes, bytes.len()).unwrap();
        let payload = Payload::contiguous(&packet.payload);
        self.engine.on_packet(0, &RxPacket { frame: &frame, head: &bytes, payload });
    }
}

fn rc_with(attr: QpAttr) -> (Rig, Region) {
    let mut rig = Rig::with_capacities(QpType::Rc, QpState::Rts, attr, 512, 1024);
    let region = rig.region(0x8_0000, Access::LOCAL_WRITE);
    (rig, region)
}

/// Bytes `from..from + len` of a region as the rig fills it.
fn pattern(from: usize, len: usize) -> Vec<u8> {
    (from..from + len).map(|i| (i % 251) as u8 + 1).collect()
}

fn show(packets: &[Packet]) -> Vec<String> {
    packets.iter().map(line).collect()
}

fn line(packet: &Packet) -> String {
    assert_eq!(packet.ext.len(), packet.info().ext_len(), "the headers are those of the opcode");
    let mut line = format!("{:x} {} {}", packet.bth.psn.value(), packet.info().name(), packet.payload.len());
    let mut add = |text: String| {
        line.push(' ');
        line.push_str(&text);
    };
    if packet.bth.ack_req {
        add("A".into());
    }
    if packet.bth.solicited {
        add("SE".into());
    }
    if let Some(Deth { qkey, .. }) = packet.header() {
        add(format!("to({:x})", qkey.value()));
    }
    if let Some(Reth { va, dma_len, .. }) = packet.header() {
        add(format!("@{:x}+{dma_len}", va));
    }
    if let Some(AtomicEth { swap_or_add, compare, .. }) = packet.header() {
        add(format!("atomic({swap_or_add:x}, {compare:x})"));
    }
    if let Some(ImmDt(imm)) = packet.header() {
        add(format!("imm({imm:?})"));
    }
    if let Some(Ieth { rkey }) = packet.header() {
        add(format!("inv({:x})", rkey.value()));
    }
    line
}

/// What the QP sends now is exactly this.
#[track_caller]
fn sends(rig: &mut Rig, expected: &[&str]) {
    assert_eq!(show(&rig.sent()), expected);
}

/// The send completions since the last look are exactly these.
#[track_caller]
fn completes(rig: &Rig, expected: &[(u64, WcStatus)]) {
    let cqes: Vec<(u64, WcStatus)> =
        rig.send_cqes().iter().map(|cqe: &Cqe| (cqe.wr_id, cqe.status)).collect();
    assert_eq!(cqes, expected);
}

/// `local`, number 2, stands between two SENDs that time out: they go out again, and it is neither done again nor completed again.
#[track_caller]
fn passes_by_when_it_goes_back(rig: &mut Rig, local: SendWr) {
    rig.post_send(wr(1, SendOp::Send, &[]));
    rig.post_send(local);
    rig.post_send(wr(3, SendOp::Send, &[]));
    rig.sent();
    rig.advance(100_000_000);
    sends(rig, &["100 SEND Only 0 A", "101 SEND Only 0 A"]);
    ack(rig, 0x101);
    completes(rig, &[(1, WcStatus::Success), (2, WcStatus::Success), (3, WcStatus::Success)]);
}

fn response(rig: &Rig, operation: Operation, at: Position, psn: u32, payload: &[u8]) -> Packet {
    let packet = rig.packet(operation, at, psn, payload);
    let has_aeth = Bth { ..packet.bth }.opcode.info().is_some_and(|info| info.has(Aeth::KIND));
    if has_aeth { packet.with(Aeth { syndrome: Syndrome::ACK, msn: Msn::new(0) }) } else { packet }
}

fn acknowledge(rig: &mut Rig, psn: u32, syndrome: Syndrome) {
    let packet = rig.packet(Operation::Acknowledge, Position::Only, psn, &[]);
    rig.deliver(&packet.with(Aeth { syndrome, msn: Msn::new(0) }));
}

fn ack(rig: &mut Rig, psn: u32) {
    acknowledge(rig, psn, Syndrome::ACK);
}

fn nak(rig: &mut Rig, psn: u32, code: NakCode) {
    acknowledge(rig, psn, Syndrome::Nak(code));
}

fn rnr_nak(rig: &mut Rig, psn: u32, timer: u8) {
    acknowledge(rig, psn, Syndrome::RnrNak { timer });
}

fn read_response(rig: &mut Rig, at: Position, psn: u32, payload: &[u8]) {
    let packet = response(rig, Operation::ReadResponse, at, psn, payload);
    rig.deliver(&packet);
}

fn atomic_ack(rig: &mut Rig, psn: u32, original: u64) {
    let packet = response(rig, Operation::AtomicAcknowledge, Position::Only, psn, &[]);
    rig.deliver(&packet.with(AtomicAckEth { original }));
}
