//! Changing a QP's attributes and state: all checks first, then all changes (rocev2 facts, transport sections 13 to 15).

mod check;
mod error;

pub use error::ModifyError;

use super::{Ctx, Qp, QpAttr, QpAttrMask, QpState, complete, flush};
use crate::memory::Memory;
use check::Change;
use wire::Psn;

impl Qp {
    /// Checks everything, then changes everything, or nothing.
    pub(crate) fn modify<M: Memory>(
        &mut self,
        ctx: &Ctx<'_, M>,
        attr: &QpAttr,
        mask: QpAttrMask,
    ) -> Result<(), ModifyError> {
        let Change { to, path } = check::check(self, attr, mask)?;
        let from = self.state;
        take_attributes(&mut self.attr, attr, mask);
        if path.is_some() {
            self.path = path;
        }
        match to {
            QpState::Reset => self.reset(),
            QpState::Err => flush::enter_error(self, ctx),
            QpState::Rtr => {
                self.resp.reset(self.attr.rq_psn, self.attr.max_dest_rd_atomic);
                self.set_state(to);
            }
            QpState::Rts if from == QpState::Rtr => {
                self.req.reset(self.attr.sq_psn);
                self.set_state(to);
            }
            QpState::Sqd => {
                if mask.contains(QpAttrMask::MAX_DEST_RD_ATOMIC) {
                    self.resp.resize(attr.max_dest_rd_atomic);
                }
                self.set_state(to);
                // A queue with nothing in flight has drained already.
                complete::settle(self, ctx);
            }
            QpState::Init | QpState::Rts | QpState::Sqe => self.set_state(to),
        }
        Ok(())
    }

    /// Back to how it was created. Work requests vanish without completions; those of an SRQ belong to others too and
    /// stay.
    pub(crate) fn reset(&mut self) {
        // First the state, so that nobody posts behind what is thrown away.
        self.set_state(QpState::Reset);
        while self.take_receive().is_some() {}
        self.shared.rq().await_flush(false);
        self.req.reset(Psn::new(0));
        self.resp.reset(Psn::new(0), 0);
        self.attr = QpAttr::default();
        self.path = None;
        self.established = false;
    }
}

/// Copies what the mask names.
fn take_attributes(to: &mut QpAttr, from: &QpAttr, mask: QpAttrMask) {
    macro_rules! take {
        ($($flag:ident => $field:ident,)*) => {
            $(if mask.contains(QpAttrMask::$flag) { to.$field = from.$field.clone(); })*
        };
    }
    take! {
        EN_SQD_ASYNC_NOTIFY => notify_drained,
        ACCESS => access,
        PKEY_INDEX => pkey_index,
        PORT => port,
        QKEY => qkey,
        AV => path,
        PATH_MTU => path_mtu,
        TIMEOUT => timeout,
        RETRY_CNT => retry_cnt,
        RNR_RETRY => rnr_retry,
        RQ_PSN => rq_psn,
        MAX_RD_ATOMIC => max_rd_atomic,
        MIN_RNR_TIMER => min_rnr_timer,
        SQ_PSN => sq_psn,
        MAX_DEST_RD_ATOMIC => max_dest_rd_atomic,
        DEST_QPN => dest_qpn,
    }
}

#[cfg(test)]
mod tests;
