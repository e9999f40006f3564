//! Shared receive queues of a world.

use crate::endpoint::{EndpointId, PD};
use crate::qp::{Options, QpId};
use crate::world::World;
use engine::queue::{PostError, RecvQueue};
use engine::{QpType, RecvWr, limits};
use std::sync::Arc;

/// Names an SRQ of a world.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SrqId(pub(crate) usize);

impl World {
    /// An SRQ with room for this many receives. Events name it by the number in its id.
    pub fn create_srq(&mut self, depth: u32) -> SrqId {
        let id = SrqId(self.srqs.len());
        self.srqs.push(Arc::new(RecvQueue::shared(id.0 as u32, PD, depth, limits::MAX_SGE)));
        id
    }

    /// Two QPs of a connected type as from [`connect`](Self::connect), the second with the receives of an SRQ.
    pub fn connect_to_srq(
        &mut self,
        qp_type: QpType,
        a: EndpointId,
        b: EndpointId,
        srq: SrqId,
        options: &Options,
    ) -> (QpId, QpId) {
        let rq = Arc::clone(&self.srqs[srq.0]);
        let (one, other) =
            (self.create_qp(a, qp_type, options), self.create_qp_with(b, qp_type, options, rq));
        self.join(one, other, options);
        (one, other)
    }

    /// A UD QP in RTS with the receives of an SRQ.
    pub fn create_ud_on_srq(&mut self, endpoint: EndpointId, srq: SrqId, options: &Options) -> QpId {
        let rq = Arc::clone(&self.srqs[srq.0]);
        let id = self.create_qp_with(endpoint, QpType::Ud, options, rq);
        self.ready_ud(id);
        id
    }

    /// Posts a receive to an SRQ.
    pub fn post_srq_recv(&mut self, srq: SrqId, wr: RecvWr) -> Result<(), PostError> {
        self.srqs[srq.0].post(wr)
    }

    /// Asks for an event when fewer than `limit` receives are left.
    pub fn arm_srq(&mut self, srq: SrqId, limit: u32) {
        self.srqs[srq.0].arm_limit(limit);
    }

    /// Receives that wait in an SRQ, and its armed limit.
    pub fn srq_level(&self, srq: SrqId) -> (usize, u32) {
        (self.srqs[srq.0].len(), self.srqs[srq.0].limit())
    }
}
