//! What the dialogues play with: one QP of any kind, regions and windows.

use engine::testkit::{DOMAIN, PD, Region, Rig, SRQN, attributes, receive, srq, xrc_srq};
use engine::{
    Access, CompletionQueue, Cqe, MemoryWindow, MwType, PdId, QpState, QpType, RecvQueue, SendWr, limits,
};
use std::sync::Arc;
use wire::RKey;

/// A QP by its type and where its receives come from.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Receives of its own.
    Own(QpType),
    /// Those of an SRQ.
    Shared(QpType),
    /// Those of an XRC SRQ.
    XrcTarget,
    /// None.
    XrcInitiator,
}

impl Kind {
    pub fn qp_type(self) -> QpType {
        match self {
            Kind::Own(qp_type) | Kind::Shared(qp_type) => qp_type,
            Kind::XrcTarget => QpType::XrcTgt,
            Kind::XrcInitiator => QpType::XrcIni,
        }
    }

    /// Whether requests are acknowledged.
    pub fn answers(self) -> bool {
        matches!(self.qp_type(), QpType::Rc | QpType::XrcTgt)
    }
}

/// Small queues: they are made anew for every input, and are to run full.
const DEPTH: u32 = 16;

pub struct Setup {
    pub rig: Rig,
    pub kind: Kind,
    /// The first grants all to the peer, the second holds receives; the rest the peer must not change.
    pub regions: [Region; 5],
    pub windows: [Arc<MemoryWindow>; 2],
    /// Where receives are posted, when that is not the QP.
    srq: Option<Arc<RecvQueue>>,
    /// Where they complete, when that is not the QP's queue.
    srq_cq: Option<Arc<CompletionQueue>>,
}

impl Setup {
    pub fn new(kind: Kind, state: QpState) -> Setup {
        let (mut srq_cq, mut shared) = (None, None);
        let rq = match kind {
            Kind::Own(_) => Arc::new(RecvQueue::new(DEPTH, limits::MAX_SGE)),
            Kind::Shared(_) => Arc::clone(shared.insert(srq(5, DEPTH))),
            Kind::XrcTarget => Arc::new(RecvQueue::xrc_target(DOMAIN)),
            Kind::XrcInitiator => Arc::new(RecvQueue::xrc_initiator()),
        };
        let cqes = 4 * DEPTH as usize;
        let mut rig = Rig::with_queues(kind.qp_type(), state, attributes(), &rq, DEPTH, cqes);
        if kind == Kind::XrcTarget {
            let (queue, cq) = xrc_srq(PD, SRQN, DOMAIN);
            rig.engine.add_srq(Arc::clone(&queue));
            (shared, srq_cq) = (Some(queue), Some(cq));
        }
        if let Some(srq) = &shared {
            srq.arm_limit(2);
        }
        let all = attributes().access;
        let regions = [
            rig.region(2048, all | Access::MW_BIND),
            rig.region(2048, Access::LOCAL_WRITE),
            rig.region(64, Access::empty()),
            rig.region_of(PdId(7), 64, all | Access::MW_BIND),
            rig.region(64, Access::REMOTE_READ),
        ];
        let windows = [rig.window(PD, MwType::Type1), rig.window(PD, MwType::Type2)];
        Setup { rig, kind, regions, windows, srq: shared, srq_cq }
    }

    /// Address and key of a region or a window, as a peer would name it.
    pub fn target(&self, choice: u8) -> (u64, RKey) {
        let choice = usize::from(choice) % (self.regions.len() + self.windows.len());
        match choice.checked_sub(self.regions.len()) {
            None => (self.regions[choice].addr, self.regions[choice].rkey()),
            Some(window) => {
                let window = &self.windows[window];
                (window.range().map_or(0, |(addr, _)| addr), RKey::new(window.key()))
            }
        }
    }

    /// Posts a receive. `None` when it was refused, else whether the bell is to be rung.
    pub fn post_recv(&self, wr_id: u64) -> Option<bool> {
        let wr = receive(wr_id, &[self.regions[1].sge(8, 100), self.regions[1].sge(200, 700)]);
        match &self.srq {
            Some(srq) => srq.post(wr).ok().map(|()| false),
            None => self.rig.shared.post_recv(wr).ok(),
        }
    }

    /// Posts a request; as [`post_recv`](Self::post_recv).
    pub fn post_send(&self, wr: SendWr) -> Option<bool> {
        match self.kind {
            Kind::XrcInitiator if !wr.op.stays_local() => self.rig.shared.post_send_xrc(wr, SRQN).ok(),
            _ => self.rig.shared.post_send(wr).ok(),
        }
    }

    /// Completions of receives so far.
    pub fn received(&self) -> Vec<Cqe> {
        let cq = self.srq_cq.as_ref().unwrap_or(&self.rig.recv_cq);
        std::iter::from_fn(|| cq.poll()).collect()
    }

    /// Receives that an SRQ holds: they outlive the QP.
    pub fn receives_left(&self) -> usize {
        self.srq.as_ref().map_or(0, |srq| srq.len())
    }
}
