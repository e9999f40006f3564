//! An address handle: where a datagram goes.

use super::Pd;
use crate::error::CreateError;
use engine::AddressHandle;
use std::sync::Arc;
use wire::{Addressing, Gid, HeaderTemplate};

/// An address handle. Clones are the same handle. Requests that were posted with it keep what they need.
#[derive(Clone, Debug)]
pub struct Ah {
    handle: Arc<AddressHandle>,
    _pd: Pd,
}

impl Ah {
    /// A handle for headers that are known already.
    pub fn new(pd: &Pd, addressing: Addressing) -> Result<Ah, CreateError> {
        let template = HeaderTemplate::new(&addressing)?;
        let handle = AddressHandle { pd: pd.id(), dgid: addressing.dst, template };
        Ok(Ah { handle: Arc::new(handle), _pd: pd.clone() })
    }

    /// Where it leads.
    pub fn dgid(&self) -> Gid {
        self.handle.dgid
    }

    pub(crate) fn handle(&self) -> &Arc<AddressHandle> {
        &self.handle
    }
}
