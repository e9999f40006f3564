//! Opcodes. Everything that depends on an opcode is derived here, at compile time, from the rows of `table.rs`.

mod derive;
mod table;

use crate::header::Bth;
use crate::types::Mtu;
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

/// Where a packet stands in its message. The low bit says that it begins it, the other that it ends it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Position {
    /// Neither first nor last.
    Middle = 0,
    /// The first of several.
    First = 1,
    /// The last of several.
    Last = 2,
    /// The whole message.
    Only = 3,
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
        self as u8 & 1 != 0
    }

    /// Last or Only.
    pub const fn ends(self) -> bool {
        self as u8 & 2 != 0
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
    pub const fn allows(self, len: u32, mtu: Mtu) -> bool {
        self.bounds().hold(len, mtu)
    }

    const fn bounds(self) -> Bounds {
        const MTU: Bound = Bound { bytes: 0, mtus: 1 };
        const fn exactly(bytes: u8) -> Bound {
            Bound { bytes, mtus: 0 }
        }
        let (least, most) = match self {
            PayloadRule::FullMtu => (MTU, MTU),
            PayloadRule::OneToMtu => (exactly(1), MTU),
            PayloadRule::UpToMtu => (exactly(0), MTU),
            PayloadRule::Nothing => (exactly(0), exactly(0)),
            PayloadRule::Exactly(bytes) => (exactly(bytes), exactly(bytes)),
        };
        Bounds { least, most }
    }
}

/// A [`PayloadRule`] as numbers, so that nothing branches on which it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Bounds {
    least: Bound,
    most: Bound,
}

/// So many bytes and path MTUs, of which there are none or one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Bound {
    bytes: u8,
    mtus: u8,
}

impl Bounds {
    #[inline]
    const fn hold(self, len: u32, mtu: Mtu) -> bool {
        len >= self.least.on(mtu) && len <= self.most.on(mtu)
    }
}

impl Bound {
    #[inline]
    const fn on(self, mtu: Mtu) -> u32 {
        self.bytes as u32 + ((self.mtus as u32) << mtu.shift())
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

/// What an opcode means: all that can be told from it beforehand. One cache line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(align(64))]
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
    /// The operation that First and Middle packets of such a message carry.
    base: Operation,
    is_response: bool,
    takes_receive: bool,
    completes_receive: bool,
    reply: Reply,
    class: u8,
    /// Where in a stream it may come, and where the stream is behind it.
    comes: Standing,
    leaves: Standing,
    bounds: Bounds,
    ext_len: u8,
    /// Per kind: bytes from the start of the BTH, or 0 when the packet has no such header.
    offsets: [u8; ExtKind::COUNT],
}

/// Where a stream of packets stands (requests, or the responses of one READ): between two messages, or inside of one, which only
/// packets of its own may continue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Standing(u8);

impl Standing {
    /// Between two messages.
    pub const BETWEEN: Standing = Standing(0);

    /// Inside of a message of an operation of a service.
    const fn inside(service: Service, base: Operation) -> Standing {
        Standing(1 + (service.index() * Operation::COUNT) as u8 + base as u8)
    }
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

    /// What the message does, its immediate or invalidate aside: [`Operation::base`].
    #[inline]
    pub const fn base(&self) -> Operation {
        self.base
    }

    /// Bytes of extension headers.
    #[inline]
    pub const fn ext_len(&self) -> usize {
        self.ext_len as usize
    }

    /// Bytes of BTH and extension headers.
    #[inline]
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
    #[inline]
    pub const fn is_response(&self) -> bool {
        self.is_response
    }

    /// It is a request to us. (A CNP is neither request nor response.)
    pub const fn is_request(&self) -> bool {
        !self.is_response && !matches!(self.operation, Operation::Cnp)
    }

    /// Whether `len` bytes of payload are right on a path of `mtu`.
    #[inline]
    pub const fn allows_payload(&self, len: u32, mtu: Mtu) -> bool {
        self.bounds.hold(len, mtu)
    }

    /// Requests, or responses, of its service: see [`class_of`](Self::class_of).
    #[inline]
    pub const fn class(&self) -> u8 {
        self.class
    }

    /// The number of the requests or the responses of a service, below 16: a queue pair hears few of them.
    pub const fn class_of(service: Service, is_response: bool) -> u8 {
        2 * service.index() as u8 + is_response as u8
    }

    /// A receive WQE is taken when this packet arrives.
    #[inline]
    pub const fn takes_receive_wqe(&self) -> bool {
        self.takes_receive
    }

    /// A receive completion follows from this packet.
    #[inline]
    pub const fn completes_receive_wqe(&self) -> bool {
        self.completes_receive
    }

    /// What the responder answers when it has executed the request.
    #[inline]
    pub const fn reply(&self) -> Reply {
        self.reply
    }

    /// Where its stream stands behind it.
    #[inline]
    pub const fn leaves(&self) -> Standing {
        self.leaves
    }

    /// Whether this packet may come next in a stream that stands so: inside a message the matching Middle or Last, otherwise a
    /// beginning.
    #[inline]
    pub const fn may_come(&self, standing: Standing) -> bool {
        self.comes.0 == standing.0
    }

    /// Whether this packet may come next after `previous` in the same stream. `None` stands for "nothing before".
    pub fn may_follow(&self, previous: Option<&OpcodeInfo>) -> bool {
        self.may_come(previous.map_or(Standing::BETWEEN, OpcodeInfo::leaves))
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
