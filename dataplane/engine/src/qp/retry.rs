//! Retries: the ACK timer, go-back-N, and the end of patience.

use super::{Ctx, Qp};
use crate::memory::Memory;

/// The ACK or RNR timer fired.
pub(crate) fn on_timeout<M: Memory>(qp: &mut Qp, ctx: &Ctx<'_, M>) {
    let _ = (qp, ctx);
}
