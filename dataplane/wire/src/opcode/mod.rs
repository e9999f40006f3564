//! Opcodes. Everything that depends on an opcode is derived here, at compile time, from the rows of `table.rs`.

mod derive;
mod table;

use crate::header::Bth;
use std::fmt;

/// The service of an opcode. Values are the prefixes of the opcode byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Service {
    /// Reliable connection.
    Rc = 0x00,
    /// Unreliable connection.
    Uc = 0x20,
    /// Reliable datagram: known for printing only, nobody uses it.
    Rd = 0x40,
    /// Unreliable datagram.
    Ud = 0x60,
    /// Congestion notification.
    Cnp = 0x80,
    /// Extended reliable connection.
    Xrc = 0xA0,
}

impl Service {
    pub(crate) const COUNT: usize = 6;

    const fn index(self) -> usize {
        (self as u8 >> 5) as usize
    }

    /// Its usual name: "RC".
    pub const fn name(self) -> &'static str {
        table::SERVICES[self.index()].name
    }
}

/// What a packet does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Operation {
    /// SEND.
    Send,
    /// SEND with immediate: the packet that carries it.
    SendImm,
    /// SEND with invalidate: the packet that carries it.
    SendInv,
    /// WRITE.
    Write,
    /// WRITE with immediate: the packet that carries it.
    WriteImm,
    /// READ request.
    ReadRequest,
    /// READ response.
    ReadResponse,
    /// ACK or NAK.
    Acknowledge,
    /// Answer to an atomic.
    AtomicAcknowledge,
    /// Compare and swap.
    CompareSwap,
    /// Fetch and add.
    FetchAdd,
    /// RESYNC of reliable datagrams.
    Resync,
    /// FLUSH.
    Flush,
    /// ATOMIC WRITE.
    AtomicWrite,
    /// Congestion notification.
    Cnp,
}

impl Operation {
    const COUNT: usize = 15;

    /// The operation that First and Middle packets of such a message carry: immediates and keys come in the last packet
    /// only.
    pub const fn base(self) -> Operation {
        match self {
            Operation::SendImm | Operation::SendInv => Operation::Send,
            Operation::WriteImm => Operation::Write,
            other => other,
        }
    }

    const fn is_response(self) -> bool {
        matches!(self, Operation::ReadResponse | Operation::Acknowledge | Operation::AtomicAcknowledge)
    }
}

/// Where a packet stands in its message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Position {
    /// The first of several.
    First,
    /// Neither first nor last.
    Middle,
    /// The last of several.
    Last,
    /// The whole message.
    Only,
}

impl Position {
    const COUNT: usize = 4;

    /// The position of a packet that begins its message, ends it, both or neither.
    pub const fn of(begins: bool, ends: bool) -> Position {
        match (begins, ends) {
            (true, true) => Position::Only,
            (true, false) => Position::First,
            (false, false) => Position::Middle,
            (false, true) => Position::Last,
        }
    }

    /// First or Only.
    pub const fn begins(self) -> bool {
        matches!(self, Position::First | Position::Only)
    }

    /// Last or Only.
    pub const fn ends(self) -> bool {
        matches!(self, Position::Last | Position::Only)
    }
}

/// Payload lengths that a packet may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PayloadRule {
    /// Exactly the path MTU.
    FullMtu,
    /// 1 byte up to the path MTU.
    OneToMtu,
    /// 0 bytes up to the path MTU.
    UpToMtu,
    /// No payload.
    Nothing,
    /// Exactly so many bytes.
    Exactly(u8),
}

impl PayloadRule {
    /// Whether `len` bytes are right on a path of `mtu`.
    pub const fn allows(self, len: u32, mtu: crate::Mtu) -> bool {
        match self {
            PayloadRule::FullMtu => len == mtu.bytes(),
            PayloadRule::OneToMtu => len >= 1 && len <= mtu.bytes(),
            PayloadRule::UpToMtu => len <= mtu.bytes(),
            PayloadRule::Nothing => len == 0,
            PayloadRule::Exactly(bytes) => len == bytes as u32,
        }
    }
}

/// An extension header.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum ExtKind {
    /// [`crate::Rdeth`]
    Rdeth,
    /// [`crate::Deth`]
    Deth,
    /// [`crate::XrcEth`]
    XrcEth,
    /// [`crate::Feth`]
    Feth,
    /// [`crate::Reth`]
    Reth,
    /// [`crate::AtomicEth`]
    AtomicEth,
    /// [`crate::Aeth`]
    Aeth,
    /// [`crate::AtomicAckEth`]
    AtomicAckEth,
    /// [`crate::ImmDt`]
    ImmDt,
    /// [`crate::Ieth`]
    Ieth,
}

impl ExtKind {
    const COUNT: usize = 10;
}

/// What a responder sends for a request that it executed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reply {
    /// Nothing: an unreliable service, or no request at all.
    Nothing,
    /// An ACK, if asked for.
    Ack,
    /// READ responses, always.
    ReadResponse,
    /// An ATOMIC Acknowledge, always.
    AtomicAcknowledge,
}

/// The opcode byte of a BTH. Any value; [`info`](Self::info) knows whether it is defined.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Opcode(pub u8);

impl Opcode {
    /// The congestion notification packet.
    pub const CNP: Opcode = Opcode(0x81);

    /// The opcode of a packet of `operation` at `position`. A SEND or WRITE with immediate (or invalidate) has that at its
    /// end only, so First and Middle are those of the plain SEND or WRITE. `None` where the service has no such packet.
    pub const fn of(service: Service, operation: Operation, position: Position) -> Option<Opcode> {
        match derive::OPCODES[service.index()][operation as usize][position as usize] {
            derive::NO_OPCODE => None,
            byte => Some(Opcode(byte)),
        }
    }

    /// All that is known of it; `None` for a reserved or vendor's opcode.
    #[inline]
    pub fn info(self) -> Option<&'static OpcodeInfo> {
        derive::INFOS[self.0 as usize].as_ref()
    }
}

impl fmt::Display for Opcode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.info() {
            Some(info) => fmt::Display::fmt(info, f),
            None => write!(f, "reserved opcode {:#04x}", self.0),
        }
    }
}

impl fmt::Debug for Opcode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Opcode({:#04x})", self.0)
    }
}

/// What an opcode means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpcodeInfo {
    /// The opcode itself.
    pub opcode: Opcode,
    /// Its service.
    pub service: Service,
    /// What the packet does. First and Middle packets of a message with immediate say plain SEND or WRITE.
    pub operation: Operation,
    /// Where it stands in its message.
    pub position: Position,
    /// Payload lengths that are right.
    pub payload: PayloadRule,
    name: &'static str,
    ext_len: u8,
    /// Per kind: bytes from the start of the BTH, or 0 when the packet has no such header.
    offsets: [u8; ExtKind::COUNT],
}

impl OpcodeInfo {
    /// Every defined opcode, by number.
    pub fn all() -> impl Iterator<Item = &'static OpcodeInfo> {
        derive::INFOS.iter().flatten()
    }

    /// Its name without the service: "WRITE Last w/ Imm".
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// Bytes of extension headers.
    pub const fn ext_len(&self) -> usize {
        self.ext_len as usize
    }

    /// Bytes of BTH and extension headers.
    pub const fn header_len(&self) -> usize {
        Bth::LEN + self.ext_len as usize
    }

    /// Where a header begins, in bytes from the start of the BTH. `None` when the packet has no such header.
    #[inline]
    pub const fn offset_of(&self, kind: ExtKind) -> Option<usize> {
        match self.offsets[kind as usize] {
            0 => None,
            offset => Some(offset as usize),
        }
    }

    /// Whether the packet has such a header.
    pub const fn has(&self, kind: ExtKind) -> bool {
        self.offset_of(kind).is_some()
    }

    /// It answers a request of ours.
    pub const fn is_response(&self) -> bool {
        self.operation.is_response()
    }

    /// It is a request to us. (A CNP is neither request nor response.)
    pub const fn is_request(&self) -> bool {
        !self.is_response() && !matches!(self.operation, Operation::Cnp)
    }

    /// A receive WQE is taken when this packet arrives.
    pub const fn takes_receive_wqe(&self) -> bool {
        match self.operation.base() {
            Operation::Send => self.position.begins(),
            _ => matches!(self.operation, Operation::WriteImm),
        }
    }

    /// A receive completion follows from this packet.
    pub const fn completes_receive_wqe(&self) -> bool {
        match self.operation.base() {
            Operation::Send => self.position.ends(),
            _ => matches!(self.operation, Operation::WriteImm),
        }
    }

    /// What the responder answers when it has executed the request.
    pub const fn reply(&self) -> Reply {
        if !self.is_request() || matches!(self.service, Service::Uc | Service::Ud) {
            return Reply::Nothing;
        }
        match self.operation {
            Operation::CompareSwap | Operation::FetchAdd => Reply::AtomicAcknowledge,
            Operation::ReadRequest | Operation::Flush | Operation::AtomicWrite => Reply::ReadResponse,
            _ => Reply::Ack,
        }
    }

    /// Whether this packet may come next after `previous` in the same stream (requests, or the responses of one READ):
    /// inside a message the matching Middle or Last, otherwise a beginning. `None` stands for "nothing before".
    pub fn may_follow(&self, previous: Option<&OpcodeInfo>) -> bool {
        match previous {
            Some(previous) if !previous.position.ends() => {
                !self.position.begins()
                    && self.service == previous.service
                    && self.operation.base() == previous.operation
            }
            _ => self.position.begins(),
        }
    }
}

impl fmt::Display for OpcodeInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.service.name() {
            "" => f.write_str(self.name),
            service => write!(f, "{service} {}", self.name),
        }
    }
}
