//! Destroying a verbs object that several handles may name.

use crate::error::InUse;
use std::sync::Arc;

/// Drops the object behind `handle`. Gives the handle back, with the number of the others, when there are any: only who has the last
/// one can make another, so none can appear meanwhile.
pub(super) fn drop<T>(handle: Arc<T>) -> Result<(), (Arc<T>, InUse)> {
    match Arc::try_unwrap(handle) {
        Ok(last) => {
            std::mem::drop(last);
            Ok(())
        }
        Err(handle) => {
            let others = Arc::strong_count(&handle) - 1;
            Err((handle, InUse::Handles(others)))
        }
    }
}
