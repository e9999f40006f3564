//! XRC: a domain, and its targets.
//!
//! One connection reaches every SRQ of a process: an initiator names the SRQ in each request, a target takes the receive from
//! there. A target belongs to a domain, and so do the SRQs that its requests may name.

use super::{Cq, Device, Pd, Qp, QpOptions, Srq, SrqOptions, last_handle};
use crate::error::{CreateError, InUse};
use engine::{QpType, XrcdId};
use std::sync::Arc;

/// An XRC domain. Clones are the same domain. Targets and XRC SRQs keep it.
#[derive(Clone)]
pub struct Xrcd {
    inner: Arc<Inner>,
}

struct Inner {
    id: XrcdId,
    /// Of targets, which have none of their own: neither is used.
    pd: Pd,
    cq: Cq,
}

impl std::fmt::Debug for Xrcd {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.inner.id.fmt(f)
    }
}

impl Xrcd {
    pub(super) fn new(device: &Device) -> Result<Xrcd, CreateError> {
        let id = XrcdId(device.port.names().id());
        Ok(Xrcd { inner: Arc::new(Inner { id, pd: device.alloc_pd(), cq: device.create_cq(1)? }) })
    }

    /// Its device.
    pub fn device(&self) -> &Device {
        self.inner.pd.device()
    }

    /// Creates a target in RESET: the receiving half of an XRC connection, whose sending half is a queue pair of type
    /// [`XrcIni`](QpType::XrcIni) at the peer. It has no queues of its own: requests name an SRQ of this domain, whose protection
    /// domain their keys belong to, and receives complete to that SRQ's completion queue.
    pub fn create_target(&self) -> Result<Qp, CreateError> {
        let Inner { pd, cq, .. } = &*self.inner;
        Qp::new(pd, &QpOptions::new(QpType::XrcTgt, cq), Some(self))
    }

    /// Closes the domain. Refused, and the handle given back, while targets, SRQs or other handles of it exist. Without this it is
    /// closed when the last of them goes.
    pub fn close(self) -> Result<(), (Xrcd, InUse)> {
        last_handle::drop(self.inner).map_err(|(inner, why)| (Xrcd { inner }, why))
    }

    pub(super) fn id(&self) -> XrcdId {
        self.inner.id
    }
}

impl Pd {
    /// Creates an XRC SRQ: requests to any target of `xrcd` reach it by its [number](Srq::srqn), and its receives complete to `cq`.
    /// What requests do is checked against this protection domain.
    pub fn create_xrc_srq(&self, options: &SrqOptions, xrcd: &Xrcd, cq: &Cq) -> Result<Srq, CreateError> {
        Srq::xrc(self, options, xrcd, cq)
    }
}
