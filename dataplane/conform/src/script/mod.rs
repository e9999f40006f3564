//! Scripts: their types, and the way from text to them.

mod fields;
mod names;
mod parse;
mod steps;
mod value;
mod words;
mod work;

pub(crate) use fields::Field;
pub(crate) use names::BEFORE;
pub use parse::parse;
pub use steps::ABILITIES;
pub(crate) use value::{Cond, Data, Expr};

use crate::device::{QpAttributes, Region, Side};

/// A rule: what the device is set up with, and what happens then.
#[derive(Clone, Debug)]
pub struct Rule {
    /// Its name: small letters, digits and dashes; unique.
    pub id: String,
    /// What it asks for, in a sentence.
    pub title: String,
    /// The fact that it holds the device to.
    pub fact: String,
    /// Why the facts leave it open what a device does, if they do. Its branches are what devices are known to do.
    pub open: Option<String>,
    /// Name of the script and the line of the rule.
    pub place: (String, u32),
    /// What a device has to offer.
    pub needs: Vec<String>,
    pub(crate) steps: Vec<Step>,
}

/// Why a script is not one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScriptError {
    /// Name of the script.
    pub file: String,
    /// Line, from 1.
    pub line: u32,
    /// What is wrong, and what would be right.
    pub what: String,
}

impl std::fmt::Display for ScriptError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}: {}", self.file, self.line, self.what)
    }
}

impl std::error::Error for ScriptError {}

/// One line of a rule.
#[derive(Clone, Debug)]
pub(crate) struct Step {
    pub line: u32,
    pub kind: StepKind,
}

#[derive(Clone, Debug)]
pub(crate) enum StepKind {
    Region(Region, Option<Data>),
    Qp(Box<QpSetup>),
    Send(Box<SendSpec>),
    Expect(Box<ExpectSpec>),
    /// Nothing comes for so long.
    Silence(u64),
    /// Whatever comes for so long is let pass.
    Wait(u64),
    Srq(SrqSetup),
    Window {
        name: String,
        kind: u8,
        pd: u8,
    },
    Arm {
        srq: String,
        limit: u32,
    },
    Limit {
        srq: String,
        limit: u32,
    },
    Receive {
        queue: Queue,
        id: u64,
        pieces: Vec<PieceSpec>,
        refused: bool,
    },
    Post {
        qp: String,
        work: Box<WorkSpec>,
        refused: bool,
    },
    Complete(Box<CompleteSpec>),
    /// No completion waits on either side of a queue pair.
    NoCompletion {
        qp: String,
    },
    /// At the end of a rule: takes what completions are left.
    Drain {
        qp: String,
    },
    Memory {
        region: String,
        offset: u64,
        data: Data,
    },
    Fill {
        region: String,
        offset: u64,
        data: Data,
    },
    Deregister {
        region: String,
        refused: bool,
    },
    State {
        qp: String,
        states: Vec<String>,
    },
    Modify {
        qp: String,
        state: String,
    },
    Either(Vec<Branch>),
}

/// Where a receive is posted.
#[derive(Clone, Debug)]
pub(crate) enum Queue {
    Qp(String),
    Srq(String),
}

/// A shared receive queue of the device.
#[derive(Clone, Debug)]
pub(crate) struct SrqSetup {
    pub name: String,
    pub depth: u32,
    pub pd: u8,
    /// Of an XRC SRQ.
    pub domain: Option<u8>,
}

/// One of several things that a device may do.
#[derive(Clone, Debug)]
pub(crate) struct Branch {
    pub name: String,
    pub steps: Vec<Step>,
}

/// A queue pair of the device, and the peer's at its other end.
#[derive(Clone, Debug)]
pub(crate) struct QpSetup {
    pub name: String,
    pub service: wire::Service,
    /// XRC: the sending half.
    pub initiator: bool,
    pub pd: u8,
    pub srq: Option<String>,
    pub domain: u8,
    /// Words of its line that carry values: what the script does not leave to the defaults.
    pub given: Vec<String>,
    pub state: String,
    pub v6: bool,
    pub attributes: QpAttributes,
}

/// A packet of the peer.
#[derive(Clone, Debug)]
pub(crate) struct SendSpec {
    pub qp: String,
    pub opcode: OpcodeSpec,
    pub fields: Vec<(Field, Expr)>,
    pub payload: Data,
    pub times: u32,
    pub bends: Vec<Bend>,
}

/// A packet of the device.
#[derive(Clone, Debug)]
pub(crate) struct ExpectSpec {
    pub qp: String,
    pub opcode: OpcodeSpec,
    pub fields: Vec<(Field, Cond)>,
    pub payload: Option<Data>,
    pub size: Option<Cond>,
    pub times: u32,
    pub within_ns: Option<u64>,
    pub after_ns: u64,
    /// ACKs before this one may come before it, or be left out.
    pub coalesced: bool,
}

/// What kind of packet a line speaks of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OpcodeSpec {
    /// An operation of the queue pair's own service.
    Own(wire::Operation, wire::Position),
    /// An opcode byte, whatever it means.
    Byte(u8),
    /// Any packet.
    Any,
}

/// What is wrong with a packet on purpose.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Bend {
    /// Bytes put at an offset of a layer before checksums are made.
    Patch(Layer, usize, Vec<u8>),
    /// Bytes put there after they were.
    Spoil(Layer, usize, Vec<u8>),
    /// The iCRC is wrong.
    BadIcrc,
    /// The IPv4 header checksum is wrong.
    BadIpChecksum,
    /// A UDP checksum, right or wrong.
    UdpChecksum { right: bool },
    /// No extension headers.
    Bare,
    /// Bytes behind the iCRC, as Ethernet pads.
    Trail(Vec<u8>),
    /// So many bytes are missing at the end.
    Cut(usize),
    /// Four bytes of IPv4 options.
    IpOptions,
    /// From an address that is not the peer's.
    FromStranger,
    /// To an address that is not the device's, but to its MAC.
    ToStranger,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Layer {
    Ip,
    Udp,
    Bth,
    /// Whatever is behind the BTH.
    Ext,
}

/// A piece of a region.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PieceSpec {
    pub region: String,
    pub offset: u64,
    pub len: u32,
}

/// A send request, with its addresses still in words.
#[derive(Clone, Debug)]
pub(crate) struct WorkSpec {
    pub op: String,
    pub id: u64,
    pub pieces: Vec<PieceSpec>,
    pub at: Option<Expr>,
    pub key: Option<Expr>,
    pub len: u32,
    pub plt: u8,
    pub sel: u8,
    pub srqn: Option<u32>,
    pub imm: u32,
    pub swap: u64,
    pub compare: u64,
    pub region: Option<String>,
    pub window: Option<String>,
    pub access: Vec<String>,
    pub fence: bool,
    pub solicited: bool,
    pub unsignaled: bool,
    pub qkey: u32,
}

/// A completion that has to come.
#[derive(Clone, Debug)]
pub(crate) struct CompleteSpec {
    pub qp: String,
    pub side: Side,
    pub id: u64,
    /// Any of these.
    pub statuses: Vec<String>,
    pub len: Option<u64>,
    pub imm: Option<u32>,
    pub invalidated: Option<Expr>,
    pub within_ns: Option<u64>,
}
