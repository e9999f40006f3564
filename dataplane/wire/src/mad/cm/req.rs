//! REQ: asks for a connection (rocev2 facts, CM 4).

use super::super::fields::{array_at, gid_at, put, put24, u16_at, u24_at, u32_at, u64_at};
use super::super::{Area, ServiceId};
use super::{Body, CommId};
use crate::types::{Gid, Mtu, PKey, Psn, QKey, Qpn};

/// The kind of connection: two bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum Transport {
    /// Reliable connection.
    #[default]
    Rc,
    /// Unreliable connection.
    Uc,
    /// Reliable datagram.
    Rd,
    /// What [`Req::extended_transport`] says.
    Extended,
}

impl Transport {
    fn from_bits(bits: u8) -> Transport {
        match bits & 3 {
            0 => Transport::Rc,
            1 => Transport::Uc,
            2 => Transport::Rd,
            _ => Transport::Extended,
        }
    }

    fn bits(self) -> u8 {
        self as u8
    }
}

/// A path as a REQ describes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct PrimaryPath {
    /// 0xFFFF (permissive) on RoCE when the hop limit is above 1.
    pub local_lid: u16,
    /// The same.
    pub remote_lid: u16,
    /// The sender's GID.
    pub local_gid: Gid,
    /// The receiver's GID.
    pub remote_gid: Gid,
    /// 20 bits.
    pub flow_label: u32,
    /// Packet rate code, 6 bits; 0 stands for the port's.
    pub rate: u8,
    /// Traffic class, the TOS of IPv4.
    pub traffic_class: u8,
    /// Hop limit.
    pub hop_limit: u8,
    /// Service level, 4 bits.
    pub sl: u8,
    /// Both ends are in one subnet: 1 when the hop limit is 1 or 0.
    pub subnet_local: bool,
    /// Local ACK timeout: 4.096 µs × 2^code, 5 bits.
    pub ack_timeout: u8,
}

impl PrimaryPath {
    /// Bytes on the wire.
    const LEN: usize = 44;

    fn from_bytes(bytes: &[u8; Self::LEN]) -> Self {
        PrimaryPath {
            local_lid: u16_at(bytes, 0),
            remote_lid: u16_at(bytes, 2),
            local_gid: gid_at(bytes, 4),
            remote_gid: gid_at(bytes, 20),
            flow_label: u24_at(bytes, 36) >> 4,
            rate: bytes[39] & 0x3F,
            traffic_class: bytes[40],
            hop_limit: bytes[41],
            sl: bytes[42] >> 4,
            subnet_local: bytes[42] & 0x08 != 0,
            ack_timeout: bytes[43] >> 3,
        }
    }

    fn to_bytes(self) -> [u8; Self::LEN] {
        let mut bytes = [0; Self::LEN];
        put(&mut bytes, 0, &self.local_lid.to_be_bytes());
        put(&mut bytes, 2, &self.remote_lid.to_be_bytes());
        put(&mut bytes, 4, &self.local_gid.octets());
        put(&mut bytes, 20, &self.remote_gid.octets());
        put24(&mut bytes, 36, self.flow_label << 4);
        bytes[39] = self.rate & 0x3F;
        bytes[40] = self.traffic_class;
        bytes[41] = self.hop_limit;
        bytes[42] = self.sl << 4 | u8::from(self.subnet_local) << 3;
        bytes[43] = self.ack_timeout << 3;
        bytes
    }
}

/// ConnectRequest.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Req {
    /// The sender's ID for this connection.
    pub local_id: CommId,
    /// 24 bits; 0 unless vendor options are spoken of.
    pub vendor_id: u32,
    /// What is asked for.
    pub service_id: ServiceId,
    /// GUID of the sender's node.
    pub local_ca_guid: u64,
    /// 0 for RC and UC.
    pub local_qkey: QKey,
    /// The sender's QP.
    pub local_qpn: Qpn,
    /// READs and atomics that the sender will accept at a time.
    pub responder_resources: u8,
    /// 24 bits, 0.
    pub local_eecn: u32,
    /// READs and atomics that the sender wants to have outstanding.
    pub initiator_depth: u8,
    /// 24 bits, 0.
    pub remote_eecn: u32,
    /// How soon the receiver shall answer: 4.096 µs × 2^code, 5 bits.
    pub remote_cm_timeout: u8,
    /// The kind of connection.
    pub transport: Transport,
    /// The sender counts end-to-end credits.
    pub flow_control: bool,
    /// The PSN that the receiver's send queue begins with: the sender's receive queue expects it. All captures have it so.
    pub starting_psn: Psn,
    /// How soon the sender will answer a REP: 4.096 µs × 2^code, 5 bits.
    pub local_cm_timeout: u8,
    /// Retries of the QPs, 3 bits.
    pub retry_count: u8,
    /// Partition.
    pub pkey: PKey,
    /// Code of the path MTU, 4 bits: see [`Req::mtu`].
    pub path_mtu: u8,
    /// 0.
    pub rdc_exists: bool,
    /// RNR retries of the receiver's QP, 3 bits.
    pub rnr_retry_count: u8,
    /// How often a message of this connection may be sent again, 4 bits.
    pub max_cm_retries: u8,
    /// The sender's QP has a shared receive queue.
    pub srq: bool,
    /// 1 stands for XRC when the transport is extended, 3 bits.
    pub extended_transport: u8,
    /// The path.
    pub primary: PrimaryPath,
    /// Another path; all zero when there is none.
    pub alternate: PrimaryPath,
    /// The application's, behind an addressing header when rdma_cm asks.
    pub private_data: Area<92>,
}

impl Req {
    /// The path MTU, when its code is one.
    pub fn mtu(&self) -> Option<Mtu> {
        Mtu::from_code(self.path_mtu)
    }

    pub(super) fn from_body(body: &Body) -> Self {
        Req {
            local_id: CommId(u32_at(body, 0)),
            vendor_id: u24_at(body, 5),
            service_id: ServiceId(u64_at(body, 8)),
            local_ca_guid: u64_at(body, 16),
            local_qkey: QKey::new(u32_at(body, 28)),
            local_qpn: Qpn::new(u24_at(body, 32)),
            responder_resources: body[35],
            local_eecn: u24_at(body, 36),
            initiator_depth: body[39],
            remote_eecn: u24_at(body, 40),
            remote_cm_timeout: body[43] >> 3,
            transport: Transport::from_bits(body[43] >> 1),
            flow_control: body[43] & 1 != 0,
            starting_psn: Psn::new(u24_at(body, 44)),
            local_cm_timeout: body[47] >> 3,
            retry_count: body[47] & 7,
            pkey: PKey(u16_at(body, 48)),
            path_mtu: body[50] >> 4,
            rdc_exists: body[50] & 0x08 != 0,
            rnr_retry_count: body[50] & 7,
            max_cm_retries: body[51] >> 4,
            srq: body[51] & 0x08 != 0,
            extended_transport: body[51] & 7,
            primary: PrimaryPath::from_bytes(&array_at(body, 52)),
            alternate: PrimaryPath::from_bytes(&array_at(body, 96)),
            private_data: Area(array_at(body, 140)),
        }
    }

    pub(super) fn write(&self, body: &mut Body) {
        put(body, 0, &self.local_id.0.to_be_bytes());
        put24(body, 5, self.vendor_id);
        put(body, 8, &self.service_id.0.to_be_bytes());
        put(body, 16, &self.local_ca_guid.to_be_bytes());
        put(body, 28, &self.local_qkey.value().to_be_bytes());
        put24(body, 32, self.local_qpn.value());
        body[35] = self.responder_resources;
        put24(body, 36, self.local_eecn);
        body[39] = self.initiator_depth;
        put24(body, 40, self.remote_eecn);
        body[43] = self.remote_cm_timeout << 3 | self.transport.bits() << 1 | u8::from(self.flow_control);
        put24(body, 44, self.starting_psn.value());
        body[47] = self.local_cm_timeout << 3 | self.retry_count & 7;
        put(body, 48, &self.pkey.0.to_be_bytes());
        body[50] = self.path_mtu << 4 | u8::from(self.rdc_exists) << 3 | self.rnr_retry_count & 7;
        body[51] = self.max_cm_retries << 4 | u8::from(self.srq) << 3 | self.extended_transport & 7;
        put(body, 52, &self.primary.to_bytes());
        put(body, 96, &self.alternate.to_bytes());
        put(body, 140, self.private_data.bytes());
    }
}
