//! What a rule asks of the device under test besides packets: objects, work, completions, memory. A *device agent* carries
//! these calls out; over TCP each call and each reply is one line of JSON.

use serde::{Deserialize, Serialize};
use std::net::IpAddr;

/// A call to the device agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "call", rename_all = "snake_case", deny_unknown_fields)]
pub enum DeviceCall {
    /// Who are you? The reply is [`Reply::Device`].
    Hello,
    /// Destroy everything that earlier calls made.
    Reset,
    /// Allocate and register memory, zeroed. The reply is [`Reply::Region`].
    Region(Region),
    /// Create a queue pair in RESET, with a CQ of its own for each side. The reply is [`Reply::Qp`].
    Qp {
        /// Name in later calls.
        name: String,
        /// `rc`, `uc`, `ud`, `xrc` (a target) or `xrc_initiator`.
        service: String,
        /// Protection domain, by number.
        pd: u8,
        /// Name of the SRQ that it receives from.
        srq: Option<String>,
        /// XRC domain, by number: of targets.
        domain: u8,
    },
    /// Create a shared receive queue; an XRC SRQ, with a CQ of its own, if there is a domain. The reply is [`Reply::Srq`].
    Srq {
        /// Name in later calls.
        name: String,
        /// Receives that it holds.
        depth: u32,
        /// Protection domain, by number.
        pd: u8,
        /// XRC domain, by number.
        domain: Option<u8>,
    },
    /// Post a receive to a shared receive queue.
    ReceiveShared {
        /// The queue.
        srq: String,
        /// Work request id.
        id: u64,
        /// Where it goes.
        pieces: Vec<Piece>,
    },
    /// Arm the limit of a shared receive queue.
    Arm {
        /// The queue.
        srq: String,
        /// Receives.
        limit: u32,
    },
    /// Tell the armed limit of a shared receive queue. The reply is [`Reply::Limit`].
    Limit {
        /// The queue.
        srq: String,
    },
    /// Allocate a memory window, which is not bound. The reply is [`Reply::Window`].
    Window {
        /// Name in later calls.
        name: String,
        /// 1, or 2 for 2B.
        kind: u8,
        /// Protection domain, by number.
        pd: u8,
    },
    /// Move a queue pair to a state, through those before it.
    Modify {
        /// Its name.
        qp: String,
        /// The state: `reset`, `init`, `rtr`, `rts`, `sqd` or `error`.
        state: String,
        /// The attributes to take on the way up from RESET.
        attributes: Box<QpAttributes>,
    },
    /// Post a receive.
    Receive {
        /// Queue pair.
        qp: String,
        /// Work request id.
        id: u64,
        /// Where it goes.
        pieces: Vec<Piece>,
    },
    /// Post a send. The reply to a `bind` is [`Reply::Window`], to a `fast_register` [`Reply::Region`]: with the new key.
    Post {
        /// Queue pair.
        qp: String,
        /// The work request.
        work: Box<Work>,
    },
    /// Take completions of one side. The reply is [`Reply::Completions`], perhaps empty.
    Poll {
        /// Queue pair; or an XRC SRQ, whose side is that of receives.
        qp: String,
        /// Which side.
        side: Side,
    },
    /// Read memory. The reply is [`Reply::Bytes`].
    Read {
        /// Region.
        region: String,
        /// Offset of the first byte.
        offset: u64,
        /// How many.
        len: u64,
    },
    /// Write memory.
    Write {
        /// Region.
        region: String,
        /// Offset of the first byte.
        offset: u64,
        /// The bytes, two hexadecimal digits each.
        bytes: String,
    },
    /// Deregister a region.
    Deregister {
        /// Region.
        region: String,
    },
    /// Tell the state of a queue pair. The reply is [`Reply::State`].
    State {
        /// Its name.
        qp: String,
    },
}

/// Memory to register.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Region {
    /// Name in later calls.
    pub name: String,
    /// Bytes.
    pub len: u64,
    /// Rights besides local read, by name: `local_write`, `remote_write`, `remote_read`, `remote_atomic`, `flush_global`,
    /// `flush_persistent`, `mw_bind`.
    pub access: Vec<String>,
    /// Protection domain, by number.
    pub pd: u8,
    /// For fast registration: no key works until a work request makes one.
    pub fast: bool,
}

/// Attributes of a connection, as `ibv_modify_qp` takes them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct QpAttributes {
    /// The peer's address; its family chooses the device's GID.
    pub peer_ip: IpAddr,
    /// The peer's queue pair.
    pub peer_qpn: u32,
    /// First PSN of the peer.
    pub peer_psn: u32,
    /// First PSN of the device.
    pub device_psn: u32,
    /// Path MTU in bytes.
    pub mtu: u32,
    /// Remote rights, by name as for regions.
    pub access: Vec<String>,
    /// READs and atomics that the device serves at a time.
    pub slots: u8,
    /// READs and atomics that the device may have outstanding.
    pub reads: u8,
    /// RNR timer code.
    pub rnr_timer: u8,
    /// ACK timeout exponent, 0 for none.
    pub timeout: u8,
    /// Retries.
    pub retry: u8,
    /// Retries after RNR NAKs.
    pub rnr_retry: u8,
    /// UD: the Q_Key.
    pub qkey: u32,
}

/// A piece of a region for a work request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Piece {
    /// Region.
    pub region: String,
    /// Offset of its first byte.
    pub offset: u64,
    /// Bytes.
    pub len: u32,
}

/// A send request.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Work {
    /// `send`, `send_imm`, `send_inv`, `write`, `write_imm`, `read`, `cmp_swap`, `fetch_add`, `atomic_write`, `flush`, `fast_register`,
    /// `local_invalidate`, `bind`.
    pub op: String,
    /// Work request id.
    pub id: u64,
    /// Local data.
    pub pieces: Vec<Piece>,
    /// Remote address.
    pub at: u64,
    /// Remote key, or the key to invalidate.
    pub key: u32,
    /// Immediate data.
    pub imm: u32,
    /// Length of a FLUSH.
    pub len: u32,
    /// Placement of a FLUSH: 1 global visibility, 2 persistence.
    pub plt: u8,
    /// Level of a FLUSH: 0 a range, 1 all that the key grants.
    pub sel: u8,
    /// XRC: the SRQ of the peer.
    pub srqn: Option<u32>,
    /// Operand of an atomic: swap, or add.
    pub swap: u64,
    /// Operand of compare-and-swap.
    pub compare: u64,
    /// For one's own regions: which.
    pub region: Option<String>,
    /// For one's own windows: which.
    pub window: Option<String>,
    /// Rights that a registration or a bind grants, by name as for regions.
    pub access: Vec<String>,
    /// Wait for earlier READs and atomics.
    pub fence: bool,
    /// Solicited event.
    pub solicited: bool,
    /// No completion on success.
    pub unsignaled: bool,
    /// UD: the peer's queue pair, and its Q_Key.
    pub remote_qpn: u32,
    /// UD: the peer's Q_Key.
    pub qkey: u32,
    /// UD: the peer's address.
    pub remote_ip: Option<IpAddr>,
}

/// Which completion queue of a queue pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Side {
    /// Sends.
    Send,
    /// Receives.
    Recv,
}

/// What an agent says of its device.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DeviceInfo {
    /// Its name.
    pub name: String,
    /// Addresses that it has GIDs for.
    pub addresses: Vec<IpAddr>,
    /// Largest path MTU in bytes.
    pub mtu: u32,
    /// What it can do, by the names that rules need: `rc`, `uc`, `ud`, `fast`, `send_inv`, `flush`, …
    pub offers: Vec<String>,
}

/// One completion.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Completion {
    /// Work request id.
    pub id: u64,
    /// Status in small letters after verbs: `success`, `loc_len_err`, …
    pub status: String,
    /// Bytes.
    pub len: u32,
    /// Immediate data, as a big-endian number.
    pub imm: Option<u32>,
    /// The key that was invalidated.
    pub invalidated: Option<u32>,
    /// UD: the sender's queue pair.
    pub src_qp: u32,
}

/// An agent's answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reply {
    /// It is done.
    Done,
    /// Answer to [`DeviceCall::Hello`].
    Device(DeviceInfo),
    /// A region that was registered.
    Region {
        /// Address of its first byte.
        addr: u64,
        /// Its key for peers.
        rkey: u32,
    },
    /// A queue pair that was created.
    Qp {
        /// Its number.
        qpn: u32,
    },
    /// A shared receive queue that was created.
    Srq {
        /// The number of an XRC SRQ, 0 of another.
        srqn: u32,
    },
    /// A window as it is after the call.
    Window {
        /// Address that its first byte has for peers, 0 while it is not bound.
        addr: u64,
        /// Its key for peers.
        rkey: u32,
    },
    /// A limit.
    Limit(u32),
    /// Completions, oldest first.
    Completions(Vec<Completion>),
    /// Bytes, two hexadecimal digits each.
    Bytes(String),
    /// A state's name.
    State(String),
}

/// Why a call was not carried out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CallError {
    /// The device does not have such a thing: the rule is skipped.
    Unsupported(String),
    /// The device refused.
    Refused(String),
}

/// Bytes as hexadecimal digits.
pub fn to_hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Bytes from hexadecimal digits; `None` if they are none.
pub fn from_hex(text: &str) -> Option<Vec<u8>> {
    if !text.is_ascii() || !text.len().is_multiple_of(2) {
        return None;
    }
    (0..text.len()).step_by(2).map(|at| u8::from_str_radix(&text[at..at + 2], 16).ok()).collect()
}
