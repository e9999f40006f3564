//! One connection.

use crate::{ConnId, ListenerId, Path, State, Timing};
use wire::Qpn;
use wire::mad::{CmMad, CommId, Rep, Req};

/// Everything that is known of a connection. How it changes is in the files of its roles.
#[derive(Debug)]
pub(crate) struct Conn {
    pub id: ConnId,
    pub state: State,
    pub path: Path,
    pub local_id: CommId,
    /// 0 until the peer has told its own.
    pub remote_id: CommId,
    /// Of the peer; as good as its ID.
    pub remote_ca_guid: u64,
    pub remote_qpn: Qpn,
    /// Ours, once the application has named one.
    pub local_qpn: Option<Qpn>,
    /// Of the REQ: every answer to it repeats it.
    pub transaction_id: u64,
    /// Ours or the peer's.
    pub req: Option<Box<Req>>,
    /// The peer's: the active side keeps it until its QP is connected.
    pub rep: Option<Box<Rep>>,
    /// Of our QP. Until the REP is here, the active side knows what the way needs, not the peer.
    pub ack_timeout: u8,
    /// What is sent again when the deadline passes, or when a duplicate shows that it was lost. In timewait, what the peer is
    /// told when it goes on as if nothing had happened.
    pub repeat: Option<Box<CmMad>>,
    pub tries_left: u32,
    /// Between two sendings of the message under way.
    pub interval_ns: u64,
    /// How messages that begin from now on are repeated.
    pub timing: Timing,
    pub deadline: Option<u64>,
    /// When the application has thought long enough.
    pub expires: u64,
    /// Whose backlog it fills, until the application answers.
    pub listener: Option<ListenerId>,
    /// Nobody is told any more but of the end of timewait: it was destroyed, or is reported already.
    pub silent: bool,
}
