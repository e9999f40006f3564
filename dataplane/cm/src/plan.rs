//! What both ends derive from REQ and REP for their QPs (rocev2 facts, CM 12).

use crate::params::asked_ack_timeout;
use crate::{Path, RepParams};
use wire::mad::{Rep, Req, Transport};
use wire::{Mtu, Psn, Qpn};

/// Attributes for the moves of a QP to RTR and RTS.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QpPlan {
    /// RC or UC.
    pub transport: Transport,
    /// Addresses, traffic class, flow label, hop limit and service level of the packets.
    pub path: Path,
    /// The peer's QP.
    pub dest_qpn: Qpn,
    /// What our receive queue expects first.
    pub rq_psn: Psn,
    /// What our send queue begins with.
    pub sq_psn: Psn,
    /// Path MTU.
    pub mtu: Mtu,
    /// READs and atomics that the peer will have outstanding here.
    pub max_dest_rd_atomic: u8,
    /// READs and atomics that we may have outstanding there.
    pub max_rd_atomic: u8,
    /// Retries.
    pub retry_count: u8,
    /// RNR retries.
    pub rnr_retry_count: u8,
    /// Local ACK timeout, a 5-bit code.
    pub ack_timeout: u8,
}

impl QpPlan {
    /// The active side's. `None` when the request has no valid MTU, which none of ours has.
    pub(crate) fn active(path: &Path, req: &Req, rep: &Rep, ack_timeout: u8) -> Option<QpPlan> {
        Some(QpPlan {
            transport: req.transport,
            path: *path,
            dest_qpn: rep.local_qpn,
            rq_psn: req.starting_psn,
            sq_psn: rep.starting_psn,
            mtu: req.mtu()?,
            // Depths cross over, and neither side may be asked for more than it offered.
            max_dest_rd_atomic: rep.initiator_depth.min(req.responder_resources),
            max_rd_atomic: rep.responder_resources.min(req.initiator_depth),
            retry_count: req.retry_count,
            rnr_retry_count: rep.rnr_retry_count,
            ack_timeout,
        })
    }

    /// The passive side's, for what it is going to answer.
    pub(crate) fn passive(path: &Path, req: &Req, params: &RepParams) -> Option<QpPlan> {
        let (responder_resources, initiator_depth) = accepted_depths(req, params);
        Some(QpPlan {
            transport: req.transport,
            path: Path {
                traffic_class: req.primary.traffic_class,
                flow_label: req.primary.flow_label,
                sl: req.primary.sl,
                ..*path
            },
            dest_qpn: req.local_qpn,
            rq_psn: params.rq_psn,
            sq_psn: req.starting_psn,
            mtu: req.mtu()?,
            max_dest_rd_atomic: responder_resources,
            max_rd_atomic: initiator_depth,
            retry_count: req.retry_count,
            rnr_retry_count: req.rnr_retry_count,
            // What the peer needs to acknowledge is in it (rocev2 facts, CM 12).
            ack_timeout: asked_ack_timeout(req.primary.ack_timeout),
        })
    }
}

/// Responder resources and initiator depth of the REP: ours, but no more than the peer can use.
pub(crate) fn accepted_depths(req: &Req, params: &RepParams) -> (u8, u8) {
    (params.responder_resources.min(req.initiator_depth), params.initiator_depth.min(req.responder_resources))
}
