//! Work requests, built in one expression.

use super::{Ah, FastMr, Mw, MwBind};
use engine::wr::{FastReg, Remote};
use engine::{Access, FlushLevel, Placement, SendFlags, SendOp, Sge, WrData, limits};
use std::sync::Arc;
use wire::{QKey, Qpn, RKey, Srqn};

/// A send request. It gives a completion unless made [`unsignaled`](Self::unsignaled).
///
/// ```
/// use rockhopper::SendWr;
/// let greeting = SendWr::send(7).inline(b"hello");
/// ```
#[derive(Clone, Debug)]
pub struct SendWr {
    wr_id: u64,
    op: SendOp,
    data: Data,
    flags: SendFlags,
    srqn: Option<Srqn>,
}

/// Local data while it is being put together. Too much of it is told by the post, not here.
#[derive(Clone, Debug)]
enum Data {
    Sges(Vec<Sge>),
    Inline(Vec<u8>),
}

impl SendWr {
    fn new(wr_id: u64, op: SendOp) -> Self {
        SendWr { wr_id, op, data: Data::Sges(Vec::new()), flags: SendFlags::SIGNALED, srqn: None }
    }

    /// SEND.
    pub fn send(wr_id: u64) -> Self {
        Self::new(wr_id, SendOp::Send)
    }

    /// SEND with 4 bytes that arrive in the completion.
    pub fn send_imm(wr_id: u64, imm: [u8; 4]) -> Self {
        Self::new(wr_id, SendOp::SendImm(imm))
    }

    /// SEND that invalidates a key of the peer: of a region for fast registration, or of a memory window of type 2.
    pub fn send_inv(wr_id: u64, rkey: RKey) -> Self {
        Self::new(wr_id, SendOp::SendInv(rkey))
    }

    /// RDMA WRITE to the peer's memory.
    pub fn write(wr_id: u64, to: Remote) -> Self {
        Self::new(wr_id, SendOp::Write(to))
    }

    /// RDMA WRITE that also takes a receive of the peer and gives it 4 bytes.
    pub fn write_imm(wr_id: u64, to: Remote, imm: [u8; 4]) -> Self {
        Self::new(wr_id, SendOp::WriteImm(to, imm))
    }

    /// RDMA READ from the peer's memory into the local data.
    pub fn read(wr_id: u64, from: Remote) -> Self {
        Self::new(wr_id, SendOp::Read(from))
    }

    /// Swaps the peer's 8 bytes if they equal `compare`; what was there comes to the 8 bytes of local data, in host order.
    pub fn compare_swap(wr_id: u64, at: Remote, compare: u64, swap: u64) -> Self {
        Self::new(wr_id, SendOp::CompareSwap { remote: at, compare, swap })
    }

    /// Adds to the peer's 8 bytes; what was there comes to the 8 bytes of local data, in host order.
    pub fn fetch_add(wr_id: u64, at: Remote, add: u64) -> Self {
        Self::new(wr_id, SendOp::FetchAdd { remote: at, add })
    }

    /// Writes the 8 bytes of local data, or inline ones, to the peer's memory at once, at an address that is a multiple of 8.
    pub fn atomic_write(wr_id: u64, at: Remote) -> Self {
        Self::new(wr_id, SendOp::AtomicWrite(at))
    }

    /// Completes when what this queue pair has written to `len` bytes of the peer's memory before is visible to everyone there,
    /// or persistent. Needs the peer's `FLUSH_GLOBAL` or `FLUSH_PERSISTENT`, and memory that can persist
    /// ([`Pd::reg_file_mr`](super::Pd::reg_file_mr)).
    pub fn flush(wr_id: u64, at: Remote, len: u32, placement: Placement) -> Self {
        Self::new(wr_id, SendOp::Flush { remote: at, len, placement, level: FlushLevel::Range })
    }

    /// As [`flush`](Self::flush), of all that the peer's key grants.
    pub fn flush_region(wr_id: u64, rkey: RKey, placement: Placement) -> Self {
        let remote = Remote { addr: 0, rkey };
        Self::new(wr_id, SendOp::Flush { remote, len: 0, placement, level: FlushLevel::Region })
    }

    /// Datagram, with 4 bytes for the completion if given.
    pub fn ud_send(wr_id: u64, ah: &Ah, remote_qpn: Qpn, qkey: QKey, imm: Option<[u8; 4]>) -> Self {
        Self::new(wr_id, SendOp::UdSend { ah: Arc::clone(ah.handle()), remote_qpn, qkey, imm })
    }

    /// Binds a memory window of type 2, which has to be free, to a piece of a region; from then on it belongs to the queue pair
    /// that the request is posted to. `key_byte` becomes the low byte of its key ([`Mw::key_with`]). A bind that the region does
    /// not allow ends with `MwBindErr`, and the queue pair with it.
    pub fn bind_mw(wr_id: u64, mw: &Mw, key_byte: u8, to: &MwBind) -> Self {
        Self::new(wr_id, SendOp::BindMw(mw.bind(mw.key_with(key_byte), Some(to))))
    }

    /// Makes a key of our own invalid: of a region for fast registration, or of a memory window of type 2.
    pub fn local_inv(wr_id: u64, key: RKey) -> Self {
        Self::new(wr_id, SendOp::LocalInv(key))
    }

    /// Makes a region valid, all of it at its own address, with these rights. `key_byte` becomes the low byte of its key;
    /// changing it from one registration to the next keeps old keys from working.
    pub fn reg_mr(wr_id: u64, mr: &FastMr, key_byte: u8, access: Access) -> Self {
        let key = RKey::new(mr.key().value() & !0xFF | u32::from(key_byte));
        let (addr, len) = (mr.addr(), mr.buffer().len() as u64);
        Self::new(
            wr_id,
            SendOp::RegMr(Arc::new(FastReg { mr: Arc::clone(mr.region()), key, addr, len, access })),
        )
    }

    /// Adds a piece of local memory.
    pub fn sge(mut self, sge: Sge) -> Self {
        match &mut self.data {
            Data::Sges(sges) => sges.push(sge),
            Data::Inline(_) => self.data = Data::Sges(vec![sge]),
        }
        self
    }

    /// Carries the data in the request itself, instead of pieces of memory: the bytes may change right after the post.
    pub fn inline(mut self, bytes: &[u8]) -> Self {
        self.data = Data::Inline(bytes.to_vec());
        self
    }

    /// Gives no completion when all goes well.
    pub fn unsignaled(mut self) -> Self {
        self.flags.remove(SendFlags::SIGNALED);
        self
    }

    /// Waits until all earlier READs, atomics, FLUSHes and ATOMIC WRITEs are done.
    pub fn fence(mut self) -> Self {
        self.flags.insert(SendFlags::FENCE);
        self
    }

    /// Marks the message for a peer that waits for marked ones only.
    pub fn solicited(mut self) -> Self {
        self.flags.insert(SendFlags::SOLICITED);
        self
    }

    /// XRC initiator: names the SRQ of the peer that the request is for. Every request of an initiator that goes on the wire has to.
    pub fn to_srq(mut self, srqn: Srqn) -> Self {
        self.srqn = Some(srqn);
        self
    }

    pub(super) fn srqn(&self) -> Option<Srqn> {
        self.srqn
    }

    /// As the engine takes it; `None` when it has more pieces or inline bytes than any request can.
    pub(super) fn build(self) -> Option<engine::SendWr> {
        let data = match self.data {
            Data::Sges(sges) => WrData::Sges(sges.as_slice().try_into().ok()?),
            Data::Inline(bytes) => WrData::Inline(bytes.as_slice().try_into().ok()?),
        };
        Some(engine::SendWr { wr_id: self.wr_id, op: self.op, data, flags: self.flags })
    }

    /// Pieces or inline bytes, for an error about them.
    pub(super) fn pieces(&self) -> Option<usize> {
        match &self.data {
            Data::Sges(sges) => Some(sges.len()),
            Data::Inline(_) => None,
        }
    }
}

/// A receive: where the next message goes.
#[derive(Clone, Debug, Default)]
pub struct RecvWr {
    wr_id: u64,
    sges: Vec<Sge>,
}

impl RecvWr {
    /// A receive without memory: for messages without bytes, and for the immediate of a WRITE.
    pub fn new(wr_id: u64) -> Self {
        RecvWr { wr_id, sges: Vec::new() }
    }

    /// Adds a piece of memory.
    pub fn sge(mut self, sge: Sge) -> Self {
        self.sges.push(sge);
        self
    }

    pub(super) fn build(self) -> Result<engine::RecvWr, usize> {
        let sges = self.sges.as_slice().try_into().map_err(|_| self.sges.len())?;
        Ok(engine::RecvWr { wr_id: self.wr_id, sges })
    }
}

/// The most pieces that any request can have.
pub(super) const MAX_SGE: usize = limits::MAX_SGE;
