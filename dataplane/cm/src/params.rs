//! What the application says when it asks for a connection, or accepts one.

use crate::Timing;
use wire::mad::{PrimaryPath, Req, ServiceId, Transport};
use wire::{Gid, Mtu, PKey, Psn, QKey, Qpn};

/// What an end of ours says that it needs to acknowledge: 134 ms, as Linux' rxe does.
const ACK_DELAY: u8 = 15;

/// rocev2 facts, CM 10: the local ACK timeout for a way that alone needs `way` (packet life time and 1) to an end that takes
/// `delay` to acknowledge. Both are 5-bit codes, powers of two: the sum of two that are close is one more than the larger.
pub fn ack_timeout(way: u8, delay: u8) -> u8 {
    let sum = match way {
        0 => return 0,
        _ if way >= delay => way + u8::from(delay + 1 >= way),
        _ => delay + u8::from(way + 1 >= delay),
    };
    sum.min(31)
}

/// The longest ACK timeout, and the longest time to acknowledge, that a peer's word is taken for: 4.3 s. No Linux says more unless
/// it is told to, and an end that dies is found after seven retries of it, half a minute, where the peer could ask for hours.
pub const PEERS_LONGEST: u8 = 20;

/// The ACK timeout that a peer asks of us, but not longer than that, and not without end.
pub(crate) fn asked_ack_timeout(code: u8) -> u8 {
    if code == 0 { PEERS_LONGEST } else { code.min(PEERS_LONGEST) }
}

/// Where messages of a connection go, and whence they come. Of two messages of a connection, GIDs and scope are the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Path {
    /// Ours.
    pub local: Gid,
    /// The peer's.
    pub remote: Gid,
    /// Which of the port's interfaces: the caller's number, handed back as it came. Link-local GIDs can be on several.
    pub scope: u32,
    /// Traffic class.
    pub traffic_class: u8,
    /// Flow label, 20 bits.
    pub flow_label: u32,
    /// Hop limit.
    pub hop_limit: u8,
    /// Service level, 4 bits.
    pub sl: u8,
}

impl Path {
    /// Both lead to the same peer, from the same address.
    pub fn same_ends(&self, other: &Path) -> bool {
        (self.local, self.remote, self.scope) == (other.local, other.remote, other.scope)
    }

    /// What a REQ says of this path.
    pub(crate) fn primary(&self, ack_timeout: u8) -> PrimaryPath {
        // rocev2 facts, CM 4: LIDs on RoCE. The flag goes with them.
        let local_only = self.hop_limit <= 1;
        let lid = if local_only { 0 } else { 0xFFFF };
        PrimaryPath {
            local_lid: lid,
            remote_lid: lid,
            local_gid: self.local,
            remote_gid: self.remote,
            flow_label: self.flow_label,
            rate: 0,
            traffic_class: self.traffic_class,
            hop_limit: self.hop_limit,
            sl: self.sl,
            subnet_local: local_only,
            ack_timeout,
        }
    }
}

/// A request for a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReqParams {
    /// To whom.
    pub path: Path,
    /// For what.
    pub service_id: ServiceId,
    /// RC or UC.
    pub transport: Transport,
    /// Our QP.
    pub qpn: Qpn,
    /// The PSN that our receive queue will expect first.
    pub rq_psn: Psn,
    /// READs and atomics that our QP will accept at a time.
    pub responder_resources: u8,
    /// READs and atomics that our QP wants to have outstanding.
    pub initiator_depth: u8,
    /// End-to-end credits are counted.
    pub flow_control: bool,
    /// Retries of both QPs, 3 bits.
    pub retry_count: u8,
    /// RNR retries of the peer's QP, 3 bits.
    pub rnr_retry_count: u8,
    /// Our QP has a shared receive queue.
    pub srq: bool,
    /// Path MTU.
    pub mtu: Mtu,
    /// Local ACK timeout, a 5-bit code, as the way alone needs it: packet life time and 1. Each end's grows with what the other
    /// needs to acknowledge: see [`ack_timeout`]. 0 waits for ever.
    pub ack_timeout: u8,
    /// What we need to acknowledge, a 5-bit code.
    pub ack_delay: u8,
    /// Up to 92 bytes; for rdma_cm, an addressing header and up to 56 bytes.
    pub private_data: Vec<u8>,
    /// How often the REQ is sent, and what else the connection has to say later; the configuration's when absent.
    pub timing: Option<Timing>,
}

impl ReqParams {
    /// What most of them are: RC, credits counted, seven retries of either kind, ACK timeout code 17.
    pub fn new(path: Path, service_id: ServiceId, qpn: Qpn, rq_psn: Psn, mtu: Mtu) -> ReqParams {
        ReqParams {
            path,
            service_id,
            transport: Transport::Rc,
            qpn,
            rq_psn,
            responder_resources: 0,
            initiator_depth: 0,
            flow_control: true,
            retry_count: 7,
            rnr_retry_count: 7,
            srq: false,
            mtu,
            ack_timeout: 17,
            ack_delay: ACK_DELAY,
            private_data: Vec::new(),
            timing: None,
        }
    }

    /// What never differs between requests.
    pub(crate) fn message(&self) -> Req {
        Req {
            service_id: self.service_id,
            local_qkey: QKey::default(),
            local_qpn: self.qpn,
            responder_resources: self.responder_resources,
            initiator_depth: self.initiator_depth,
            transport: self.transport,
            flow_control: self.flow_control,
            starting_psn: self.rq_psn,
            retry_count: self.retry_count,
            pkey: PKey::DEFAULT,
            path_mtu: self.mtu.code(),
            rnr_retry_count: self.rnr_retry_count,
            srq: self.srq,
            primary: self.path.primary(ack_timeout(self.ack_timeout, self.ack_delay)),
            ..Req::default()
        }
    }
}

/// How a request is accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RepParams {
    /// Our QP.
    pub qpn: Qpn,
    /// The PSN that our receive queue will expect first.
    pub rq_psn: Psn,
    /// READs and atomics that our QP can accept at a time; no more are told than the peer wants.
    pub responder_resources: u8,
    /// READs and atomics that our QP would have outstanding; no more are told than the peer accepts.
    pub initiator_depth: u8,
    /// End-to-end credits are counted.
    pub flow_control: bool,
    /// RNR retries of the peer's QP, 3 bits.
    pub rnr_retry_count: u8,
    /// Our QP has a shared receive queue.
    pub srq: bool,
    /// What we need to acknowledge, a 5-bit code.
    pub target_ack_delay: u8,
    /// Up to 196 bytes.
    pub private_data: Vec<u8>,
}

impl RepParams {
    /// What most of them are: credits counted, seven RNR retries, and as deep as the peer likes.
    pub fn new(qpn: Qpn, rq_psn: Psn) -> RepParams {
        RepParams {
            qpn,
            rq_psn,
            responder_resources: u8::MAX,
            initiator_depth: u8::MAX,
            flow_control: true,
            rnr_retry_count: 7,
            srq: false,
            target_ack_delay: ACK_DELAY,
            private_data: Vec::new(),
        }
    }
}
