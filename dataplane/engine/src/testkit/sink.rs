//! Sinks of tests.

use super::{HeapMemory, Packet};
use crate::memory::{Memory, RegionGone, RegionId};
use crate::packet::{Gather, PacketSink, SinkError, TxPacket};
use wire::Bth;

/// A sink that keeps packets, up to `room`.
#[derive(Debug)]
pub struct ListSink {
    memory: HeapMemory,
    /// Packets that still fit.
    pub room: usize,
    /// What was sent.
    pub sent: Vec<Packet>,
}

impl ListSink {
    /// A sink that gathers from `memory` and takes `room` packets.
    pub fn new(memory: HeapMemory, room: usize) -> ListSink {
        ListSink { memory, room, sent: Vec::new() }
    }
}

impl PacketSink for ListSink {
    fn emit(&mut self, packet: &TxPacket<'_>) -> Result<(), SinkError> {
        if self.room == 0 {
            return Err(SinkError::Full);
        }
        let mut payload = match packet.payload {
            Gather::Bytes(bytes) => bytes.to_vec(),
            Gather::Piece(_) | Gather::Spans { .. } => Vec::new(),
        };
        for span in packet.payload.spans() {
            let mut piece = vec![0; span.len() as usize];
            self.memory.read(span, &mut piece).map_err(|RegionGone| SinkError::RegionGone)?;
            payload.extend_from_slice(&piece);
        }
        assert_eq!(payload.len(), packet.payload.len(), "the spans hold what the packet says");
        let headers = packet.bth().opcode.info().map(|info| info.ext_len());
        assert_eq!(Some(packet.ext.len()), headers, "the headers are those of the opcode");
        assert_eq!(packet.bth().pad_count, Bth::pad_for(payload.len()), "the pad fits the payload");
        self.room -= 1;
        self.sent.push(Packet { bth: packet.bth(), ext: packet.ext, payload, again: packet.again });
        Ok(())
    }
}

/// One whose memory loses a region when it has taken so many packets.
#[derive(Debug)]
pub struct Withdraws {
    /// What it has taken.
    pub list: ListSink,
    /// So many.
    pub after: usize,
    /// Which.
    pub region: RegionId,
}

impl PacketSink for Withdraws {
    fn emit(&mut self, packet: &TxPacket<'_>) -> Result<(), SinkError> {
        self.list.emit(packet)?;
        if self.list.sent.len() == self.after {
            self.list.memory.remove(self.region);
        }
        Ok(())
    }
}

/// One that lends payloads of [`Lends::FROM`] bytes or more.
#[derive(Debug)]
pub struct Lends {
    /// What it has taken.
    pub list: ListSink,
    /// The open loan.
    pub loan: u64,
    news: bool,
}

impl Lends {
    /// Shorter ones are copied.
    pub const FROM: usize = 200;

    /// A sink that takes `room` packets, all of one loan.
    pub fn new(memory: HeapMemory, room: usize, loan: u64) -> Lends {
        Lends { list: ListSink::new(memory, room), loan, news: false }
    }
}

impl PacketSink for Lends {
    fn emit(&mut self, packet: &TxPacket<'_>) -> Result<(), SinkError> {
        self.list.emit(packet)?;
        self.news |= packet.payload.len() >= Lends::FROM;
        Ok(())
    }

    fn take_loan(&mut self) -> Option<u64> {
        std::mem::take(&mut self.news).then_some(self.loan)
    }
}
