//! Rigs whose QPs share a receive queue.

use super::{PD, QPN, Rig};
use crate::limits;
use crate::mr::PdId;
use crate::qp::{QpAttr, QpState, QpType};
use crate::queue::{CompletionQueue, RecvQueue, XrcdId};
use crate::wr::{RecvWr, SendWr, Sge};
use std::sync::Arc;
use wire::Srqn;

/// An SRQ in the rig's PD, for this many receives.
pub fn srq(id: u32, depth: u32) -> Arc<RecvQueue> {
    Arc::new(RecvQueue::shared(id, PD, depth, limits::MAX_SGE))
}

/// The XRC domain of the rig's target.
pub const DOMAIN: XrcdId = XrcdId(3);
/// The number of the usual XRC SRQ.
pub const SRQN: Srqn = Srqn::new(0x5_0001);

/// An XRC SRQ for eight receives, and the queue where they complete.
pub fn xrc_srq(pd: PdId, srqn: Srqn, domain: XrcdId) -> (Arc<RecvQueue>, Arc<CompletionQueue>) {
    let cq = Arc::new(CompletionQueue::new(9, 16, || {}));
    let srq = RecvQueue::xrc(7, pd, (srqn, domain), Arc::clone(&cq), 8, limits::MAX_SGE);
    (Arc::new(srq), cq)
}

/// A receive.
pub fn receive(wr_id: u64, sges: &[Sge]) -> RecvWr {
    RecvWr { wr_id, sges: sges.iter().copied().collect() }
}

impl Rig {
    /// As [`with`](Self::with), with the receives of an SRQ. Several rigs on one SRQ are QPs on several workers.
    pub fn on_srq(qp_type: QpType, state: QpState, attr: QpAttr, srq: &Arc<RecvQueue>) -> Rig {
        Rig::build(QPN, qp_type, state, attr, Arc::clone(srq), 64, 256)
    }

    /// An XRC target of [`DOMAIN`], whose engine knows the SRQ [`SRQN`]; and the queue where the receives of that complete.
    pub fn xrc_target(attr: QpAttr) -> (Rig, Arc<RecvQueue>, Arc<CompletionQueue>) {
        let none = Arc::new(RecvQueue::xrc_target(DOMAIN));
        let mut rig = Rig::build(QPN, QpType::XrcTgt, QpState::Rts, attr, none, 1, 16);
        let (srq, cq) = xrc_srq(PD, SRQN, DOMAIN);
        rig.engine.add_srq(Arc::clone(&srq));
        (rig, srq, cq)
    }

    /// An XRC initiator in RTS.
    pub fn xrc_initiator(attr: QpAttr) -> Rig {
        let none = Arc::new(RecvQueue::xrc_initiator());
        Rig::build(QPN, QpType::XrcIni, QpState::Rts, attr, none, 64, 256)
    }

    /// Posts a send request of an XRC initiator and rings.
    pub fn post_send_xrc(&mut self, wr: SendWr, srqn: Srqn) {
        if self.shared.post_send_xrc(wr, srqn).expect("the request is right and has room") {
            self.doorbell();
        }
    }
}
