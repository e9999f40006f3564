//! Rigs whose QPs share a receive queue.

use super::{PD, QPN, Rig};
use crate::limits;
use crate::qp::{QpAttr, QpState, QpType};
use crate::queue::RecvQueue;
use crate::wr::{RecvWr, Sge};
use std::sync::Arc;

/// An SRQ in the rig's PD, for this many receives.
pub fn srq(id: u32, depth: u32) -> Arc<RecvQueue> {
    Arc::new(RecvQueue::shared(id, PD, depth, limits::MAX_SGE))
}

/// A receive.
pub fn receive(wr_id: u64, sges: &[Sge]) -> RecvWr {
    RecvWr { wr_id, sges: sges.iter().copied().collect() }
}

impl Rig {
    /// As [`with`](Self::with), with the receives of an SRQ. Several rigs on one SRQ are QPs on several workers.
    pub fn on_srq(qp_type: QpType, state: QpState, attr: QpAttr, srq: &Arc<RecvQueue>) -> Rig {
        Rig::build(QPN, qp_type, state, attr, Arc::clone(srq), 256)
    }
}
