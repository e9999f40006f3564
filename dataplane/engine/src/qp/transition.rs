//! The table of QP transitions: which moves exist and which attributes each requires and allows (rocev2 facts,
//! transport sections 13 and 14).
//!
//! Left out: the alternate path. A path cannot migrate on RoCE, so [`QpAttrMask::ALT_PATH`] is in no row, as in
//! Linux; the migration state is, because programs set it by habit.

use super::QpState::{self, Err, Init, Reset, Rtr, Rts, Sqd, Sqe};
use super::QpType::{self, Rc, Uc, Ud, XrcIni, XrcTgt};
use super::{QpAttrMask, attr::flag::*};

/// Attributes of a move.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rule {
    /// Must be given.
    pub required: QpAttrMask,
    /// May be given.
    pub optional: QpAttrMask,
}

impl Rule {
    /// What the rule requires and `mask` does not have.
    pub fn missing(self, mask: QpAttrMask) -> QpAttrMask {
        self.required.difference(mask)
    }

    /// What `mask` has and the rule does not know. The state itself belongs to every move.
    pub fn forbidden(self, mask: QpAttrMask) -> QpAttrMask {
        mask.difference(self.required.union(self.optional).union(STATE))
    }
}

/// The rule of a move; `None` when a QP of this type cannot make it by a modify.
pub fn rule(qp_type: QpType, from: QpState, to: QpState) -> Option<Rule> {
    let row =
        ROWS.iter().find(|row| row.types.contains(&qp_type) && row.from.contains(&from) && row.to == to)?;
    Some(Rule { required: union(row.required), optional: union(row.optional) })
}

struct Row {
    types: &'static [QpType],
    from: &'static [QpState],
    to: QpState,
    required: &'static [QpAttrMask],
    optional: &'static [QpAttrMask],
}

fn union(flags: &[QpAttrMask]) -> QpAttrMask {
    flags.iter().copied().collect()
}

const ALL: &[QpType] = &[Rc, Uc, Ud, XrcIni, XrcTgt];
const CONNECTED: &[QpType] = &[Rc, Uc, XrcIni, XrcTgt];
/// Who answers requests: rocev2 facts, transport 14, the XRC initiator is like RC without that at RTR.
const ANSWERING: &[QpType] = &[Rc, XrcTgt];
/// RC goes straight to ERROR when a send fails.
const WITH_SQE: &[QpType] = &[Uc, Ud];

/// States of every type; SQE is extra.
const COMMON: &[QpState] = &[Reset, Init, Rtr, Rts, Sqd, Err];

/// All of them but RESET. The specification lets a QP go from any state to ERROR, Linux's table has no RESET → ERROR; we
/// follow Linux: in RESET nothing is posted that could be flushed, and programs are tested against Linux.
const STARTED: &[QpState] = &[Init, Rtr, Rts, Sqd, Err];

#[rustfmt::skip]
const ROWS: [Row; 26] = {
    const fn row(
        types: &'static [QpType], from: &'static [QpState], to: QpState,
        required: &'static [QpAttrMask], optional: &'static [QpAttrMask],
    ) -> Row {
        Row { types, from, to, required, optional }
    }
    [
        row(ALL,       COMMON,        Reset, &[], &[]),
        row(WITH_SQE,  &[Sqe],        Reset, &[], &[]),
        row(ALL,       STARTED,       Err,   &[], &[]),
        row(WITH_SQE,  &[Sqe],        Err,   &[], &[]),
        row(CONNECTED, &[Reset],      Init,  &[PKEY_INDEX, PORT, ACCESS], &[]),
        row(&[Ud],     &[Reset],      Init,  &[PKEY_INDEX, PORT, QKEY], &[]),
        row(CONNECTED, &[Init],       Init,  &[], &[PKEY_INDEX, PORT, ACCESS]),
        row(&[Ud],     &[Init],       Init,  &[], &[PKEY_INDEX, PORT, QKEY]),
        row(ANSWERING, &[Init],       Rtr,
            &[AV, PATH_MTU, DEST_QPN, RQ_PSN, MAX_DEST_RD_ATOMIC, MIN_RNR_TIMER], &[ACCESS, PKEY_INDEX]),
        row(&[Uc, XrcIni], &[Init],   Rtr,   &[AV, PATH_MTU, DEST_QPN, RQ_PSN], &[ACCESS, PKEY_INDEX]),
        row(&[Ud],     &[Init],       Rtr,   &[], &[PKEY_INDEX, QKEY]),
        row(&[Rc],     &[Rtr],        Rts,
            &[TIMEOUT, RETRY_CNT, RNR_RETRY, SQ_PSN, MAX_RD_ATOMIC],
            &[CUR_STATE, ACCESS, MIN_RNR_TIMER, PATH_MIG_STATE]),
        row(&[XrcIni], &[Rtr],        Rts,
            &[TIMEOUT, RETRY_CNT, RNR_RETRY, SQ_PSN, MAX_RD_ATOMIC], &[CUR_STATE, ACCESS, PATH_MIG_STATE]),
        row(&[XrcTgt], &[Rtr],        Rts,
            &[TIMEOUT, SQ_PSN], &[CUR_STATE, ACCESS, MIN_RNR_TIMER, PATH_MIG_STATE]),
        row(&[Uc],     &[Rtr],        Rts,   &[SQ_PSN], &[CUR_STATE, ACCESS, PATH_MIG_STATE]),
        row(&[Ud],     &[Rtr],        Rts,   &[SQ_PSN], &[CUR_STATE, QKEY]),
        row(ANSWERING, &[Rts, Sqd],   Rts,   &[], &[CUR_STATE, ACCESS, PATH_MIG_STATE, MIN_RNR_TIMER]),
        row(&[Uc, XrcIni], &[Rts, Sqd], Rts,   &[], &[CUR_STATE, ACCESS, PATH_MIG_STATE]),
        row(&[Ud],     &[Rts, Sqd, Sqe], Rts, &[], &[CUR_STATE, QKEY]),
        row(&[Uc],     &[Sqe],        Rts,   &[], &[CUR_STATE, ACCESS]),
        row(ALL,       &[Rts],        Sqd,   &[], &[EN_SQD_ASYNC_NOTIFY]),
        row(&[Rc],     &[Sqd],        Sqd,   &[],
            &[PORT, AV, TIMEOUT, RETRY_CNT, RNR_RETRY, MAX_RD_ATOMIC, MAX_DEST_RD_ATOMIC, ACCESS, PKEY_INDEX,
              MIN_RNR_TIMER, PATH_MIG_STATE]),
        row(&[XrcIni], &[Sqd],        Sqd,   &[],
            &[PORT, AV, TIMEOUT, RETRY_CNT, RNR_RETRY, MAX_RD_ATOMIC, ACCESS, PKEY_INDEX, PATH_MIG_STATE]),
        row(&[XrcTgt], &[Sqd],        Sqd,   &[],
            &[PORT, AV, TIMEOUT, MAX_DEST_RD_ATOMIC, ACCESS, PKEY_INDEX, MIN_RNR_TIMER, PATH_MIG_STATE]),
        row(&[Uc],     &[Sqd],        Sqd,   &[], &[AV, ACCESS, PKEY_INDEX, PATH_MIG_STATE]),
        row(&[Ud],     &[Sqd],        Sqd,   &[], &[PKEY_INDEX, QKEY]),
    ]
};
