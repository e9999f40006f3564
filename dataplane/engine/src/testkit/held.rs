//! Packets whose payloads the memory holds, one by one and together.

use super::{HeapMemory, Packet, Rig};
use crate::engine::QpPlace;
use crate::packet::{Payload, RxPacket};
use crate::qp::middles_run;
use wire::{Bth, Frame, Run};

impl Rig {
    /// A packet arrives whose payload the memory holds, and finds to be what its sender summed, or not.
    pub fn deliver_held(&mut self, packet: &Packet, spoilt: bool) {
        let bytes = packet.frame(&self.from_peer);
        let frame = Frame::parse(&bytes, bytes.len()).expect("a frame that parses");
        self.memory.hold(&packet.payload, spoilt);
        let head = &bytes[..frame.payload_offset()];
        let payload = Payload::held(packet.payload.len() as u32);
        self.engine.on_packet(self.now, &RxPacket { frame: &frame, head, payload });
    }

    /// As [`deliver_runs`](Self::deliver_runs), packets whose payloads the memory holds: those for which `spoilt` says so are not what their sender summed.
    pub fn deliver_middles(&mut self, packets: &[Packet], spoilt: impl Fn(usize) -> bool) -> u32 {
        let frames: Vec<_> = packets.iter().map(|packet| packet.frame(&self.from_peer)).collect();
        let (mut begin, mut together) = (0, 0);
        while let Some(first) = frames.get(begin) {
            let frame = Frame::parse(first, first.len()).expect("a frame that parses");
            let headers = |bytes: &Vec<u8>| bytes[..frame.payload_offset().min(bytes.len())].to_vec();
            let mut run =
                Run::of_headers(&frame, &headers(first), first.len()).filter(|_| middles_run(frame.info));
            let follows = |bytes: &&Vec<u8>| {
                run.as_mut().is_some_and(|run| run.take_headers(&headers(bytes), bytes.len()).is_some())
            };
            let count = frames[begin + 1..].iter().take_while(follows).count();
            let place = self.hold_and_deliver(&frame, &packets[begin], spoilt(begin));
            let mut next = begin + 1..=begin + count;
            let hold = |memory: &HeapMemory| {
                let index = next.next()?;
                memory.hold(&packets[index].payload, spoilt(index));
                let last = frames[index].get(frame.bth_offset() + Bth::LEN - 4..)?;
                last.first_chunk().copied()
            };
            let executed = self.engine.deliver_middles(self.now, place, &frame, hold);
            together += executed;
            let behind = begin + 1 + executed as usize;
            for index in behind..=begin + count {
                self.hold_and_deliver(&frame.following(&frames[index]), &packets[index], spoilt(index));
            }
            begin += 1 + count;
        }
        together
    }

    /// As [`deliver_held`](Self::deliver_held), in a burst that goes on.
    pub fn deliver_held_in_burst(&mut self, packet: &Packet, spoilt: bool) {
        let bytes = packet.frame(&self.from_peer);
        let frame = Frame::parse(&bytes, bytes.len()).expect("a frame that parses");
        self.hold_and_deliver(&frame, packet, spoilt);
    }

    /// Delivers a packet, in a burst, whose payload the memory holds. Where its QP is.
    fn hold_and_deliver(&mut self, frame: &Frame, packet: &Packet, spoilt: bool) -> QpPlace {
        self.memory.hold(&packet.payload, spoilt);
        let qpn = frame.bth().dest_qpn;
        let place = self.engine.place_of(qpn, frame.info).unwrap_or(QpPlace::NOWHERE);
        let bytes = packet.frame(&self.from_peer);
        let head = &bytes[..frame.payload_offset()];
        let payload = Payload::held(packet.payload.len() as u32);
        self.engine.deliver_at(self.now, place, qpn, &RxPacket { frame, head, payload });
        place
    }
}
