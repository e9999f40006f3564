//! What a device can do and what its port is.

use crate::net::GidEntry;
use engine::limits;
use wire::{Mac, Mtu};

/// Limits of a device, after `ibv_query_device`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceAttr {
    /// Most queue pairs.
    pub max_qp: usize,
    /// Deepest send or receive queue of a queue pair, in requests.
    pub max_qp_wr: u32,
    /// Most scatter/gather entries of a request.
    pub max_sge: usize,
    /// Most bytes that a send request can carry inline.
    pub max_inline_data: usize,
    /// Deepest completion queue, in completions.
    pub max_cqe: u32,
    /// Most shared receive queues.
    pub max_srq: usize,
    /// Deepest shared receive queue, in receives.
    pub max_srq_wr: u32,
    /// Most scatter/gather entries of a receive in a shared receive queue.
    pub max_srq_sge: usize,
    /// Most memory regions.
    pub max_mr: usize,
    /// Most memory windows, of type 1 and 2B.
    pub max_mw: usize,
    /// Longest message, in bytes.
    pub max_msg_sz: u32,
    /// Most READs and atomics that a queue pair may have outstanding, in each direction.
    pub max_qp_rd_atom: u8,
    /// Most multicast groups with members here.
    pub max_mcast_grp: usize,
    /// Most queue pairs attached to one group.
    pub max_mcast_qp_attach: usize,
    /// Entries of the P_Key table.
    pub max_pkeys: u16,
}

impl DeviceAttr {
    pub(super) fn new(max_qp: usize, max_mr: usize) -> Self {
        DeviceAttr {
            max_qp,
            max_qp_wr: limits::MAX_QP_WR,
            max_sge: limits::MAX_SGE,
            max_inline_data: limits::MAX_INLINE,
            max_cqe: limits::MAX_CQE,
            max_srq: limits::MAX_SRQ,
            max_srq_wr: limits::MAX_QP_WR,
            max_srq_sge: limits::MAX_SGE,
            max_mr,
            max_mw: max_mr,
            max_msg_sz: limits::MAX_MESSAGE,
            max_qp_rd_atom: limits::MAX_RD_ATOMIC,
            max_mcast_grp: crate::endpoint::MAX_GROUPS,
            max_mcast_qp_attach: crate::endpoint::MAX_MEMBERS,
            max_pkeys: 1,
        }
    }
}

/// State of a port, after `ibv_query_port`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PortAttr {
    /// Packets can pass.
    pub up: bool,
    /// Speed in Mb/s, if the driver names one. Virtual devices name a fantasy.
    pub speed_mbps: Option<u32>,
    /// Largest IP packet, in bytes: what the driver really took.
    pub ip_mtu: u16,
    /// Largest path MTU that fits.
    pub path_mtu: Mtu,
    /// Ethernet address.
    pub mac: Mac,
    /// VLAN.
    pub vlan: Option<u16>,
    /// GIDs with their index.
    pub gids: Vec<(usize, GidEntry)>,
}
