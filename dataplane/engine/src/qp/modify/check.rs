//! The checks of a modify. Nothing here changes the QP.

use super::ModifyError;
use crate::limits::{MAX_ACK_TIMEOUT, MAX_RD_ATOMIC, MAX_RETRIES, MAX_RNR_TIMER};
use crate::qp::{Path, Qp, QpAttr, QpAttrMask, QpState, rule};
use wire::{Addressing, HeaderTemplate, Qpn};

/// What a checked modify does besides copying attributes.
pub(super) struct Change {
    /// The state afterwards.
    pub to: QpState,
    /// The new path, if one was given.
    pub path: Option<Path>,
}

pub(super) fn check(qp: &Qp, attr: &QpAttr, mask: QpAttrMask) -> Result<Change, ModifyError> {
    current_state(qp, attr, mask)?;
    let to = if mask.contains(QpAttrMask::STATE) { attr.state } else { qp.state };
    attributes(qp, to, mask)?;
    drained(qp, to, mask)?;
    values(qp, attr, mask)?;
    let path = if mask.contains(QpAttrMask::AV) { Some(path(qp, attr, mask)?) } else { None };
    Ok(Change { to, path })
}

/// rocev2 facts: CUR_STATE may be given only as RTR, RTS, SQD or SQE. It guards against a move that the QP made by itself.
fn current_state(qp: &Qp, attr: &QpAttr, mask: QpAttrMask) -> Result<(), ModifyError> {
    use QpState::{Rtr, Rts, Sqd, Sqe};
    let (given, actual) = (attr.cur_state, qp.state);
    if !mask.contains(QpAttrMask::CUR_STATE) {
        return Ok(());
    }
    if !matches!(given, Rtr | Rts | Sqd | Sqe) {
        return Err(ModifyError::CurStateNotAllowed(given));
    }
    if given == actual { Ok(()) } else { Err(ModifyError::CurState { given, actual }) }
}

/// The move exists, has all it requires and nothing else.
fn attributes(qp: &Qp, to: QpState, mask: QpAttrMask) -> Result<(), ModifyError> {
    let (qp_type, from) = (qp.qp_type, qp.state);
    if mask.contains(QpAttrMask::ALT_PATH) {
        return Err(ModifyError::AltPath);
    }
    let rule = rule(qp_type, from, to).ok_or(ModifyError::Transition { qp_type, from, to })?;
    let extra = rule.forbidden(mask);
    if !extra.is_empty() {
        return Err(ModifyError::Forbidden { from, to, extra });
    }
    let missing = rule.missing(mask);
    if missing.is_empty() { Ok(()) } else { Err(ModifyError::Missing { from, to, missing }) }
}

/// A send queue that is told to drain comes to rest before it goes on or gets new attributes. RESET and ERROR do not
/// wait.
fn drained(qp: &Qp, to: QpState, mask: QpAttrMask) -> Result<(), ModifyError> {
    let changes = to == QpState::Rts || !mask.difference(QpAttrMask::STATE).is_empty();
    let goes_on = matches!(to, QpState::Rts | QpState::Sqd);
    if qp.state == QpState::Sqd && goes_on && changes && !qp.req.is_drained() {
        return Err(ModifyError::Draining);
    }
    Ok(())
}

fn values(qp: &Qp, attr: &QpAttr, mask: QpAttrMask) -> Result<(), ModifyError> {
    if mask.contains(QpAttrMask::PKEY_INDEX) && attr.pkey_index != 0 {
        return Err(ModifyError::PKeyIndex(attr.pkey_index));
    }
    if mask.contains(QpAttrMask::PORT) && attr.port != 1 {
        return Err(ModifyError::Port(attr.port));
    }
    if mask.contains(QpAttrMask::PATH_MTU) && attr.path_mtu > qp.port_mtu {
        return Err(ModifyError::PathMtu { given: attr.path_mtu, port: qp.port_mtu });
    }
    // rocev2 facts, wire: QP 0 does not exist on RoCE, and 0xFFFFFF is where multicast goes.
    if mask.contains(QpAttrMask::DEST_QPN) && matches!(attr.dest_qpn, Qpn::SMI | Qpn::MULTICAST) {
        return Err(ModifyError::DestQpn(attr.dest_qpn));
    }
    let bounded = [
        (QpAttrMask::TIMEOUT, attr.timeout, MAX_ACK_TIMEOUT),
        (QpAttrMask::RETRY_CNT, attr.retry_cnt, MAX_RETRIES),
        (QpAttrMask::RNR_RETRY, attr.rnr_retry, MAX_RETRIES),
        (QpAttrMask::MIN_RNR_TIMER, attr.min_rnr_timer, MAX_RNR_TIMER),
        (QpAttrMask::MAX_RD_ATOMIC, attr.max_rd_atomic, MAX_RD_ATOMIC),
        (QpAttrMask::MAX_DEST_RD_ATOMIC, attr.max_dest_rd_atomic, MAX_RD_ATOMIC),
    ];
    for (attribute, given, max) in bounded {
        if mask.contains(attribute) && given > max {
            return Err(ModifyError::OutOfRange { attribute, given, max });
        }
    }
    Ok(())
}

/// The path as it will be sent on. A source port of 0 stands for the one that Linux would choose: from the flow label,
/// or from both QPNs, so that both ends of a connection come to the same port and QPs spread over paths.
fn path(qp: &Qp, attr: &QpAttr, mask: QpAttrMask) -> Result<Path, ModifyError> {
    let given = attr.path.ok_or(ModifyError::NoPath)?;
    for gid in [given.src, given.dst] {
        if gid.is_unspecified() || gid.is_multicast() {
            return Err(ModifyError::PathGid(gid));
        }
    }
    let peer = if mask.contains(QpAttrMask::DEST_QPN) { attr.dest_qpn } else { qp.attr.dest_qpn };
    let udp_sport = match given.udp_sport {
        0 => wire::udp_sport(given.flow_label, qp.qpn, peer),
        sport => sport,
    };
    let template =
        HeaderTemplate::new(&Addressing { udp_sport, ..given }).map_err(ModifyError::PathFamilies)?;
    let vid = given.vlan.map_or(0, |tag| tag.vid);
    Ok(Path { template, local: given.src, remote: given.dst, vid })
}
