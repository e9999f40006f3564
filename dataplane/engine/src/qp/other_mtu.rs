//! A peer with another path MTU: its packets are refused for their lengths, and this counts what explains them.
//!
//! Both ends have to use one path MTU (rocev2 facts, wire section 8); nothing on the wire tells which the other uses but the
//! lengths of its packets.

use super::Qp;
use crate::counters::Counter;
use crate::packet::RxPacket;
use wire::{Mtu, PayloadRule};

/// A request or response was refused: counts it if its sender's path MTU is not `mtu`.
pub(super) fn count(qp: &mut Qp, packet: &RxPacket<'_>, mtu: Mtu) {
    let len = packet.frame.payload_len() as u32;
    let full = packet.frame.info.payload == PayloadRule::FullMtu;
    if len > mtu.bytes() {
        qp.counters.count(Counter::OverPathMtu);
    } else if full && Mtu::from_bytes(len).is_some_and(|theirs| theirs < mtu) {
        qp.counters.count(Counter::UnderPathMtu);
    }
}
