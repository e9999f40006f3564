//! Messages that answer: their IDs and transaction come from the connection, or from what is answered.

use crate::conn::Conn;
use crate::{Cm, CmError};
use wire::mad::{Answered, Area, CmMad, CommId, Dreq, Mra, Rej, RejectReason, Req};

/// The area that begins with an application's bytes.
pub(crate) fn area<const N: usize>(bytes: &[u8]) -> Result<Area<N>, CmError> {
    Area::new(bytes).ok_or(CmError::TooLong(N))
}

/// A REJ without an ID of its own, for a request that made no connection.
pub(crate) fn stateless_rej(
    transaction_id: u64,
    (local_id, remote_id): (CommId, CommId),
    message: Answered,
    reason: RejectReason,
    ari: &[u8],
) -> CmMad {
    let ari_area = Area::new(ari).unwrap_or_default();
    let ari_len = ari.len() as u8;
    let rej = Rej { local_id, remote_id, message, ari_len, reason, ari_area, private_data: Area::EMPTY };
    CmMad::new(transaction_id, rej)
}

pub(crate) fn rej_of_req(transaction_id: u64, req: &Req, reason: RejectReason, ari: &[u8]) -> CmMad {
    stateless_rej(transaction_id, (CommId(0), req.local_id), Answered::Req, reason, ari)
}

impl Conn {
    /// What a REJ of ours in this state rejects.
    pub(crate) fn rejects(&self) -> Answered {
        if self.state.is_asked() || self.state.is_asking() {
            Answered::Req
        } else if self.state.is_replied() {
            Answered::Rep
        } else {
            Answered::Other
        }
    }

    pub(crate) fn rej(&self, message: Answered, reason: RejectReason, ari: &[u8]) -> CmMad {
        let ids = (self.local_id, self.remote_id);
        stateless_rej(self.transaction_id, ids, message, reason, ari)
    }

    pub(crate) fn mra(&self, message: Answered, service_timeout: u8) -> CmMad {
        let (local_id, remote_id) = (self.local_id, self.remote_id);
        CmMad::new(
            self.transaction_id,
            Mra { local_id, remote_id, message, service_timeout, private_data: Area::EMPTY },
        )
    }

    pub(crate) fn dreq(&self, transaction_id: u64, private_data: Area<220>) -> CmMad {
        let (local_id, remote_id, remote_qpn) = (self.local_id, self.remote_id, self.remote_qpn);
        CmMad::new(transaction_id, Dreq { local_id, remote_id, remote_qpn, private_data })
    }
}

impl Cm {
    /// We give up: the peer may not have our ID, so it finds the connection by our GUID (rocev2 facts, CM 7).
    pub(crate) fn timeout_rej(&self, conn: &Conn) -> CmMad {
        conn.rej(conn.rejects(), RejectReason::TIMEOUT, &self.config.ca_guid.to_be_bytes())
    }
}
