//! What two sides tell each other when they connect, after `rdma_conn_param` and `rdma_ud_param`.

use crate::verbs::EVERYTHING;
use engine::Access;
use std::time::Duration;
use wire::{Addressing, Mtu, QKey, Qpn};

/// What a side says of itself in connect and accept, after `rdma_conn_param`; in events, what the other side said, with depths
/// crossed over: `responder_resources` are what this side should serve.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConnParam {
    /// The application's own: up to [`MAX_REQ_DATA`](super::MAX_REQ_DATA) bytes in connect,
    /// [`MAX_REP_DATA`](super::MAX_REP_DATA) in accept; for datagrams [`MAX_SIDR_REQ_DATA`](super::MAX_SIDR_REQ_DATA) and
    /// [`MAX_SIDR_REP_DATA`](super::MAX_SIDR_REP_DATA).
    pub private_data: Vec<u8>,
    /// READs and atomics that this side serves at a time. Accept lowers it to what the peer asks for.
    pub responder_resources: u8,
    /// READs and atomics that this side has outstanding at a time. Accept lowers it to what the peer serves.
    pub initiator_depth: u8,
    /// Told to the peer; nothing here counts credits.
    pub flow_control: bool,
    /// Retries after timeouts, 0..=7: connect says it for both sides.
    pub retry_count: u8,
    /// Retries after "receiver not ready", 0..=7, 7 without end: what the *peer* does when receives are missing here.
    pub rnr_retry_count: u8,
    /// The queue pair has a shared receive queue. Of an attached queue pair it is known.
    pub srq: bool,
    /// The queue pair, when none is attached.
    pub qp_num: Option<Qpn>,
}

impl Default for ConnParam {
    /// Sixteen READs in each direction and all retries.
    fn default() -> Self {
        ConnParam {
            private_data: Vec::new(),
            responder_resources: 16,
            initiator_depth: 16,
            flow_control: false,
            retry_count: 7,
            rnr_retry_count: 7,
            srq: false,
            qp_num: None,
        }
    }
}

impl ConnParam {
    /// These parameters with private data.
    pub fn with_private_data(private_data: &[u8]) -> Self {
        ConnParam { private_data: private_data.to_vec(), ..ConnParam::default() }
    }
}

/// How to send datagrams to a peer, after `rdma_ud_param`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UdParam {
    /// The peer's queue pair; that of groups for a group.
    pub qpn: Qpn,
    /// Its Q_Key.
    pub qkey: QKey,
    /// Headers to send with: make an address handle of them by [`Ah::new`](crate::Ah::new).
    pub addressing: Addressing,
}

/// What an identifier does by itself, and when, after `rdma_set_option`. The defaults report a dead peer within a second;
/// Linux takes over a minute.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CmOptions {
    /// How long to wait for the answer to a message before it is sent again.
    pub retransmit: Duration,
    /// How often a message is sent again. After these the peer is reported as unreachable, or the connection as disconnected. A
    /// reply is sent again sooner and less often where the request says so.
    pub retries: u8,
    /// DSCP and ECN byte; by default the port's.
    pub traffic_class: Option<u8>,
    /// Local ACK timeout of the queue pairs as the way alone needs it, 4.096 µs × 2^n, 0..=31; 0 waits for ever, at this
    /// end: nobody waits longer than 4.3 s at its peer's asking. What the other end
    /// needs to acknowledge is added to it (rocev2 facts, CM 10): of the default 15 it makes 16, 268 ms, where that is 134 ms as
    /// ours and that of Linux' rxe are.
    pub ack_timeout: u8,
    /// RNR timer code, 0..=31: how long the peer waits when no receive is posted here. 12 is 0.64 ms; Linux's rdma_cm uses 0,
    /// which stands for 655 ms.
    pub min_rnr_timer: u8,
    /// Largest path MTU to ask for; by default the port's.
    pub path_mtu: Option<Mtu>,
    /// What the peer may do. READ, atomics and FLUSH are taken out where `responder_resources` is 0.
    pub access: Access,
    /// Q_Key of datagram queue pairs.
    pub qkey: QKey,
    /// An address and port may be bound while another identifier, which does not listen, has them.
    pub reuse_addr: bool,
}

/// rocev2 facts, CM 9: the Q_Key of RDMA_PS_UDP.
pub const DEFAULT_UD_QKEY: QKey = QKey::new(0x0123_4567);

impl CmOptions {
    pub(super) fn timing(&self) -> ::cm::Timing {
        let interval_ns = self.retransmit.as_nanos().min(u64::MAX.into()) as u64;
        ::cm::Timing { interval_ns, tries: u32::from(self.retries) + 1 }
    }
}

impl Default for CmOptions {
    fn default() -> Self {
        CmOptions {
            retransmit: Duration::from_millis(200),
            retries: 4,
            traffic_class: None,
            ack_timeout: 15,
            min_rnr_timer: 12,
            path_mtu: None,
            access: EVERYTHING,
            qkey: DEFAULT_UD_QKEY,
            reuse_addr: false,
        }
    }
}
