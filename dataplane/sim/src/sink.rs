//! Packets become frames.

use crate::memory::VecMemory;
use engine::{Gather, Memory, PacketSink, RegionGone, SinkError, TxPacket};

/// Builds whole frames, iCRC and all, as long as there is room.
#[derive(Debug)]
pub struct FrameSink<'a> {
    memory: &'a VecMemory,
    room: usize,
    ip_id: &'a mut u16,
    frames: Vec<Vec<u8>>,
}

impl<'a> FrameSink<'a> {
    /// A sink for `room` frames with payload from `memory`. `ip_id` is counted on.
    pub fn new(memory: &'a VecMemory, room: usize, ip_id: &'a mut u16) -> Self {
        FrameSink { memory, room, ip_id, frames: Vec::new() }
    }

    /// The frames, in the order in which they were sent.
    pub fn into_frames(self) -> Vec<Vec<u8>> {
        self.frames
    }
}

impl PacketSink for FrameSink<'_> {
    fn emit(&mut self, packet: &TxPacket<'_>) -> Result<(), SinkError> {
        if self.frames.len() == self.room {
            return Err(SinkError::Full);
        }
        let payload = self.gather(&packet.payload).map_err(|RegionGone| SinkError::RegionGone)?;
        debug_assert_eq!(packet.bth().pad_count, wire::Bth::pad_for(payload.len()));
        *self.ip_id = self.ip_id.wrapping_add(1);
        let mut frame = Vec::new();
        wire::build_frame(packet.template, &packet.bth(), &packet.ext, *self.ip_id, &payload, &mut frame);
        self.frames.push(frame);
        Ok(())
    }
}

impl FrameSink<'_> {
    fn gather(&self, payload: &Gather<'_>) -> Result<Vec<u8>, RegionGone> {
        if let Gather::Bytes(bytes) = payload {
            return Ok(bytes.to_vec());
        }
        let mut all = vec![0; payload.len()];
        let mut rest = &mut all[..];
        for span in payload.spans() {
            let (piece, behind) = rest.split_at_mut(span.len() as usize);
            self.memory.read(span, piece)?;
            rest = behind;
        }
        assert!(rest.is_empty(), "the spans hold what the packet says");
        Ok(all)
    }
}
