//! Performance management: what tools ask a port for.
//!
//! Layouts are those of Linux's and OFED's headers, which agree with each other; the facts do not tell them. Attributes begin
//! at [`PERF_DATA_OFFSET`] of the MAD. Counters of data count 32-bit words, without packets' headers of the link.

use super::fields::{gid_at, put, u16_at, u32_at, u64_at};
use crate::types::Gid;

/// Where the attribute begins in a MAD of this class: 40 reserved bytes follow the header.
pub const PERF_DATA_OFFSET: usize = 64;

/// Attribute IDs.
pub mod perf_attribute {
    /// [`ClassPortInfo`](super::ClassPortInfo).
    pub const CLASS_PORT_INFO: u16 = 0x0001;
    /// [`PortCounters`](super::PortCounters).
    pub const PORT_COUNTERS: u16 = 0x0012;
    /// [`PortCountersExtended`](super::PortCountersExtended).
    pub const PORT_COUNTERS_EXTENDED: u16 = 0x001D;
}

/// What an agent of a class can do. The addresses of redirection are not kept: nothing redirects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct ClassPortInfo {
    /// Version of the MAD format: 1.
    pub base_version: u8,
    /// Version of the class.
    pub class_version: u8,
    /// Bits of abilities: see the constants.
    pub capability_mask: u16,
    /// More bits of abilities, 27 of them.
    pub capability_mask2: u32,
    /// Longest time to an answer: 4.096 µs × 2^code, 5 bits.
    pub response_time: u8,
    /// Where to ask instead; unspecified when here.
    pub redirect_gid: Gid,
}

impl ClassPortInfo {
    /// Bytes on the wire.
    pub const LEN: usize = 72;
    /// Port 0xFF stands for all ports.
    pub const ALL_PORT_SELECT: u16 = 1 << 8;
    /// [`PortCountersExtended`] is answered.
    pub const EXTENDED_WIDTH: u16 = 1 << 9;

    /// From its bytes.
    pub fn from_bytes(bytes: &[u8; Self::LEN]) -> Self {
        let word = u32_at(bytes, 4);
        ClassPortInfo {
            base_version: bytes[0],
            class_version: bytes[1],
            capability_mask: u16_at(bytes, 2),
            capability_mask2: word >> 5,
            response_time: (word & 0x1F) as u8,
            redirect_gid: gid_at(bytes, 8),
        }
    }

    /// Its bytes.
    pub fn to_bytes(&self) -> [u8; Self::LEN] {
        let mut bytes = [0; Self::LEN];
        bytes[..2].copy_from_slice(&[self.base_version, self.class_version]);
        put(&mut bytes, 2, &self.capability_mask.to_be_bytes());
        let word = self.capability_mask2 << 5 | u32::from(self.response_time & 0x1F);
        put(&mut bytes, 4, &word.to_be_bytes());
        put(&mut bytes, 8, &self.redirect_gid.octets());
        bytes
    }
}

/// Counters of a port that stop at their largest value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct PortCounters {
    /// Which port.
    pub port_select: u8,
    /// Which counters a Set clears: bit 0 symbol errors … bit 12 transmitted data, 13 received data, 14 transmitted packets,
    /// 15 received packets.
    pub counter_select: u16,
    /// Bad symbols on the link.
    pub symbol_errors: u16,
    /// Recoveries of the link.
    pub link_error_recovery: u8,
    /// Times that the link went down.
    pub link_downed: u8,
    /// Packets that were received with an error.
    pub receive_errors: u16,
    /// Packets that were marked bad on their way.
    pub receive_remote_physical_errors: u16,
    /// Packets that a switch could not relay.
    pub receive_switch_relay_errors: u16,
    /// Packets that were not sent.
    pub transmit_discards: u16,
    /// Packets that were not sent for partition or version.
    pub transmit_constraint_errors: u8,
    /// Packets that were discarded for partition or version.
    pub receive_constraint_errors: u8,
    /// Times that errors of the link went over their bound: 4 bits.
    pub local_link_integrity_errors: u8,
    /// Overruns of the port's buffers: 4 bits.
    pub excessive_buffer_overruns: u8,
    /// Packets of management that found no room.
    pub vl15_dropped: u16,
    /// 32-bit words sent.
    pub transmit_data: u32,
    /// 32-bit words received.
    pub receive_data: u32,
    /// Packets sent.
    pub transmit_packets: u32,
    /// Packets received.
    pub receive_packets: u32,
    /// Ticks in which there was something to send and it could not be.
    pub transmit_wait: u32,
}

impl PortCounters {
    /// Bytes on the wire.
    pub const LEN: usize = 44;

    /// From its bytes.
    pub fn from_bytes(bytes: &[u8; Self::LEN]) -> Self {
        PortCounters {
            port_select: bytes[1],
            counter_select: u16_at(bytes, 2),
            symbol_errors: u16_at(bytes, 4),
            link_error_recovery: bytes[6],
            link_downed: bytes[7],
            receive_errors: u16_at(bytes, 8),
            receive_remote_physical_errors: u16_at(bytes, 10),
            receive_switch_relay_errors: u16_at(bytes, 12),
            transmit_discards: u16_at(bytes, 14),
            transmit_constraint_errors: bytes[16],
            receive_constraint_errors: bytes[17],
            local_link_integrity_errors: bytes[19] >> 4,
            excessive_buffer_overruns: bytes[19] & 0x0F,
            vl15_dropped: u16_at(bytes, 22),
            transmit_data: u32_at(bytes, 24),
            receive_data: u32_at(bytes, 28),
            transmit_packets: u32_at(bytes, 32),
            receive_packets: u32_at(bytes, 36),
            transmit_wait: u32_at(bytes, 40),
        }
    }

    /// Its bytes.
    pub fn to_bytes(&self) -> [u8; Self::LEN] {
        let mut bytes = [0; Self::LEN];
        bytes[1] = self.port_select;
        put(&mut bytes, 2, &self.counter_select.to_be_bytes());
        put(&mut bytes, 4, &self.symbol_errors.to_be_bytes());
        bytes[6] = self.link_error_recovery;
        bytes[7] = self.link_downed;
        put(&mut bytes, 8, &self.receive_errors.to_be_bytes());
        put(&mut bytes, 10, &self.receive_remote_physical_errors.to_be_bytes());
        put(&mut bytes, 12, &self.receive_switch_relay_errors.to_be_bytes());
        put(&mut bytes, 14, &self.transmit_discards.to_be_bytes());
        bytes[16] = self.transmit_constraint_errors;
        bytes[17] = self.receive_constraint_errors;
        bytes[19] = self.local_link_integrity_errors << 4 | self.excessive_buffer_overruns & 0x0F;
        put(&mut bytes, 22, &self.vl15_dropped.to_be_bytes());
        put(&mut bytes, 24, &self.transmit_data.to_be_bytes());
        put(&mut bytes, 28, &self.receive_data.to_be_bytes());
        put(&mut bytes, 32, &self.transmit_packets.to_be_bytes());
        put(&mut bytes, 36, &self.receive_packets.to_be_bytes());
        put(&mut bytes, 40, &self.transmit_wait.to_be_bytes());
        bytes
    }
}

/// Counters of a port, 64 bits wide.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct PortCountersExtended {
    /// Which port.
    pub port_select: u8,
    /// Which counters a Set clears: one bit each, in the order of the fields.
    pub counter_select: u16,
    /// 32-bit words sent.
    pub transmit_data: u64,
    /// 32-bit words received.
    pub receive_data: u64,
    /// Packets sent.
    pub transmit_packets: u64,
    /// Packets received.
    pub receive_packets: u64,
    /// Of the packets sent, those to one.
    pub unicast_transmit_packets: u64,
    /// Of the packets received, those to one.
    pub unicast_receive_packets: u64,
    /// Of the packets sent, those to a group.
    pub multicast_transmit_packets: u64,
    /// Of the packets received, those to a group.
    pub multicast_receive_packets: u64,
}

impl PortCountersExtended {
    /// Bytes on the wire.
    pub const LEN: usize = 72;

    /// From its bytes.
    pub fn from_bytes(bytes: &[u8; Self::LEN]) -> Self {
        PortCountersExtended {
            port_select: bytes[1],
            counter_select: u16_at(bytes, 2),
            transmit_data: u64_at(bytes, 8),
            receive_data: u64_at(bytes, 16),
            transmit_packets: u64_at(bytes, 24),
            receive_packets: u64_at(bytes, 32),
            unicast_transmit_packets: u64_at(bytes, 40),
            unicast_receive_packets: u64_at(bytes, 48),
            multicast_transmit_packets: u64_at(bytes, 56),
            multicast_receive_packets: u64_at(bytes, 64),
        }
    }

    /// Its bytes.
    pub fn to_bytes(&self) -> [u8; Self::LEN] {
        let mut bytes = [0; Self::LEN];
        bytes[1] = self.port_select;
        put(&mut bytes, 2, &self.counter_select.to_be_bytes());
        put(&mut bytes, 8, &self.transmit_data.to_be_bytes());
        put(&mut bytes, 16, &self.receive_data.to_be_bytes());
        put(&mut bytes, 24, &self.transmit_packets.to_be_bytes());
        put(&mut bytes, 32, &self.receive_packets.to_be_bytes());
        put(&mut bytes, 40, &self.unicast_transmit_packets.to_be_bytes());
        put(&mut bytes, 48, &self.unicast_receive_packets.to_be_bytes());
        put(&mut bytes, 56, &self.multicast_transmit_packets.to_be_bytes());
        put(&mut bytes, 64, &self.multicast_receive_packets.to_be_bytes());
        bytes
    }
}
