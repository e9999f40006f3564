//! The moves of a queue pair that follow from REQ and REP (rocev2 facts, CM 12). What to set is said by [`QpPlan`].

use super::error::CmError;
use super::params::CmOptions;
use crate::verbs::{ConnectOptions, Qp};
use ::cm::QpPlan;
use engine::{Access, QpAttr, QpAttrMask as Mask, QpState, QpType};
use wire::Addressing;

/// What needs READs and atomics to be served.
const NEEDS_RESOURCES: Access = Access::REMOTE_READ
    .union(Access::REMOTE_ATOMIC)
    .union(Access::FLUSH_GLOBAL)
    .union(Access::FLUSH_PERSISTENT);

/// RESET → INIT, of an attached queue pair: receives may be posted. Datagrams go on to RTS: they need no peer.
pub(super) fn attach(qp: &Qp, options: &CmOptions) -> Result<(), CmError> {
    if qp.state() != QpState::Reset {
        return Ok(());
    }
    let options = ConnectOptions { access: options.access, qkey: options.qkey, ..ConnectOptions::default() };
    match qp.qp_type() {
        QpType::Ud => qp.activate(&options)?,
        _ => qp.to_init(&options)?,
    }
    Ok(())
}

/// INIT → RTR → RTS in one command. `way` is how packets get to the peer; the plan knows the rest.
pub(super) fn connect(qp: &Qp, plan: &QpPlan, way: &Addressing, options: &CmOptions) -> Result<(), CmError> {
    let refused = if plan.max_dest_rd_atomic == 0 { NEEDS_RESOURCES } else { Access::empty() };
    let path = Addressing {
        traffic_class: plan.path.traffic_class,
        flow_label: plan.path.flow_label,
        // Chosen by the engine from the flow label or both QPNs, so the same at both ends.
        udp_sport: 0,
        ..*way
    };
    let receive = QpAttr {
        state: QpState::Rtr,
        path: Some(path),
        path_mtu: plan.mtu,
        dest_qpn: plan.dest_qpn,
        rq_psn: plan.rq_psn,
        max_dest_rd_atomic: plan.max_dest_rd_atomic,
        min_rnr_timer: options.min_rnr_timer,
        access: options.access.difference(refused),
        ..QpAttr::default()
    };
    let send = QpAttr {
        state: QpState::Rts,
        sq_psn: plan.sq_psn,
        timeout: plan.ack_timeout,
        retry_cnt: plan.retry_count,
        rnr_retry: plan.rnr_retry_count,
        max_rd_atomic: plan.max_rd_atomic,
        ..QpAttr::default()
    };
    let mut receive_mask =
        Mask::STATE | Mask::AV | Mask::PATH_MTU | Mask::DEST_QPN | Mask::RQ_PSN | Mask::ACCESS;
    let mut send_mask = Mask::STATE | Mask::SQ_PSN;
    if qp.qp_type() == QpType::Rc {
        receive_mask |= Mask::MAX_DEST_RD_ATOMIC | Mask::MIN_RNR_TIMER;
        send_mask |= Mask::TIMEOUT | Mask::RETRY_CNT | Mask::RNR_RETRY | Mask::MAX_RD_ATOMIC;
    }
    qp.walk(vec![(receive, receive_mask), (send, send_mask)])?;
    Ok(())
}

/// To ERROR: what is posted completes with a flush. A queue pair that never left RESET has nothing to flush; one whose worker is
/// gone has no need.
pub(super) fn fail(qp: &Qp) {
    if !matches!(qp.state(), QpState::Reset | QpState::Err) {
        let to_error = QpAttr { state: QpState::Err, ..QpAttr::default() };
        let _ = qp.modify(&to_error, Mask::STATE);
    }
}
