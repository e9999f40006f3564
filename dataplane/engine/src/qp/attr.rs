//! Attributes of a QP and the mask that says which of them a modify means.

use super::QpState;
use crate::access::Access;
use wire::{Addressing, Mtu, Psn, QKey, Qpn};

bitflags::bitflags! {
    /// Which attributes a modify sets. Bit values are those of verbs (`IBV_QP_*`).
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
    pub struct QpAttrMask: u32 {
        /// `state`
        const STATE = 1;
        /// `cur_state`
        const CUR_STATE = 1 << 1;
        /// `notify_drained`
        const EN_SQD_ASYNC_NOTIFY = 1 << 2;
        /// `access`
        const ACCESS = 1 << 3;
        /// `pkey_index`
        const PKEY_INDEX = 1 << 4;
        /// `port`
        const PORT = 1 << 5;
        /// `qkey`
        const QKEY = 1 << 6;
        /// `path`
        const AV = 1 << 7;
        /// `path_mtu`
        const PATH_MTU = 1 << 8;
        /// `timeout`
        const TIMEOUT = 1 << 9;
        /// `retry_cnt`
        const RETRY_CNT = 1 << 10;
        /// `rnr_retry`
        const RNR_RETRY = 1 << 11;
        /// `rq_psn`
        const RQ_PSN = 1 << 12;
        /// `max_rd_atomic`
        const MAX_RD_ATOMIC = 1 << 13;
        /// Alternate path: always refused on RoCE.
        const ALT_PATH = 1 << 14;
        /// `min_rnr_timer`
        const MIN_RNR_TIMER = 1 << 15;
        /// `sq_psn`
        const SQ_PSN = 1 << 16;
        /// `max_dest_rd_atomic`
        const MAX_DEST_RD_ATOMIC = 1 << 17;
        /// Path migration state: accepted, without effect.
        const PATH_MIG_STATE = 1 << 18;
        /// `dest_qpn`
        const DEST_QPN = 1 << 20;
    }
}

/// The flags by their bare names, for tables.
pub(super) mod flag {
    macro_rules! bare {
        ($($name:ident)*) => { $(pub const $name: super::QpAttrMask = super::QpAttrMask::$name;)* };
    }
    bare! {
        STATE CUR_STATE EN_SQD_ASYNC_NOTIFY ACCESS PKEY_INDEX PORT QKEY AV PATH_MTU TIMEOUT RETRY_CNT RNR_RETRY RQ_PSN
        MAX_RD_ATOMIC MIN_RNR_TIMER SQ_PSN MAX_DEST_RD_ATOMIC PATH_MIG_STATE DEST_QPN
    }
}

/// The names of the flags, as verbs has them; bits without a name as a number.
impl std::fmt::Display for QpAttrMask {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        bitflags::parser::to_writer(self, f)
    }
}

/// Attributes of a QP: what a modify may set and a query tells. Those that packets ask for come last, where a QP goes on with what
/// else they need.
#[derive(Clone, Debug)]
#[repr(C)]
pub struct QpAttr {
    /// RC, UC: the address vector, as the headers to send with. A UDP source port of 0 lets the engine choose the one
    /// that Linux would ([`wire::udp_sport`]).
    pub path: Option<Addressing>,
    /// First PSN that the peer sends.
    pub rq_psn: Psn,
    /// First PSN that we send.
    pub sq_psn: Psn,
    /// Index in the P_Key table; only 0 (0xFFFF) exists.
    pub pkey_index: u16,
    /// Port number, from 1.
    pub port: u8,
    /// The state to go to.
    pub state: QpState,
    /// The state that the caller believes the QP is in.
    pub cur_state: QpState,
    /// Raise an event when a move to SQD has drained.
    pub notify_drained: bool,
    /// Remote rights of the QP.
    pub access: Access,
    /// UD: the QP's Q_Key.
    pub qkey: QKey,
    /// Path MTU.
    pub path_mtu: Mtu,
    /// The peer's QP.
    pub dest_qpn: Qpn,
    /// READs and atomics that we may have outstanding at the peer.
    pub max_rd_atomic: u8,
    /// READs and atomics that the peer may have outstanding here.
    pub max_dest_rd_atomic: u8,
    /// RNR timer code (0..31) that we ask the peer to wait for.
    pub min_rnr_timer: u8,
    /// Local ACK timeout: 4.096 µs × 2^n, 0 for none.
    pub timeout: u8,
    /// Retries after timeouts and sequence errors, 0..7.
    pub retry_cnt: u8,
    /// Retries after RNR NAKs, 0..7; 7 is without end.
    pub rnr_retry: u8,
}

impl Default for QpAttr {
    fn default() -> Self {
        QpAttr {
            state: QpState::Reset,
            cur_state: QpState::Reset,
            notify_drained: false,
            access: Access::empty(),
            pkey_index: 0,
            port: 1,
            qkey: QKey::new(0),
            path: None,
            path_mtu: Mtu::Mtu1024,
            dest_qpn: Qpn::new(0),
            rq_psn: Psn::new(0),
            sq_psn: Psn::new(0),
            max_rd_atomic: 0,
            max_dest_rd_atomic: 0,
            min_rnr_timer: 12,
            timeout: 14,
            retry_cnt: 7,
            rnr_retry: 7,
        }
    }
}
