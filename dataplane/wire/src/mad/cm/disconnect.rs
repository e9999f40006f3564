//! The end of a connection: DREQ and DREP (rocev2 facts, CM 7).

use super::super::Area;
use super::super::fields::{array_at, put, put24, u24_at};
use super::{Body, CommId, ids, put_ids};
use crate::types::Qpn;

/// DisconnectRequest.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Dreq {
    /// The sender's ID.
    pub local_id: CommId,
    /// The receiver's ID.
    pub remote_id: CommId,
    /// The receiver's QP.
    pub remote_qpn: Qpn,
    /// The application's.
    pub private_data: Area<220>,
}

impl Dreq {
    pub(super) fn from_body(body: &Body) -> Self {
        let (local_id, remote_id) = ids(body);
        let remote_qpn = Qpn::new(u24_at(body, 8));
        Dreq { local_id, remote_id, remote_qpn, private_data: Area(array_at(body, 12)) }
    }

    pub(super) fn write(&self, body: &mut Body) {
        put_ids(body, self.local_id, self.remote_id);
        put24(body, 8, self.remote_qpn.value());
        put(body, 12, self.private_data.bytes());
    }
}

/// DisconnectReply.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Drep {
    /// The sender's ID.
    pub local_id: CommId,
    /// The receiver's ID.
    pub remote_id: CommId,
    /// The application's.
    pub private_data: Area<224>,
}

impl Drep {
    pub(super) fn from_body(body: &Body) -> Self {
        let (local_id, remote_id) = ids(body);
        Drep { local_id, remote_id, private_data: Area(array_at(body, 8)) }
    }

    pub(super) fn write(&self, body: &mut Body) {
        put_ids(body, self.local_id, self.remote_id);
        put(body, 8, self.private_data.bytes());
    }
}
