//! Datagrams from queue pair 1: sealed here, sent by worker 0, or looped.

use super::{Counter, LOOPED, Mad, Received};
use crate::endpoint::PortCore;
use std::sync::atomic::Ordering;
use wire::{
    Addressing, Bth, Deth, ExtHeaders, HeaderTemplate, Opcode, Operation, Position, Psn, QKey, Qpn, Reach,
    RoceVersion, Service, build_frame,
};

/// rocev2 facts, wire 3: v1 is not routed.
const V1_HOP_LIMIT: u8 = 1;

impl PortCore {
    /// Sends a datagram. What does not fit is counted and lost, as on any link: whoever sends repeats.
    pub fn send_mad(&self, way: &Addressing, mad: &Mad) {
        let outcome = match way.reach() {
            Reach::Own => self.loop_mad(way, mad),
            Reach::Wire | Reach::Group => self.inject_mad(way, mad),
        };
        self.gsi.counters.count(outcome);
    }

    /// The hop limit of what this port sends.
    pub fn hop_limit(&self, version: RoceVersion) -> u8 {
        if version == RoceVersion::V1 { V1_HOP_LIMIT } else { self.facts.qos.hop_limit }
    }

    /// To an address of this port: as if it had come from there.
    fn loop_mad(&self, way: &Addressing, mad: &Mad) -> Counter {
        let mut looped = self.gsi.looped();
        if looped.len() >= LOOPED {
            return Counter::LoopFull;
        }
        let back = Addressing { src: way.dst, dst: way.src, ..*way };
        looped.push_back(Received { mad: *mad, back });
        drop(looped);
        self.link.slow_waker().wake();
        Counter::Looped
    }

    fn inject_mad(&self, way: &Addressing, mad: &Mad) -> Counter {
        let Ok(template) = HeaderTemplate::new(way) else { return Counter::NotSent };
        let Some(opcode) = Opcode::of(Service::Ud, Operation::Send, Position::Only) else {
            return Counter::NotSent;
        };
        let psn = self.gsi.psn.fetch_add(1, Ordering::Relaxed);
        let bth = Bth::new(opcode, Qpn::GSI, Psn::new(psn & 0xFF_FFFF));
        let ext = ExtHeaders::EMPTY.with(Deth { qkey: QKey::GSI, src_qpn: Qpn::GSI });
        let mut frame = Vec::with_capacity(512);
        build_frame(&template, &bth, &ext, psn as u16, mad, &mut frame);
        let Some(mut mbuf) = self.pool.alloc() else { return Counter::NotSent };
        if mbuf.extend_from_slice(&frame) && self.link.inject(mbuf).is_ok() {
            Counter::Sent
        } else {
            Counter::NotSent
        }
    }
}
