//! Messages up to 2^31 bytes: arithmetic at the edges, with memory that is not there.

use super::*;
use crate::memory::{Extent, PersistError, RegionGone, RegionId, Span};
use crate::mr::MemoryRegion;
use crate::packet::{PacketSink, SinkError, TxPacket};
use std::cell::Cell;
use wire::{LKey, Psn};

const HALF: u32 = 1 << 31;

/// Remembers only where the last write ended and how much was written.
#[derive(Debug, Default)]
struct Nowhere {
    end: Cell<u64>,
    written: Cell<u64>,
}

impl Memory for Nowhere {
    fn store(&self, _: Span, _: [u8; 8]) -> Result<(), RegionGone> {
        Ok(())
    }
    fn make_visible(&self, _: Extent) -> Result<(), RegionGone> {
        Ok(())
    }
    fn persist(&self, _: Extent) -> Result<(), PersistError> {
        Ok(())
    }
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
        self.last =
            Some(Packet { bth: packet.bth(), ext: packet.ext, payload: Vec::new(), again: packet.again });
        Ok(())
    }
}

fn huge(path_mtu: Mtu) -> Own<Nowhere> {
    let mut own = Own::new(Nowhere::default(), false, Arc::new(RecvQueue::new(1, 1)));
    let id = RegionId { slot: 0, generation: 0 };
    own.engine.add_mr(Arc::new(MemoryRegion::user(PD, id, 0x100, 0, 1 << 32, Access::LOCAL_WRITE)));
    own.connect(&QpAttr { path_mtu, ..attributes() });
    own
}

fn respond(huge: &mut Own<Nowhere>, operation: Operation, at: Position, psn: Psn, payload: &[u8]) {
    let packet = Packet::new(QpType::Rc, operation, at, QPN, psn, payload);
    let packet = match at {
        Position::Middle => packet,
        _ => packet.with(Aeth { syndrome: Syndrome::ACK, msn: Msn::new(0) }),
    };
    huge.deliver(&packet);
}

/// All responses to a READ of 2^31 - 1 bytes at MTU 256 that begins at `first`. Gives the PSN behind them.
fn answer_half(huge: &mut Own<Nowhere>, first: Psn) -> Psn {
    let packets = wire::packets(HALF - 1, Mtu::Mtu256);
    assert_eq!(packets, 1 << 23);
    let payload = [7; 256];
    respond(huge, Operation::ReadResponse, Position::First, first, &payload);
    // Eight million frames are not built anew: only their PSN differs.
    let middle =
        Packet::new(QpType::Rc, Operation::ReadResponse, Position::Middle, QPN, Psn::new(0), &payload);
    let bytes = middle.frame(&HeaderTemplate::new(&addressing(PEER, LOCAL)).unwrap());
    let frame = wire::Frame::parse(&bytes, bytes.len()).unwrap();
    for at in 1..packets - 1 {
        let (frame, payload) = (frame.with_psn(first.add(at)), Payload::contiguous(&payload));
        huge.engine.on_packet(0, &RxPacket { frame: &frame, head: &bytes, payload });
    }
    respond(huge, Operation::ReadResponse, Position::Last, first.add(packets - 1), &payload[..255]);
    first.add(packets)
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
            respond(&mut huge, Operation::Acknowledge, Position::Only, Psn::new(0xFF + acked), &[]);
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
    let end = answer_half(&mut huge, Psn::new(0x100));
    let cqe = huge.cq.poll().unwrap();
    assert_eq!((cqe.status, cqe.byte_len), (WcStatus::Success, HALF - 1));
    let memory = huge.engine.memory();
    assert_eq!((memory.end.get(), memory.written.get()), (u64::from(HALF) - 1, u64::from(HALF) - 1));
    huge.engine.poll_transmit(0, &mut sink);
    assert_eq!((sink.packets, sink.last.map(|last| last.bth.psn)), (2, Some(end)));
}

#[test]
fn a_repetition_half_of_the_psn_space_ago_is_forgotten() {
    let mut huge = huge(Mtu::Mtu256);
    let mut sink = Counting::default();
    huge.post(wr(1, SendOp::Send, &[]));
    huge.engine.poll_transmit(0, &mut sink);
    let nak = Packet::new(QpType::Rc, Operation::Acknowledge, Position::Only, QPN, Psn::new(0x100), &[]);
    huge.deliver(&nak.with(Aeth { syndrome: Syndrome::Nak(NakCode::PsnSequence), msn: Msn::new(0) }));
    huge.engine.poll_transmit(0, &mut sink);
    respond(&mut huge, Operation::Acknowledge, Position::Only, Psn::new(0x100), &[]);
    huge.post(wr(2, SendOp::Read(REMOTE), &[sge(0, HALF - 1)]));
    huge.engine.poll_transmit(0, &mut sink);
    let next = answer_half(&mut huge, Psn::new(0x101));
    huge.post(wr(3, SendOp::Read(REMOTE), &[sge(0, 8)]));
    huge.post(wr(4, SendOp::Send, &[]));
    huge.engine.poll_transmit(0, &mut sink);
    respond(&mut huge, Operation::Acknowledge, Position::Only, next.next(), &[]);
    let before = sink.packets;
    huge.engine.poll_transmit(0, &mut sink);
    assert_eq!(sink.packets - before, 2, "the READ and the SEND again");
}

#[test]
fn two_long_reads_never_share_more_than_half_of_the_psn_space() {
    let mut huge = huge(Mtu::Mtu256);
    huge.post(wr(1, SendOp::Read(REMOTE), &[sge(0, 256)]));
    huge.post(wr(2, SendOp::Read(REMOTE), &[sge(0, HALF)]));
    let mut sink = Counting::default();
    huge.engine.poll_transmit(0, &mut sink);
    assert_eq!(sink.packets, 1);
    respond(&mut huge, Operation::ReadResponse, Position::Only, Psn::new(0x100), &[1; 256]);
    huge.engine.poll_transmit(0, &mut sink);
    assert_eq!(sink.packets, 2);
}
