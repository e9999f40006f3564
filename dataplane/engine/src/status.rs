//! Completions: their status, opcode and fields, with the verbs' numbers.

use wire::{Qpn, RKey, Srqn};

/// Why a work request ended. Values are those of verbs (`IBV_WC_*`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum WcStatus {
    /// Done as asked.
    Success = 0,
    /// A local length is wrong: message too long for the receive, atomic buffer not 8 bytes.
    LocLenErr = 1,
    /// The work request is not valid on this QP.
    LocQpOpErr = 2,
    /// An L_Key, its PD, range or right does not fit.
    LocProtErr = 4,
    /// The QP went to ERROR before this request was done.
    WrFlushErr = 5,
    /// A memory window could not be bound.
    MwBindErr = 6,
    /// The peer's response made no sense.
    BadRespErr = 7,
    /// Local access error on a WRITE with Immediate.
    LocAccessErr = 8,
    /// The peer answered NAK invalid request (or a receive saw one).
    RemInvReqErr = 9,
    /// The peer answered NAK remote access error.
    RemAccessErr = 10,
    /// The peer answered NAK remote operational error.
    RemOpErr = 11,
    /// The peer never answered within the retries.
    RetryExcErr = 12,
    /// The peer had no receive posted within the RNR retries.
    RnrRetryExcErr = 13,
    /// The peer aborted.
    RemAbortErr = 16,
    /// The QP or device failed inside.
    FatalErr = 19,
    /// Anything else.
    GeneralErr = 21,
}

/// What kind of work a completion is for. Values are those of verbs (`IBV_WC_*` opcodes).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum WcOpcode {
    /// SEND, with or without immediate or invalidate.
    Send = 0,
    /// RDMA WRITE, with or without immediate.
    RdmaWrite = 1,
    /// RDMA READ.
    RdmaRead = 2,
    /// Compare and swap.
    CompSwap = 3,
    /// Fetch and add.
    FetchAdd = 4,
    /// Bind of a memory window.
    BindMw = 5,
    /// Local invalidate.
    LocalInv = 6,
    /// FLUSH [?: the facts leave this number free and do not name it].
    Flush = 8,
    /// ATOMIC WRITE.
    AtomicWrite = 9,
    /// Fast registration: verbs have no number for it in user space, so it is one that they do not use.
    RegMr = 0x7F,
    /// A received SEND.
    Recv = 0x80,
    /// A received WRITE with Immediate.
    RecvRdmaWithImm = 0x81,
}

bitflags::bitflags! {
    /// What else a completion tells. Bit values are those of verbs (`IBV_WC_*`) [?: the facts name no numbers].
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
    pub struct WcFlags: u32 {
        /// The receive buffer begins with the GRH area.
        const GRH = 1;
        /// Immediate data came.
        const WITH_IMM = 2;
        /// A key was invalidated.
        const WITH_INV = 8;
    }
}

/// One completion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cqe {
    /// The number that the poster gave the work request.
    pub wr_id: u64,
    /// How it ended. On any error only `wr_id`, `status`, `qpn` and `vendor_err` mean something.
    pub status: WcStatus,
    /// The kind of work.
    pub opcode: WcOpcode,
    /// Bytes received or read. For WRITE with Immediate the RETH length; for UD including the 40-byte GRH area.
    pub byte_len: u32,
    /// The local QP.
    pub qpn: Qpn,
    /// Immediate data of the peer, as it was on the wire (network order).
    pub imm: Option<[u8; 4]>,
    /// The key that a SEND with Invalidate invalidated here.
    pub invalidated: Option<RKey>,
    /// XRC: the SRQ whose receive this is; `qpn` is the target that it came by.
    pub srqn: Option<Srqn>,
    /// UD: the sender's QP.
    pub src_qp: Qpn,
    /// UD: the receive buffer begins with the 40-byte GRH area.
    pub has_grh: bool,
    /// UD: the VLAN that the packet came in.
    pub vlan: Option<u16>,
    /// The sender asked for a solicited event.
    pub solicited: bool,
    /// Our own finer reason for an error (a [`Fault`](crate::fault::Fault) number), 0 when there is none.
    pub vendor_err: u32,
}

impl Cqe {
    /// A completion with only what every completion has.
    pub fn new(wr_id: u64, status: WcStatus, opcode: WcOpcode, qpn: Qpn) -> Self {
        Cqe {
            wr_id,
            status,
            opcode,
            byte_len: 0,
            qpn,
            imm: None,
            invalidated: None,
            srqn: None,
            src_qp: Qpn::new(0),
            has_grh: false,
            vlan: None,
            solicited: false,
            vendor_err: 0,
        }
    }

    /// Its flags, as verbs has them; none of a completion in error.
    pub fn flags(&self) -> WcFlags {
        let mut flags = WcFlags::empty();
        if self.is_success() {
            flags.set(WcFlags::GRH, self.has_grh);
            flags.set(WcFlags::WITH_IMM, self.imm.is_some());
            flags.set(WcFlags::WITH_INV, self.invalidated.is_some());
        }
        flags
    }

    /// True when the work was done as asked.
    pub fn is_success(&self) -> bool {
        self.status == WcStatus::Success
    }
}
