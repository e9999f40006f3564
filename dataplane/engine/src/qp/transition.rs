//! The table of QP transitions: which moves exist and which attributes each requires and allows.

use super::{QpAttrMask, QpState, QpType};

/// Attributes of a move.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rule {
    /// Must be given.
    pub required: QpAttrMask,
    /// May be given.
    pub optional: QpAttrMask,
}

/// The rule of a move; `None` when a QP of this type cannot make it.
pub fn rule(qp_type: QpType, from: QpState, to: QpState) -> Option<Rule> {
    let _ = (qp_type, from, to);
    None
}
