//! Error states and flushing.

use super::{Ctx, Qp};
use crate::memory::Memory;
use crate::status::WcStatus;

/// The QP goes to ERROR: everything in flight and posted is flushed, in queue order. Does nothing in ERROR.
pub(crate) fn enter_error<M: Memory>(qp: &mut Qp, ctx: &Ctx<'_, M>) {
    let _ = (qp, ctx);
}

/// The oldest unfinished send request ends with `status`; then the QP goes to ERROR (RC) or SQE (UC, UD).
pub(crate) fn fail_send<M: Memory>(qp: &mut Qp, ctx: &Ctx<'_, M>, status: WcStatus) {
    let _ = (qp, ctx, status);
}

/// In ERROR or SQE: flushes what was posted since.
pub(crate) fn flush_posted<M: Memory>(qp: &mut Qp, ctx: &Ctx<'_, M>) {
    let _ = (qp, ctx);
}
