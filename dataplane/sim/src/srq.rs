//! Shared receive queues of a world.

use crate::endpoint::{EndpointId, PD};
use crate::qp::{Options, QpId};
use crate::world::World;
use engine::queue::{CompletionQueue, PostError, RecvQueue, XrcdId};
use engine::{Cqe, QpType, RecvWr, SendWr, limits};
use std::sync::Arc;
use wire::Srqn;

/// Names an SRQ of a world.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SrqId(pub(crate) usize);

/// The XRC domain of everything at an endpoint.
const DOMAIN: XrcdId = XrcdId(1);

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

    /// Two QPs as from [`connect`](Self::connect) or two UD QPs; a side with an SRQ has its receives.
    pub(crate) fn connect_sides(
        &mut self,
        qp_type: QpType,
        ends: [EndpointId; 2],
        srqs: [Option<SrqId>; 2],
        options: &Options,
    ) -> [QpId; 2] {
        let [one, other] = [0, 1].map(|side| match srqs[side] {
            Some(srq) => {
                let rq = Arc::clone(&self.srqs[srq.0]);
                self.create_qp_with(ends[side], qp_type, options, rq)
            }
            None => self.create_qp(ends[side], qp_type, options),
        });
        match qp_type {
            QpType::Ud => [one, other].into_iter().for_each(|qp| self.ready_ud(qp)),
            _ => self.join(one, other, options),
        }
        [one, other]
    }

    /// A UD QP in RTS with the receives of an SRQ.
    pub fn create_ud_on_srq(&mut self, endpoint: EndpointId, srq: SrqId, options: &Options) -> QpId {
        let rq = Arc::clone(&self.srqs[srq.0]);
        let id = self.create_qp_with(endpoint, QpType::Ud, options, rq);
        self.ready_ud(id);
        id
    }

    /// An XRC SRQ of an endpoint, known to both of its engines: requests name it by [`srqn`](Self::srqn).
    pub fn create_xrc_srq(&mut self, endpoint: EndpointId, depth: u32) -> SrqId {
        let id = SrqId(self.srqs.len());
        let cq = Arc::new(CompletionQueue::new(0x1_0000 + id.0 as u32, 2 * depth as usize, || {}));
        let srqn = Srqn::new(0x0A_0000 + id.0 as u32);
        let queue = RecvQueue::xrc(id.0 as u32, PD, (srqn, DOMAIN), Arc::clone(&cq), depth, limits::MAX_SGE);
        let queue = Arc::new(queue);
        for engine in &mut self.endpoints[endpoint.0].engines {
            engine.add_srq(Arc::clone(&queue));
        }
        self.srqs.push(queue);
        self.xrc_cqs.insert(id.0, cq);
        id
    }

    /// An XRC initiator at `a` and its target at `b`, connected and in RTS.
    pub fn connect_xrc(&mut self, a: EndpointId, b: EndpointId, options: &Options) -> (QpId, QpId) {
        let no_queue = (RecvQueue::xrc_initiator(), RecvQueue::xrc_target(DOMAIN));
        let initiator = self.create_qp_with(a, QpType::XrcIni, options, Arc::new(no_queue.0));
        let target = self.create_qp_with(b, QpType::XrcTgt, options, Arc::new(no_queue.1));
        self.join(initiator, target, options);
        (initiator, target)
    }

    /// Posts a send request of an XRC initiator for an SRQ of the peer.
    pub fn post_send_xrc(&mut self, qp: QpId, wr: SendWr, srq: SrqId) -> Result<(), PostError> {
        self.post_send_to(qp, wr, self.srqn(srq).unwrap_or_default())
    }

    /// The same for any number, one that nobody has perhaps.
    pub(crate) fn post_send_to(&mut self, qp: QpId, wr: SendWr, srqn: Srqn) -> Result<(), PostError> {
        let ring = self.qps[qp.0].shared.post_send_xrc(wr, srqn)?;
        self.ring(qp, ring);
        Ok(())
    }

    /// The number of an XRC SRQ.
    pub fn srqn(&self, srq: SrqId) -> Option<Srqn> {
        self.srqs[srq.0].srqn()
    }

    /// Completions of an XRC SRQ that nobody has taken yet: they name the target that each came by.
    pub fn srq_cqes(&self, srq: SrqId) -> Vec<Cqe> {
        let cq = self.xrc_cqs.get(&srq.0);
        cq.map_or_else(Vec::new, |cq| std::iter::from_fn(|| cq.poll()).collect())
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
