//! Datagram services: SIDR_REQ and SIDR_REP (rocev2 facts, CM 7).

use super::super::fields::{array_at, put, put24, u16_at, u24_at, u32_at, u64_at};
use super::super::{Area, ServiceId};
use super::Body;
use crate::types::{PKey, QKey, Qpn};
use std::fmt;

/// Asks for the QP of a datagram service.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct SidrReq {
    /// The sender's number for this question.
    pub request_id: u32,
    /// Partition.
    pub pkey: PKey,
    /// What is asked for.
    pub service_id: ServiceId,
    /// The application's, behind an addressing header when rdma_cm asks.
    pub private_data: Area<216>,
}

impl SidrReq {
    pub(super) fn from_body(body: &Body) -> Self {
        SidrReq {
            request_id: u32_at(body, 0),
            pkey: PKey(u16_at(body, 4)),
            service_id: ServiceId(u64_at(body, 8)),
            private_data: Area(array_at(body, 16)),
        }
    }

    pub(super) fn write(&self, body: &mut Body) {
        put(body, 0, &self.request_id.to_be_bytes());
        put(body, 4, &self.pkey.0.to_be_bytes());
        put(body, 8, &self.service_id.0.to_be_bytes());
        put(body, 16, self.private_data.bytes());
    }
}

/// How a SIDR_REQ was taken. Any number can arrive.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct SidrStatus(pub u8);

impl SidrStatus {
    /// Here is the QP.
    pub const SUCCESS: SidrStatus = SidrStatus(0);
    /// Nobody listens for this service.
    pub const UNSUPPORTED: SidrStatus = SidrStatus(1);
    /// The application rejects it.
    pub const REJECTED: SidrStatus = SidrStatus(2);
    /// There is no QP for it.
    pub const NO_QP: SidrStatus = SidrStatus(3);
    /// Ask elsewhere.
    pub const REDIRECT: SidrStatus = SidrStatus(4);
    /// The version is not spoken here.
    pub const UNSUPPORTED_VERSION: SidrStatus = SidrStatus(5);
}

impl fmt::Display for SidrStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match *self {
            SidrStatus::SUCCESS => "success",
            SidrStatus::UNSUPPORTED => "nobody listens for this service ID",
            SidrStatus::REJECTED => "the application rejects it",
            SidrStatus::NO_QP => "no QP",
            SidrStatus::REDIRECT => "redirect",
            SidrStatus::UNSUPPORTED_VERSION => "unsupported version",
            SidrStatus(other) => return write!(f, "status {other}"),
        })
    }
}

impl fmt::Debug for SidrStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SidrStatus({self})")
    }
}

/// The QP of a datagram service, or why there is none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SidrRep {
    /// The asker's number.
    pub request_id: u32,
    /// How it was taken.
    pub status: SidrStatus,
    /// Bytes of additional information: no more than 72 of them are there.
    pub info_len: u8,
    /// 24 bits, in two places; 0 unless vendor options are spoken of.
    pub vendor_id: u32,
    /// The service's QP.
    pub qpn: Qpn,
    /// What was asked for.
    pub service_id: ServiceId,
    /// The Q_Key to send to the QP with.
    pub qkey: QKey,
    /// Additional information.
    pub info_area: Area<72>,
    /// The application's.
    pub private_data: Area<136>,
}

impl SidrRep {
    pub(super) fn from_body(body: &Body) -> Self {
        SidrRep {
            request_id: u32_at(body, 0),
            status: SidrStatus(body[4]),
            info_len: body[5],
            vendor_id: u32::from(u16_at(body, 6)) << 8 | u32::from(body[11]),
            qpn: Qpn::new(u24_at(body, 8)),
            service_id: ServiceId(u64_at(body, 12)),
            qkey: QKey::new(u32_at(body, 20)),
            info_area: Area(array_at(body, 24)),
            private_data: Area(array_at(body, 96)),
        }
    }

    pub(super) fn write(&self, body: &mut Body) {
        let [_, high, middle, low] = self.vendor_id.to_be_bytes();
        put(body, 0, &self.request_id.to_be_bytes());
        (body[4], body[5], body[6], body[7]) = (self.status.0, self.info_len, high, middle);
        put24(body, 8, self.qpn.value());
        body[11] = low;
        put(body, 12, &self.service_id.0.to_be_bytes());
        put(body, 20, &self.qkey.value().to_be_bytes());
        put(body, 24, self.info_area.bytes());
        put(body, 96, self.private_data.bytes());
    }
}
