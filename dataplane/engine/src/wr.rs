//! Work requests, as an application posts them.

use crate::limits::{MAX_INLINE, MAX_SGE};
use crate::mr::MemoryRegion;
use crate::mw::{Binding, MemoryWindow};
use crate::placement::{FlushLevel, Placement};
use arrayvec::ArrayVec;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use wire::{Gid, HeaderTemplate, LKey, Mac, QKey, Qpn, RKey, Reach};

/// A piece of local memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sge {
    /// Address as registered (the region's virtual address, or an offset for a zero-based region).
    pub addr: u64,
    /// Bytes. Zero is allowed and touches nothing.
    pub len: u32,
    /// The key of the region.
    pub lkey: LKey,
}

/// Local data of a send request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WrData {
    /// Gathered from (or, for READ and atomics, scattered to) registered memory.
    Sges(ArrayVec<Sge, MAX_SGE>),
    /// Carried in the request itself: the buffer was free again when the post returned. SEND and WRITE only.
    Inline(ArrayVec<u8, MAX_INLINE>),
}

impl WrData {
    /// Total bytes. `None` when the sum does not fit a `u32`.
    pub fn len(&self) -> Option<u32> {
        match self {
            WrData::Sges(sges) => sges.iter().try_fold(0u32, |sum, sge| sum.checked_add(sge.len)),
            WrData::Inline(bytes) => Some(bytes.len() as u32),
        }
    }

    /// True when there are no bytes at all.
    pub fn is_empty(&self) -> bool {
        self.len() == Some(0)
    }
}

/// Where a remote operation goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Remote {
    /// Address in the peer's region.
    pub addr: u64,
    /// The peer's key.
    pub rkey: RKey,
}

/// Where a UD message goes: the address vector of verbs' AH, with its frame headers ready.
#[derive(Debug)]
pub struct AddressHandle {
    /// Protection domain the handle was made in.
    pub pd: crate::mr::PdId,
    /// Destination GID.
    pub dgid: Gid,
    /// Ethernet, IP and UDP headers. A UDP source port of 0 stands for that of the QP that sends by the handle
    /// ([`wire::udp_sport_of_qpn`]).
    pub template: HeaderTemplate,
    /// The station that its packets go to: the template's, until that moves.
    dmac: AtomicU64,
    withdrawn: AtomicBool,
}

impl AddressHandle {
    /// A handle of a protection domain.
    pub fn new(pd: crate::mr::PdId, dgid: Gid, template: HeaderTemplate) -> AddressHandle {
        let dmac = AtomicU64::new(bits(template.dmac()));
        AddressHandle { pd, dgid, template, dmac, withdrawn: AtomicBool::new(false) }
    }

    /// The station that its packets go to.
    pub fn dmac(&self) -> Mac {
        let [_, _, mac @ ..] = self.dmac.load(Ordering::Relaxed).to_be_bytes();
        Mac(mac)
    }

    /// Has packets that leave from now on go to the station `to`, if they went to `from`; whether they did. What never leaves, or
    /// goes to a group, goes nowhere else.
    pub fn redirect(&self, from: Mac, to: Mac) -> bool {
        let turn = || self.dmac.compare_exchange(bits(from), bits(to), Ordering::Relaxed, Ordering::Relaxed);
        self.template.reach() == Reach::Wire && turn().is_ok()
    }

    /// The headers of a packet of a QP, where they are not the template's: to where the station is now, and from a port of the QP's
    /// where the handle names none.
    #[inline]
    pub(crate) fn headers_of(&self, qpn: Qpn) -> Option<HeaderTemplate> {
        let dmac = self.dmac();
        let (moved, spread) = (dmac != self.template.dmac(), self.template.udp_sport() == 0);
        match (moved, spread) {
            (false, false) => None,
            (true, false) => Some(self.template.with_dmac(dmac)),
            (_, true) => Some(self.template.with_udp_sport(wire::udp_sport_of_qpn(qpn)).with_dmac(dmac)),
        }
    }

    /// The GID that it sends from is gone. Requests by it that are taken from now on end with an error.
    pub fn withdraw(&self) {
        self.withdrawn.store(true, Ordering::Relaxed);
    }

    /// Whether it was [withdrawn](Self::withdraw).
    pub fn is_withdrawn(&self) -> bool {
        self.withdrawn.load(Ordering::Relaxed)
    }
}

fn bits(mac: Mac) -> u64 {
    let [a, b, c, d, e, f] = mac.0;
    u64::from_be_bytes([0, 0, a, b, c, d, e, f])
}

/// What to do.
#[derive(Clone, Debug)]
pub enum SendOp {
    /// SEND.
    Send,
    /// SEND with immediate data (network order).
    SendImm([u8; 4]),
    /// SEND that invalidates a key of the peer.
    SendInv(RKey),
    /// RDMA WRITE.
    Write(Remote),
    /// RDMA WRITE with immediate data.
    WriteImm(Remote, [u8; 4]),
    /// RDMA READ into the local data.
    Read(Remote),
    /// Compare and swap on 8 bytes; the old value goes to the local data.
    CompareSwap {
        /// The peer's 8 bytes.
        remote: Remote,
        /// Swap only if this is there.
        compare: u64,
        /// The new value.
        swap: u64,
    },
    /// Fetch and add on 8 bytes; the old value goes to the local data.
    FetchAdd {
        /// The peer's 8 bytes.
        remote: Remote,
        /// What to add, modulo 2^64.
        add: u64,
    },
    /// WRITE of 8 bytes at once, in the order they have, to an address that is a multiple of 8. It happens once, however often
    /// it is sent.
    AtomicWrite(Remote),
    /// FLUSH: what was written to the peer's memory before is visible or persistent when this completes. No local data.
    Flush {
        /// The peer's memory. For a whole region only the key counts.
        remote: Remote,
        /// Bytes from there on, for a range.
        len: u32,
        /// How far.
        placement: Placement,
        /// A range, or all that the key grants.
        level: FlushLevel,
    },
    /// UD SEND, with optional immediate.
    UdSend {
        /// Where to.
        ah: Arc<AddressHandle>,
        /// The peer's QP.
        remote_qpn: Qpn,
        /// The Q_Key to send; with its top bit set the QP's own is sent instead.
        qkey: QKey,
        /// Immediate data.
        imm: Option<[u8; 4]>,
    },
    /// Invalidates a local key: a fast-registered region becomes free. Nothing goes on the wire.
    LocalInv(RKey),
    /// Binds a memory window, or unbinds one of type 1. Nothing goes on the wire.
    BindMw(Arc<Bind>),
    /// Fast registration: gives a free region its range, rights and low key byte. Nothing goes on the wire.
    RegMr(Arc<FastReg>),
}

/// The bind of a memory window.
#[derive(Debug)]
pub struct Bind {
    /// The window.
    pub mw: Arc<MemoryWindow>,
    /// The key it gets; only the low 8 bits may differ from its own.
    pub key: RKey,
    /// To what. None, or no bytes, unbinds a window of type 1.
    pub to: Option<Binding>,
}

/// A fast registration.
#[derive(Debug)]
pub struct FastReg {
    /// The region, allocated for fast registration and in the free state.
    pub mr: Arc<MemoryRegion>,
    /// The key it gets; only the low 8 bits may differ from the region's own.
    pub key: RKey,
    /// Virtual address of its first byte.
    pub addr: u64,
    /// Bytes; at most what the region was allocated for.
    pub len: u64,
    /// Rights.
    pub access: crate::Access,
}

bitflags::bitflags! {
    /// Flags of a send request, with the verbs' bit values.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
    pub struct SendFlags: u32 {
        /// Wait for all earlier READs and atomics.
        const FENCE = 1;
        /// Give a completion even on success.
        const SIGNALED = 2;
        /// Ask the peer for a solicited event.
        const SOLICITED = 4;
    }
}

/// A send work request.
#[derive(Clone, Debug)]
pub struct SendWr {
    /// Comes back in the completion.
    pub wr_id: u64,
    /// What to do.
    pub op: SendOp,
    /// Local data.
    pub data: WrData,
    /// Flags.
    pub flags: SendFlags,
}

/// A receive work request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecvWr {
    /// Comes back in the completion.
    pub wr_id: u64,
    /// Where an arriving message is scattered to.
    pub sges: ArrayVec<Sge, MAX_SGE>,
}
