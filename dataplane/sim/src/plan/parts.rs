//! What plans are made of.

use serde::{Deserialize, Serialize};
use wire::Mtu;

/// A transport service.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Service {
    /// Reliable connection.
    Rc,
    /// Unreliable connection.
    Uc,
    /// Unreliable datagrams, between two QPs.
    Ud,
    /// Extended reliable connection: an initiator on side a, a target on side b, and at its endpoint two SRQs, which requests
    /// name in turn.
    Xrc,
}

impl Service {
    /// Requests are acknowledged, and repeated until they are.
    pub fn is_reliable(self) -> bool {
        matches!(self, Service::Rc | Service::Xrc)
    }

    /// The sides that send requests.
    pub fn senders(self) -> &'static [Side] {
        if self == Service::Xrc { &[Side::A] } else { &Side::BOTH }
    }
}

/// Receives that several QPs share: each endpoint has such a queue when a plan says how it is, and two for XRC.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Srq {
    /// Places.
    pub depth: u32,
    /// Fewer receives than this are told by an event; 0 for none.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub limit: u32,
    /// A receive is posted so much later than it could be, at most.
    #[serde(default, skip_serializing_if = "is_none")]
    pub receive_delay_ns: u64,
}

impl Srq {
    pub(super) fn check(&self) -> Result<(), String> {
        match self {
            Srq { depth, .. } if !(1..=4096).contains(depth) => Err(format!("depth = {depth}: 1 to 4096")),
            Srq { depth, limit, .. } if limit > depth => Err(format!("limit = {limit}: 0 to {depth}")),
            _ => Ok(()),
        }
    }
}

/// One end of a connection: the first or the second of its endpoints.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Side {
    /// The first.
    A,
    /// The second.
    B,
}

impl Side {
    /// Both.
    pub const BOTH: [Side; 2] = [Side::A, Side::B];

    /// The other one.
    #[must_use]
    pub fn other(self) -> Side {
        match self {
            Side::A => Side::B,
            Side::B => Side::A,
        }
    }
}

/// Two QPs and how they are connected.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Connection {
    /// Its service.
    pub service: Service,
    /// The endpoints of side a and side b, from 0.
    pub ends: [u8; 2],
    /// Path MTU in bytes.
    pub mtu: u32,
    /// Over IPv6.
    #[serde(default, skip_serializing_if = "is_false")]
    pub v6: bool,
    /// Places in each work queue.
    pub depth: u32,
    /// READs and atomics in flight.
    pub rd_atomic: u8,
    /// ACK timeout code.
    pub timeout: u8,
    /// Retries.
    pub retry_cnt: u8,
    /// RNR retries.
    pub rnr_retry: u8,
    /// RNR timer code.
    pub rnr_timer: u8,
    /// Receives that are kept posted.
    pub receives: u32,
    /// A receive is posted so much later than it could be, at most.
    #[serde(default, skip_serializing_if = "is_none")]
    pub receive_delay_ns: u64,
    /// Sides whose QP has the receives of its endpoint's SRQ instead of its own.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub shared: Vec<Side>,
}

impl Connection {
    /// What this side sends meets receives that others use, too.
    pub fn meets_shared(&self, from: Side) -> bool {
        self.service == Service::Xrc || self.shared.contains(&from.other())
    }

    /// The path MTU.
    pub fn path_mtu(&self) -> Mtu {
        Mtu::ALL.into_iter().find(|mtu| mtu.bytes() == self.mtu).unwrap_or(Mtu::Mtu1024)
    }

    pub(super) fn check(&self, endpoints: u8) -> Result<(), String> {
        if !Mtu::ALL.iter().any(|mtu| mtu.bytes() == self.mtu) {
            return Err(format!("mtu = {}: choose 256, 512, 1024, 2048 or 4096", self.mtu));
        }
        if self.ends.iter().any(|&end| end >= endpoints) {
            return Err(format!("ends = {:?}: endpoints are numbered 0 to {}", self.ends, endpoints - 1));
        }
        if self.ends[0] == self.ends[1] {
            return Err("both ends are the same endpoint".into());
        }
        let bounded = [
            ("depth", u64::from(self.depth), 1, 4096),
            ("receives", u64::from(self.receives), 1, u64::from(self.depth)),
            ("rd_atomic", u64::from(self.rd_atomic), 1, 128),
            ("timeout", u64::from(self.timeout), 1, 20),
            ("retry_cnt", u64::from(self.retry_cnt), 0, 7),
            ("rnr_retry", u64::from(self.rnr_retry), 0, 7),
            ("rnr_timer", u64::from(self.rnr_timer), 0, 31),
        ];
        match bounded.iter().find(|(_, is, least, most)| is < least || is > most) {
            Some((name, is, least, most)) => Err(format!("{name} = {is}: {least} to {most}")),
            None => Ok(()),
        }
    }
}

/// A kind of work request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs, reason = "the names say it")]
pub enum Kind {
    Send,
    SendImm,
    SendInv,
    Write,
    WriteImm,
    Read,
    CompareSwap,
    FetchAdd,
    AtomicWrite,
    Flush,
    LocalInv,
    RegMr,
    BindMw1,
    BindMw2,
}

impl Kind {
    /// All of them.
    pub const ALL: [Kind; 14] = [
        Kind::Send,
        Kind::SendImm,
        Kind::SendInv,
        Kind::Write,
        Kind::WriteImm,
        Kind::Read,
        Kind::CompareSwap,
        Kind::FetchAdd,
        Kind::AtomicWrite,
        Kind::Flush,
        Kind::LocalInv,
        Kind::RegMr,
        Kind::BindMw1,
        Kind::BindMw2,
    ];

    /// Its name in plan files.
    pub fn word(self) -> &'static str {
        match self {
            Kind::Send => "send",
            Kind::SendImm => "send_imm",
            Kind::SendInv => "send_inv",
            Kind::Write => "write",
            Kind::WriteImm => "write_imm",
            Kind::Read => "read",
            Kind::CompareSwap => "compare_swap",
            Kind::FetchAdd => "fetch_add",
            Kind::AtomicWrite => "atomic_write",
            Kind::Flush => "flush",
            Kind::LocalInv => "local_inv",
            Kind::RegMr => "reg_mr",
            Kind::BindMw1 => "bind_mw1",
            Kind::BindMw2 => "bind_mw2",
        }
    }

    /// Compare and swap, fetch and add.
    pub fn is_atomic(self) -> bool {
        matches!(self, Kind::CompareSwap | Kind::FetchAdd)
    }

    /// It works on eight aligned bytes: an atomic, or an ATOMIC WRITE.
    pub fn is_of_eight(self) -> bool {
        self.is_atomic() || self == Kind::AtomicWrite
    }

    /// Any SEND.
    pub fn is_send(self) -> bool {
        matches!(self, Kind::Send | Kind::SendImm | Kind::SendInv)
    }

    /// Any WRITE.
    pub fn is_write(self) -> bool {
        matches!(self, Kind::Write | Kind::WriteImm)
    }

    /// Immediate data goes along.
    pub fn has_imm(self) -> bool {
        matches!(self, Kind::SendImm | Kind::WriteImm)
    }

    /// The peer needs a receive for it.
    pub fn takes_receive(self) -> bool {
        self.is_send() || self.has_imm()
    }

    /// Data comes back.
    pub fn returns_data(self) -> bool {
        self == Kind::Read || self.is_atomic()
    }

    /// Bytes of this side go to the peer.
    pub fn carries_data(self) -> bool {
        self.is_send() || self.is_write() || self == Kind::AtomicWrite
    }

    /// Nothing goes on the wire.
    pub fn is_local(self) -> bool {
        matches!(self, Kind::LocalInv | Kind::RegMr) || self.is_bind()
    }

    /// The bind of a memory window, of type 1 or 2.
    pub fn is_bind(self) -> bool {
        matches!(self, Kind::BindMw1 | Kind::BindMw2)
    }

    /// A key is good when it is done.
    pub fn gives_key(self) -> bool {
        self == Kind::RegMr || self.is_bind()
    }
}

/// Where a request's local data lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Local {
    /// In bytes of its own, in up to four pieces.
    Own,
    /// Where this READ of the same QP brings its data: a fenced request sends on what was read.
    Forward(u32),
    /// In the region that an event deregisters.
    Doomed,
    /// In the region that this fast registration of the same QP makes usable.
    Registered(u32),
}

/// Where a request works at the peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Place {
    /// At bytes of its own; atomics and ATOMIC WRITEs on one of a few cells of the QP's own.
    Own,
    /// Where this earlier request of the same QP works.
    Over(u32),
    /// In what this fast registration or bind of the peer makes reachable.
    Window(u32),
    /// In the region that an event deregisters.
    Doomed,
    /// On the counter that all QPs of the peer's endpoint share (fetch and add).
    Shared,
}

/// What is wrong with a request on purpose.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fault {
    /// A key that nobody has.
    BadRkey,
    /// A key that is right but for its changeable byte, or was invalidated.
    StaleKey,
    /// Past the end of the region.
    Range,
    /// A region that does not grant it.
    NoRight,
    /// An atomic or ATOMIC WRITE that is not aligned.
    Misaligned,
    /// The receive is shorter than the message.
    ShortReceive,
    /// The receive's L_Key is unknown.
    BadReceive,
    /// The request's L_Key is unknown.
    BadLkey,
    /// The request's L_Key was invalidated.
    StaleLkey,
    /// An atomic's result needs eight bytes and has other room.
    AtomicLength,
    /// A FLUSH is to make memory persist that cannot.
    Volatile,
    /// A FLUSH to nowhere.
    NoPlacement,
    /// XRC: a number that no SRQ has.
    BadSrqn,
    /// A window is to be bound past the end of its region.
    BadBind,
}

impl Fault {
    /// All of them.
    pub const ALL: [Fault; 14] = [
        Fault::BadRkey,
        Fault::StaleKey,
        Fault::Range,
        Fault::NoRight,
        Fault::Misaligned,
        Fault::ShortReceive,
        Fault::BadReceive,
        Fault::BadLkey,
        Fault::StaleLkey,
        Fault::AtomicLength,
        Fault::Volatile,
        Fault::NoPlacement,
        Fault::BadSrqn,
        Fault::BadBind,
    ];

    /// The requester finds it, and nothing goes on the wire.
    pub fn is_local(self) -> bool {
        matches!(self, Fault::BadLkey | Fault::StaleLkey | Fault::AtomicLength | Fault::BadBind)
    }
}

/// A work request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Op {
    /// Its number, which stays when others are left out.
    pub id: u32,
    /// On which connection.
    pub connection: u32,
    /// From which side.
    pub from: Side,
    /// What.
    pub kind: Kind,
    /// Bytes; of a bind those of the window, 0 to unbind it.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub len: u32,
    /// A completion is asked for.
    #[serde(default, skip_serializing_if = "is_false")]
    pub signaled: bool,
    /// A solicited event is asked for.
    #[serde(default, skip_serializing_if = "is_false")]
    pub solicited: bool,
    /// It waits for READs and atomics before it.
    #[serde(default, skip_serializing_if = "is_false")]
    pub fenced: bool,
    /// Its data is in the request.
    #[serde(default, skip_serializing_if = "is_false")]
    pub inline: bool,
    /// Where its data lies.
    #[serde(default = "own", skip_serializing_if = "is_own")]
    pub local: Local,
    /// Where it works.
    #[serde(default = "own_place", skip_serializing_if = "is_own_place")]
    pub place: Place,
    /// Whose key a SEND with Invalidate or a local invalidate takes away; whose window is bound anew.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key_of: Option<u32>,
    /// It is posted when this request, of either side, has completed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<u32>,
    /// What is wrong with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fault: Option<Fault>,
}

impl Op {
    /// A plain request with places of its own.
    pub fn new(id: u32, connection: u32, from: Side, kind: Kind, len: u32) -> Op {
        Op {
            id,
            connection,
            from,
            kind,
            len,
            signaled: true,
            solicited: false,
            fenced: false,
            inline: false,
            local: Local::Own,
            place: Place::Own,
            key_of: None,
            after: None,
            fault: None,
        }
    }

    /// A window that is bound by it has room for atomics, too.
    pub fn grants_atomics(&self) -> bool {
        self.id.is_multiple_of(2)
    }

    /// It works where a memory window is.
    pub fn uses_window(&self, plan: &super::Plan) -> bool {
        let Place::Window(by) = self.place else { return false };
        plan.ops.iter().any(|op| op.id == by && op.kind.is_bind())
    }

    /// The requests that it makes no sense without.
    pub fn needs(&self) -> impl Iterator<Item = u32> {
        let forwarded = match self.local {
            Local::Forward(id) => Some(id),
            Local::Own | Local::Doomed | Local::Registered(_) => None,
        };
        let over = match self.place {
            Place::Over(id) => Some(id),
            Place::Own | Place::Doomed | Place::Shared | Place::Window(_) => None,
        };
        [forwarded, over].into_iter().flatten().chain(self.needs_success_of())
    }

    /// The requests that must have succeeded before.
    pub fn needs_success_of(&self) -> impl Iterator<Item = u32> {
        let registered = match self.local {
            Local::Registered(id) => Some(id),
            Local::Own | Local::Doomed | Local::Forward(_) => None,
        };
        let window = match self.place {
            Place::Window(id) => Some(id),
            Place::Own | Place::Doomed | Place::Shared | Place::Over(_) => None,
        };
        [registered, window, self.key_of, self.after].into_iter().flatten()
    }

    pub(super) fn check(&self, connection: &Connection) -> Result<(), String> {
        const LONGEST: u32 = 1 << 20;
        let service = connection.service;
        let offered = match self.kind {
            Kind::Send | Kind::SendImm => true,
            Kind::Write | Kind::WriteImm => service != Service::Ud,
            Kind::SendInv | Kind::AtomicWrite | Kind::Flush | Kind::BindMw1 | Kind::BindMw2 => {
                service == Service::Rc
            }
            _ => service.is_reliable(),
        };
        if !offered {
            return Err(format!("{service:?} has no {:?}", self.kind));
        }
        if !service.senders().contains(&self.from) {
            return Err("an XRC target, on side b, sends nothing".into());
        }
        if connection.meets_shared(self.from)
            && matches!(self.fault, Some(Fault::ShortReceive | Fault::BadReceive))
        {
            return Err(
                "nobody knows which receive of an SRQ it will meet: its mistake cannot be there".into()
            );
        }
        if self.fault == Some(Fault::BadSrqn) && service != Service::Xrc {
            return Err(format!("{service:?} requests name no SRQ"));
        }
        if self.len > LONGEST {
            return Err(format!("len = {}: at most {LONGEST}", self.len));
        }
        if self.kind.is_of_eight() && self.len != 8 {
            return Err("atomics and ATOMIC WRITE have 8 bytes: len = 8".into());
        }
        if service == Service::Ud && self.len > 4096 {
            return Err("a datagram has at most 4096 bytes".into());
        }
        if self.inline && (self.len as usize > engine::limits::MAX_INLINE || !self.kind.carries_data()) {
            return Err(format!(
                "at most {} bytes can be inline, and only those of a SEND or WRITE",
                engine::limits::MAX_INLINE
            ));
        }
        if self.len == 0 && !matches!(self.fault, None | Some(Fault::BadReceive | Fault::BadSrqn)) {
            return Err("a request of no bytes cannot have this fault".into());
        }
        if self.kind.is_bind() && self.len == 0 && (self.kind == Kind::BindMw2 || self.key_of.is_none()) {
            return Err(
                "a bind has bytes; only a window of type 1 that is bound is unbound by one without".into()
            );
        }
        if matches!(self.kind, Kind::SendInv | Kind::LocalInv) && self.key_of.is_none() {
            return Err("key_of is missing: whose key is invalidated?".into());
        }
        Ok(())
    }
}

/// Something that happens to a QP or its memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Event {
    /// When, from the beginning of the world.
    pub at_ns: u64,
    /// To which connection.
    pub connection: u32,
    /// On which side.
    pub side: Side,
    /// What.
    pub what: Happening,
}

/// What can happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Happening {
    /// The QP moves to the endpoint's other engine.
    Move,
    /// The send queue drains (SQD), and goes on once it has.
    Drain,
    /// The application gives the QP up (ERROR).
    GiveUp,
    /// The side's doomed source is deregistered.
    LoseSource,
    /// The region in which the peer's doomed requests work is deregistered.
    LoseTarget,
    /// The whole network is dead for a time.
    Darkness(u64),
}

fn is_false(flag: &bool) -> bool {
    !flag
}

fn is_zero(number: &u32) -> bool {
    *number == 0
}

fn is_none(time: &u64) -> bool {
    *time == 0
}

fn own() -> Local {
    Local::Own
}

fn is_own(local: &Local) -> bool {
    *local == Local::Own
}

fn own_place() -> Place {
    Place::Own
}

fn is_own_place(place: &Place) -> bool {
    *place == Place::Own
}
