//! Messages up to 2^31 bytes: arithmetic at the edges, with memory that is not there.

use super::*;
use crate::memory::{Memory, RegionGone, RegionId, Span};
use crate::mr::MemoryRegion;
use crate::packet::{PacketSink, Payload, RxPacket, SinkError, TxPacket};
use crate::queue::{QpShared, RecvQueue, SendQueue};
use crate::testkit::{LOCAL, PD, PEER, QPN, addressing, attributes};
use crate::{CompletionQueue, Engine, EngineConfig, EventQueue, QpAttr, QpAttrMask, QpInit, QpState};
use std::cell::Cell;
use std::sync::Arc;
use wire::{HeaderTemplate, LKey, Mtu, Psn};

const HALF: u32 = 1 << 31;

/// Remembers only where the last write ended and how much was written.
#[derive(Debug, Default)]
struct Nowhere {
    end: Cell<u64>,
    written: Cell<u64>,
}

impl Memory for Nowhere {
    fn read(&self, _: Span, _: &mut [u8]) -> Result<(), RegionGone> {
        Ok(())
    }
    fn write(&self, dst: Span, src: &[u8]) -> Result<(), RegionGone> {
        assert_eq!(dst.len() as usize, src.len());
        self.end.set(dst.offset() + src.len() as u64);
        self.written.set(self.written.get() + src.len() as u64);
        Ok(())
    }
    fn fetch_add(&self, _: Span, _: u64) -> Result<u64, RegionGone> {
        Err(RegionGone)
    }
    fn compare_swap(&self, _: Span, _: u64, _: u64) -> Result<u64, RegionGone> {
        Err(RegionGone)
    }
}

/// Counts packets and checks that each continues where the one before ended.
#[derive(Default)]
struct Counting {
    packets: u64,
    end: u64,
    last: Option<Packet>,
}

impl PacketSink for Counting {
    fn emit(&mut self, packet: &TxPacket<'_>) -> Result<(), SinkError> {
        self.packets += 1;
        for span in packet.payload.spans() {
            assert_eq!(span.offset(), self.end);
            self.end += u64::from(span.len());
        }
        self.last = Some(Packet { bth: packet.bth, ext: packet.ext, payload: Vec::new() });
        Ok(())
    }
}

struct Huge {
    engine: Engine<Nowhere>,
    shared: Arc<QpShared>,
    cq: Arc<CompletionQueue>,
}

fn huge(path_mtu: Mtu) -> Huge {
    let cq = Arc::new(CompletionQueue::new(1, 16, || {}));
    let sq = SendQueue::new(8, 8, 0);
    let shared = Arc::new(QpShared::new(QPN, QpType::Rc, sq, Arc::new(RecvQueue::new(1, 1))));
    let events = Arc::new(EventQueue::new(1));
    let mut engine = Engine::new(EngineConfig { max_qps: 1, max_mrs: 1 }, Nowhere::default(), events);
    let id = RegionId { slot: 0, generation: 0 };
    engine.add_mr(Arc::new(MemoryRegion::user(PD, id, 0x100, 0, 1 << 32, Access::LOCAL_WRITE)));
    let init = QpInit {
        shared: Arc::clone(&shared),
        pd: PD,
        send_cq: Arc::clone(&cq),
        recv_cq: Arc::clone(&cq),
        sq_sig_all: true,
        port_mtu: Mtu::Mtu4096,
    };
    engine.create_qp(init).unwrap();
    for state in [QpState::Init, QpState::Rtr, QpState::Rts] {
        let rule = crate::qp::rule(QpType::Rc, engine.qp(QPN).unwrap().state(), state).unwrap();
        let attr = QpAttr { state, path_mtu, ..attributes() };
        engine.modify_qp(0, QPN, &attr, rule.required | QpAttrMask::STATE).unwrap();
    }
    Huge { engine, shared, cq }
}

impl Huge {
    fn post(&mut self, wr: SendWr) {
        self.shared.post_send(wr).unwrap();
        self.shared.answer();
        self.engine.on_doorbell(0, QPN);
    }

    fn respond(&mut self, operation: Operation, at: Position, psn: Psn, payload: &[u8]) {
        let packet = Packet::new(QpType::Rc, operation, at, QPN, psn, payload);
        let packet = match at {
            Position::Middle => packet,
            _ => packet.with(Aeth { syndrome: Syndrome::ACK, msn: Msn::new(0) }),
        };
        let bytes = packet.frame(&HeaderTemplate::new(&addressing(PEER, LOCAL)).unwrap());
        let frame = wire::Frame::parse(&bytes, bytes.len()).unwrap();
        self.engine
            .on_packet(0, &RxPacket { frame: &frame, head: &bytes, payload: Payload::contiguous(payload) });
    }
}

fn sge(addr: u64, len: u32) -> Sge {
    Sge { addr, len, lkey: LKey::new(0x100) }
}

#[test]
fn every_byte_of_the_longest_write_leaves_once() {
    for len in [HALF - 1, HALF] {
        let mut huge = huge(Mtu::Mtu4096);
        huge.post(wr(
            1,
            SendOp::Write(REMOTE),
            &[sge(0, HALF - 5), sge(u64::from(HALF) - 5, len - (HALF - 5))],
        ));
        let mut sink = Counting::default();
        let mut acked = 0;
        while acked < wire::packets(len, Mtu::Mtu4096) {
            huge.engine.poll_transmit(0, &mut sink);
            acked = sink.packets as u32;
            huge.respond(Operation::Acknowledge, Position::Only, Psn::new(0xFF + acked), &[]);
        }
        assert_eq!(sink.end, u64::from(len));
        let last = sink.last.unwrap();
        assert_eq!((last.info().name(), last.bth.pad_count), ("WRITE Last", Bth::pad_for(len as usize)));
        assert_eq!(huge.cq.poll().map(|cqe| cqe.status), Some(WcStatus::Success));
    }
}

#[test]
fn the_longest_read_takes_half_of_the_psn_space_and_holds_back_what_is_behind() {
    let mut huge = huge(Mtu::Mtu256);
    huge.post(wr(1, SendOp::Read(REMOTE), &[sge(0, HALF - 1)]));
    huge.post(wr(2, SendOp::Send, &[]));
    let mut sink = Counting::default();
    huge.engine.poll_transmit(0, &mut sink);
    assert_eq!(sink.packets, 1);
    let packets = wire::packets(HALF - 1, Mtu::Mtu256);
    assert_eq!(packets, 1 << 23);
    let payload = [7; 256];
    for at in 0..packets - 1 {
        let position = if at == 0 { Position::First } else { Position::Middle };
        huge.respond(Operation::ReadResponse, position, Psn::new(0x100).add(at), &payload);
    }
    assert!(huge.cq.is_empty());
    huge.respond(Operation::ReadResponse, Position::Last, Psn::new(0x100).add(packets - 1), &payload[..255]);
    let cqe = huge.cq.poll().unwrap();
    assert_eq!((cqe.status, cqe.byte_len), (WcStatus::Success, HALF - 1));
    let memory = huge.engine.memory();
    assert_eq!((memory.end.get(), memory.written.get()), (u64::from(HALF) - 1, u64::from(HALF) - 1));
    huge.engine.poll_transmit(0, &mut sink);
    assert_eq!((sink.packets, sink.last.map(|last| last.bth.psn)), (2, Some(Psn::new(0x100).add(packets))));
}

#[test]
fn two_long_reads_never_share_more_than_half_of_the_psn_space() {
    let mut huge = huge(Mtu::Mtu256);
    huge.post(wr(1, SendOp::Read(REMOTE), &[sge(0, 256)]));
    huge.post(wr(2, SendOp::Read(REMOTE), &[sge(0, HALF)]));
    let mut sink = Counting::default();
    huge.engine.poll_transmit(0, &mut sink);
    assert_eq!(sink.packets, 1);
    huge.respond(Operation::ReadResponse, Position::Only, Psn::new(0x100), &[1; 256]);
    huge.engine.poll_transmit(0, &mut sink);
    assert_eq!(sink.packets, 2);
}
