//! What came in, what went out, and by name what came in for nothing.

use wire::mad::{CmMessage, MadError, MessageKind};

macro_rules! drop_reasons {
    ($($(#[$doc:meta])* $name:ident = $label:literal,)*) => {
        /// Why a MAD changed nothing.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum DropReason {
            $($(#[$doc])* $name,)*
        }

        impl DropReason {
            /// Every reason, in the order of its numbers.
            pub const ALL: &'static [DropReason] = &[$(DropReason::$name),*];

            /// Its name in statistics.
            pub fn label(self) -> &'static str {
                match self {
                    $(DropReason::$name => $label,)*
                }
            }
        }
    };
}

drop_reasons! {
    /// Not 256 bytes.
    Length = "cm_drop_length",
    /// Base version other than 1.
    BaseVersion = "cm_drop_base_version",
    /// Another management class.
    Class = "cm_drop_class",
    /// Class version other than 2; a REQ is told so by REJ 31.
    ClassVersion = "cm_drop_class_version",
    /// Method other than Send.
    Method = "cm_drop_method",
    /// No message has this attribute ID.
    Attribute = "cm_drop_attribute",
    /// Names a communication ID that we do not have, or with another peer's.
    UnknownId = "cm_drop_unknown_id",
    /// Names a communication ID that we have, from an address that is not the peer's.
    WrongPeer = "cm_drop_wrong_peer",
    /// A message that must have an ID of its sender has none.
    NoId = "cm_drop_no_id",
    /// The message was taken before; it was answered again if it needs an answer.
    Duplicate = "cm_drop_duplicate",
    /// The message makes no sense in the connection's state.
    Unexpected = "cm_drop_unexpected",
    /// A DREQ or LAP for another QP than the connection's.
    WrongQpn = "cm_drop_wrong_qpn",
    /// A REQ for which the listener's backlog has no room.
    Backlog = "cm_drop_backlog",
    /// A REQ of a peer that has too many under way.
    PeerLimit = "cm_drop_peer_limit",
    /// A SIDR_REQ for which there is no room.
    SidrFull = "cm_drop_sidr_full",
}

impl From<MadError> for DropReason {
    fn from(error: MadError) -> DropReason {
        match error {
            MadError::Length(_) => DropReason::Length,
            MadError::BaseVersion(_) => DropReason::BaseVersion,
            MadError::Class(_) => DropReason::Class,
            MadError::ClassVersion(_) => DropReason::ClassVersion,
            MadError::Method(_) => DropReason::Method,
            MadError::Attribute(_) => DropReason::Attribute,
        }
    }
}

/// Numbers since creation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Counters {
    dropped: Vec<u64>,
    received: Vec<u64>,
    sent: Vec<u64>,
    /// Messages that were sent again because nobody answered.
    pub retries: u64,
    /// REJs sent because a limit was reached.
    pub refused_full: u64,
    /// Connections that left timewait early, because there were too many.
    pub timewait_cut: u64,
}

impl Default for Counters {
    fn default() -> Self {
        let kinds = vec![0; MessageKind::ALL.len()];
        Counters {
            dropped: vec![0; DropReason::ALL.len()],
            received: kinds.clone(),
            sent: kinds,
            retries: 0,
            refused_full: 0,
            timewait_cut: 0,
        }
    }
}

impl Counters {
    /// MADs that changed nothing, for this reason.
    pub fn dropped(&self, reason: DropReason) -> u64 {
        self.dropped[reason as usize]
    }

    /// Messages of this kind that came, dropped ones included.
    pub fn received(&self, kind: MessageKind) -> u64 {
        self.received[place(kind)]
    }

    /// Messages of this kind that were given out for sending.
    pub fn sent(&self, kind: MessageKind) -> u64 {
        self.sent[place(kind)]
    }

    pub(crate) fn count_drop(&mut self, reason: DropReason) {
        self.dropped[reason as usize] += 1;
    }

    pub(crate) fn count_received(&mut self, message: &CmMessage) {
        self.received[place(message.kind())] += 1;
    }

    pub(crate) fn count_sent(&mut self, message: &CmMessage) {
        self.sent[place(message.kind())] += 1;
    }
}

/// Attribute IDs are consecutive.
fn place(kind: MessageKind) -> usize {
    usize::from(kind.attribute() - MessageKind::Req.attribute())
}

/// What is there now.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Usage {
    /// Connections that are not in timewait.
    pub connections: usize,
    /// Connections in timewait.
    pub timewait: usize,
    /// Requests of peers that are not established yet.
    pub half_open: usize,
    /// Datagram requests of both sides.
    pub sidr: usize,
    /// Listeners.
    pub listeners: usize,
    /// Entries of the tables by which connections are found: IDs of both ends, QPs, peers with requests under way.
    pub keys: usize,
}
