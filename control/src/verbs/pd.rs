//! A protection domain: what may be used together.

use super::{Ah, AhAttr, Cq, Device, FastMr, Mr, Mw, Qp, Srq, SrqOptions};
use crate::error::CreateError;
use engine::{Access, Cqe, MwType, PdId, QpType, limits};
use std::fs::File;
use std::net::IpAddr;
use std::sync::Arc;

/// A protection domain. Clones are the same domain.
#[derive(Clone)]
pub struct Pd {
    inner: Arc<(PdId, Device)>,
}

impl std::fmt::Debug for Pd {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.inner.fmt(f)
    }
}

/// Sizes of a queue pair, after `ibv_qp_cap`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QpCaps {
    /// Send requests, from post to completion.
    pub max_send_wr: u32,
    /// Receives posted.
    pub max_recv_wr: u32,
    /// Scatter/gather entries of a send request.
    pub max_send_sge: usize,
    /// Scatter/gather entries of a receive.
    pub max_recv_sge: usize,
    /// Bytes that a send request can carry inline.
    pub max_inline_data: usize,
}

impl Default for QpCaps {
    /// 128 requests of 4 entries each way, and the most of inline data.
    fn default() -> Self {
        QpCaps {
            max_send_wr: 128,
            max_recv_wr: 128,
            max_send_sge: 4,
            max_recv_sge: 4,
            max_inline_data: limits::MAX_INLINE,
        }
    }
}

/// What a queue pair is made from, after `ibv_qp_init_attr`.
#[derive(Clone, Debug)]
pub struct QpOptions {
    /// Service type.
    pub qp_type: QpType,
    /// Where sends complete.
    pub send_cq: Cq,
    /// Where receives complete.
    pub recv_cq: Cq,
    /// Where receives come from, instead of a queue of its own (whose sizes then do not matter).
    pub srq: Option<Srq>,
    /// Sizes.
    pub caps: QpCaps,
    /// Every send gives a completion, whether its request asks for one or not.
    pub sq_sig_all: bool,
}

impl QpOptions {
    /// A queue pair of this type with one completion queue for both directions.
    pub fn new(qp_type: QpType, cq: &Cq) -> Self {
        QpOptions {
            qp_type,
            send_cq: cq.clone(),
            recv_cq: cq.clone(),
            srq: None,
            caps: QpCaps::default(),
            sq_sig_all: false,
        }
    }
}

impl Pd {
    pub(super) fn new(device: Device) -> Pd {
        let id = PdId(device.port.names().id());
        Pd { inner: Arc::new((id, device)) }
    }

    /// Its device.
    pub fn device(&self) -> &Device {
        &self.inner.1
    }

    pub(super) fn id(&self) -> PdId {
        self.inner.0
    }

    /// Allocates `len` bytes of zeros and registers them.
    pub fn reg_mr(&self, len: usize, access: Access) -> Result<Mr, CreateError> {
        Mr::new(self, len, access)
    }

    /// Registers the first `len` bytes of a file, which is made as long as that: memory that a peer's FLUSH to persistence
    /// (`Access::FLUSH_PERSISTENT`) writes to the disk. The worker that executes it waits for the disk, and all its queue pairs
    /// with it. The file is opened for reading and writing, lies on a disk, and is not cut short while the region lives.
    pub fn reg_file_mr(&self, file: &File, len: usize, access: Access) -> Result<Mr, CreateError> {
        Mr::of_file(self, file, len, access)
    }

    /// Allocates a memory window, which is not bound. One of type 1 is bound by [`Qp::bind_mw`], one of type 2 by
    /// [`SendWr::bind_mw`](super::SendWr::bind_mw).
    pub fn alloc_mw(&self, mw_type: MwType) -> Result<Mw, CreateError> {
        Mw::new(self, mw_type)
    }

    /// Allocates `len` bytes for fast registration: no key works until a request registers them.
    pub fn alloc_fast_mr(&self, len: usize) -> Result<FastMr, CreateError> {
        FastMr::new(self, len)
    }

    /// Creates a queue pair in RESET.
    pub fn create_qp(&self, options: &QpOptions) -> Result<Qp, CreateError> {
        Qp::new(self, options, None)
    }

    /// Creates a shared receive queue, for the receives of several queue pairs.
    pub fn create_srq(&self, options: &SrqOptions) -> Result<Srq, CreateError> {
        Srq::new(self, options)
    }

    /// Creates an address handle for `destination`, which is resolved first (see [`Device::resolve`]).
    pub fn create_ah(&self, destination: IpAddr, sgid_index: Option<usize>) -> Result<Ah, CreateError> {
        self.create_ah_with(destination, &AhAttr { sgid_index, ..AhAttr::default() })
    }

    /// Creates an address handle with attributes of its own, after `ibv_create_ah`.
    pub fn create_ah_with(&self, destination: IpAddr, attr: &AhAttr) -> Result<Ah, CreateError> {
        Ah::with(self, destination, attr)
    }

    /// Creates an address handle for the sender of a datagram, after `ibv_create_ah_from_wc`: `completion` is that of the
    /// receive, `grh` the first 40 bytes of its buffer. Answers carry the traffic class and flow label of the question, from
    /// the address that it came to.
    pub fn create_ah_from_wc(&self, completion: &Cqe, grh: &[u8; 40]) -> Result<Ah, CreateError> {
        if !completion.is_success() || !completion.has_grh {
            return Err(CreateError::NoGrh);
        }
        let (sender, attr) = AhAttr::of_received(self, grh, completion.vlan)?;
        Ah::with(self, sender, &attr)
    }
}
