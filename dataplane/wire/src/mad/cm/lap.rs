//! Alternate paths: LAP and APR (rocev2 facts, CM 7). They are not usable on RoCE; a LAP is answered with a refusal.

use super::super::Area;
use super::super::fields::{array_at, gid_at, put, put24, u16_at, u24_at};
use super::{Body, CommId, ids, put_ids};
use crate::types::{Gid, Qpn};

/// A path as a LAP describes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct AlternatePath {
    /// The sender's LID.
    pub local_lid: u16,
    /// The receiver's LID.
    pub remote_lid: u16,
    /// The sender's GID.
    pub local_gid: Gid,
    /// The receiver's GID.
    pub remote_gid: Gid,
    /// 20 bits.
    pub flow_label: u32,
    /// Traffic class.
    pub traffic_class: u8,
    /// Hop limit.
    pub hop_limit: u8,
    /// Packet rate code, 6 bits.
    pub rate: u8,
    /// Service level, 4 bits.
    pub sl: u8,
    /// Both ends are in one subnet.
    pub subnet_local: bool,
    /// Local ACK timeout: 4.096 µs × 2^code, 5 bits.
    pub ack_timeout: u8,
}

/// Load alternate path.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Lap {
    /// The sender's ID.
    pub local_id: CommId,
    /// The receiver's ID.
    pub remote_id: CommId,
    /// The receiver's QP.
    pub remote_qpn: Qpn,
    /// How soon the receiver shall answer: 4.096 µs × 2^code, 5 bits.
    pub remote_cm_timeout: u8,
    /// The path.
    pub path: AlternatePath,
    /// The application's.
    pub private_data: Area<168>,
}

impl Lap {
    pub(super) fn from_body(body: &Body) -> Self {
        let (local_id, remote_id) = ids(body);
        Lap {
            local_id,
            remote_id,
            remote_qpn: Qpn::new(u24_at(body, 12)),
            remote_cm_timeout: body[15] >> 3,
            path: AlternatePath {
                local_lid: u16_at(body, 20),
                remote_lid: u16_at(body, 22),
                local_gid: gid_at(body, 24),
                remote_gid: gid_at(body, 40),
                flow_label: u24_at(body, 56) >> 4,
                traffic_class: body[59],
                hop_limit: body[60],
                rate: body[61] & 0x3F,
                sl: body[62] >> 4,
                subnet_local: body[62] & 0x08 != 0,
                ack_timeout: body[63] >> 3,
            },
            private_data: Area(array_at(body, 64)),
        }
    }

    pub(super) fn write(&self, body: &mut Body) {
        put_ids(body, self.local_id, self.remote_id);
        put24(body, 12, self.remote_qpn.value());
        body[15] = self.remote_cm_timeout << 3;
        let path = &self.path;
        put(body, 20, &path.local_lid.to_be_bytes());
        put(body, 22, &path.remote_lid.to_be_bytes());
        put(body, 24, &path.local_gid.octets());
        put(body, 40, &path.remote_gid.octets());
        put24(body, 56, path.flow_label << 4);
        body[59] = path.traffic_class;
        body[60] = path.hop_limit;
        body[61] = path.rate & 0x3F;
        body[62] = path.sl << 4 | u8::from(path.subnet_local) << 3;
        body[63] = path.ack_timeout << 3;
        put(body, 64, self.private_data.bytes());
    }
}

/// How a LAP was taken. Any number can arrive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct AprStatus(pub u8);

impl AprStatus {
    /// The path is loaded.
    pub const SUCCESS: AprStatus = AprStatus(0);
    /// No connection has these IDs (unverified: the number is Linux's).
    pub const INVALID_COMM_ID: AprStatus = AprStatus(1);
    /// Alternate paths are not known here (unverified: the number is Linux's).
    pub const UNSUPPORTED: AprStatus = AprStatus(2);
}

/// Alternate path response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Apr {
    /// The sender's ID.
    pub local_id: CommId,
    /// The receiver's ID.
    pub remote_id: CommId,
    /// Bytes of additional information: no more than 72 of them are there.
    pub info_len: u8,
    /// How the LAP was taken.
    pub status: AprStatus,
    /// Additional information.
    pub info_area: Area<72>,
    /// The application's.
    pub private_data: Area<148>,
}

impl Apr {
    pub(super) fn from_body(body: &Body) -> Self {
        let (local_id, remote_id) = ids(body);
        Apr {
            local_id,
            remote_id,
            info_len: body[8],
            status: AprStatus(body[9]),
            info_area: Area(array_at(body, 12)),
            private_data: Area(array_at(body, 84)),
        }
    }

    pub(super) fn write(&self, body: &mut Body) {
        put_ids(body, self.local_id, self.remote_id);
        body[8] = self.info_len;
        body[9] = self.status.0;
        put(body, 12, self.info_area.bytes());
        put(body, 84, self.private_data.bytes());
    }
}
