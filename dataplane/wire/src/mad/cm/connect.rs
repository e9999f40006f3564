//! Answers on the way to a connection: MRA, REP, RTU (rocev2 facts, CM 6 and 7).

use super::super::Area;
use super::super::fields::{array_at, put, put24, u24_at, u32_at, u64_at};
use super::reject::Answered;
use super::{Body, CommId, ids, put_ids};
use crate::types::{Psn, QKey, Qpn};

/// Message receipt acknowledgement: what came will be answered, but later than announced.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mra {
    /// The sender's ID.
    pub local_id: CommId,
    /// The receiver's ID.
    pub remote_id: CommId,
    /// What came: 0 a REQ, 1 a REP, 2 a LAP. Two bits.
    pub message: Answered,
    /// How long the answer may take: 4.096 µs × 2^code, 5 bits.
    pub service_timeout: u8,
    /// The application's.
    pub private_data: Area<222>,
}

impl Mra {
    pub(super) fn from_body(body: &Body) -> Self {
        let (local_id, remote_id) = ids(body);
        Mra {
            local_id,
            remote_id,
            message: Answered::from_bits(body[8] >> 6),
            service_timeout: body[9] >> 3,
            private_data: Area(array_at(body, 10)),
        }
    }

    pub(super) fn write(&self, body: &mut Body) {
        put_ids(body, self.local_id, self.remote_id);
        body[8] = self.message.bits() << 6;
        body[9] = self.service_timeout << 3;
        put(body, 10, self.private_data.bytes());
    }
}

/// ConnectReply.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Rep {
    /// The sender's ID.
    pub local_id: CommId,
    /// The receiver's ID.
    pub remote_id: CommId,
    /// 0 for RC and UC.
    pub local_qkey: QKey,
    /// The sender's QP.
    pub local_qpn: Qpn,
    /// 24 bits, in three places; 0 unless vendor options are spoken of.
    pub vendor_id: u32,
    /// 24 bits; the QPN for XRC.
    pub local_eecn: u32,
    /// The PSN that the receiver's send queue begins with: the sender's receive queue expects it.
    pub starting_psn: Psn,
    /// READs and atomics that the sender will accept at a time.
    pub responder_resources: u8,
    /// READs and atomics that the sender will have outstanding.
    pub initiator_depth: u8,
    /// What the sender needs to acknowledge: 4.096 µs × 2^code, 5 bits.
    pub target_ack_delay: u8,
    /// About the alternate path, 2 bits.
    pub failover: u8,
    /// The sender counts end-to-end credits.
    pub flow_control: bool,
    /// RNR retries of the receiver's QP, 3 bits.
    pub rnr_retry_count: u8,
    /// The sender's QP has a shared receive queue.
    pub srq: bool,
    /// GUID of the sender's node.
    pub local_ca_guid: u64,
    /// The application's.
    pub private_data: Area<196>,
}

impl Rep {
    pub(super) fn from_body(body: &Body) -> Self {
        let (local_id, remote_id) = ids(body);
        Rep {
            local_id,
            remote_id,
            local_qkey: QKey::new(u32_at(body, 8)),
            local_qpn: Qpn::new(u24_at(body, 12)),
            vendor_id: u32::from_be_bytes([0, body[15], body[19], body[23]]),
            local_eecn: u24_at(body, 16),
            starting_psn: Psn::new(u24_at(body, 20)),
            responder_resources: body[24],
            initiator_depth: body[25],
            target_ack_delay: body[26] >> 3,
            failover: body[26] >> 1 & 3,
            flow_control: body[26] & 1 != 0,
            rnr_retry_count: body[27] >> 5,
            srq: body[27] & 0x10 != 0,
            local_ca_guid: u64_at(body, 28),
            private_data: Area(array_at(body, 36)),
        }
    }

    pub(super) fn write(&self, body: &mut Body) {
        put_ids(body, self.local_id, self.remote_id);
        put(body, 8, &self.local_qkey.value().to_be_bytes());
        put24(body, 12, self.local_qpn.value());
        put24(body, 16, self.local_eecn);
        put24(body, 20, self.starting_psn.value());
        let [_, high, middle, low] = self.vendor_id.to_be_bytes();
        (body[15], body[19], body[23]) = (high, middle, low);
        body[24] = self.responder_resources;
        body[25] = self.initiator_depth;
        body[26] = self.target_ack_delay << 3 | (self.failover & 3) << 1 | u8::from(self.flow_control);
        body[27] = self.rnr_retry_count << 5 | u8::from(self.srq) << 4;
        put(body, 28, &self.local_ca_guid.to_be_bytes());
        put(body, 36, self.private_data.bytes());
    }
}

/// ReadyToUse.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Rtu {
    /// The sender's ID.
    pub local_id: CommId,
    /// The receiver's ID.
    pub remote_id: CommId,
    /// The application's.
    pub private_data: Area<224>,
}

impl Rtu {
    pub(super) fn from_body(body: &Body) -> Self {
        let (local_id, remote_id) = ids(body);
        Rtu { local_id, remote_id, private_data: Area(array_at(body, 8)) }
    }

    pub(super) fn write(&self, body: &mut Body) {
        put_ids(body, self.local_id, self.remote_id);
        put(body, 8, self.private_data.bytes());
    }
}
