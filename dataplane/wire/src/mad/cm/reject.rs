//! REJ: no, and why (rocev2 facts, CM 7 and 8).

use super::super::Area;
use super::super::fields::{array_at, put, u16_at};
use super::{Body, CommId, ids, put_ids};
use std::fmt;

/// Which message a REJ or MRA answers: two bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum Answered {
    /// A REQ.
    #[default]
    Req,
    /// A REP.
    Rep,
    /// Another one: a LAP, for MRA.
    Other,
    /// A number that means nothing.
    Reserved,
}

impl Answered {
    pub(super) fn from_bits(bits: u8) -> Answered {
        match bits & 3 {
            0 => Answered::Req,
            1 => Answered::Rep,
            2 => Answered::Other,
            _ => Answered::Reserved,
        }
    }

    pub(super) fn bits(self) -> u8 {
        self as u8
    }
}

/// Every reason, its name and its words.
macro_rules! reasons {
    ($($number:literal $name:ident $words:literal,)*) => {
        /// Why a message was rejected. Any number can arrive.
        #[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct RejectReason(pub u16);

        impl RejectReason {
            $(#[doc = concat!("The reason in words: ", $words, ".")]
            pub const $name: RejectReason = RejectReason($number);)*

            /// Every reason that has a name.
            pub const ALL: &'static [RejectReason] = &[$(RejectReason::$name),*];

            /// The reason in words; `None` when the number has none.
            pub fn words(self) -> Option<&'static str> {
                match self.0 {
                    $($number => Some($words),)*
                    _ => None,
                }
            }
        }
    };
}

reasons! {
    1 NO_QP "no QP",
    2 NO_EEC "no end-to-end context",
    3 NO_RESOURCES "no resources",
    4 TIMEOUT "timeout",
    5 UNSUPPORTED_REQUEST "unsupported request",
    6 INVALID_COMM_ID "invalid communication ID",
    7 INVALID_COMM_INSTANCE "invalid communication instance",
    8 INVALID_SERVICE_ID "nobody listens for this service ID",
    9 INVALID_TRANSPORT "invalid transport type",
    10 STALE_CONNECTION "stale connection",
    11 RDC_DOES_NOT_EXIST "RDC does not exist",
    12 INVALID_GID "primary GID invalid",
    13 INVALID_LID "primary LID invalid",
    14 INVALID_SL "invalid service level",
    15 INVALID_TRAFFIC_CLASS "invalid traffic class",
    16 INVALID_HOP_LIMIT "invalid hop limit",
    17 INVALID_PACKET_RATE "invalid packet rate",
    18 INVALID_ALTERNATE_GID "invalid alternate GID",
    19 INVALID_ALTERNATE_LID "invalid alternate LID",
    20 INVALID_ALTERNATE_SL "invalid alternate service level",
    21 INVALID_ALTERNATE_TRAFFIC_CLASS "invalid alternate traffic class",
    22 INVALID_ALTERNATE_HOP_LIMIT "invalid alternate hop limit",
    23 INVALID_ALTERNATE_PACKET_RATE "invalid alternate packet rate",
    24 PORT_CM_REDIRECT "port and CM redirect",
    25 PORT_REDIRECT "port redirect",
    26 INVALID_MTU "invalid path MTU",
    27 INSUFFICIENT_RESPONDER_RESOURCES "insufficient responder resources",
    28 CONSUMER_DEFINED "the application rejects it",
    29 INVALID_RNR_RETRY "invalid RNR retry count",
    30 DUPLICATE_COMM_ID "duplicate local communication ID",
    31 INVALID_CLASS_VERSION "invalid class version",
    32 INVALID_FLOW_LABEL "invalid flow label",
    33 INVALID_ALTERNATE_FLOW_LABEL "invalid alternate flow label",
    35 VENDOR_OPTION_NOT_SUPPORTED "vendor option not supported",
}

impl fmt::Display for RejectReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.words() {
            Some(words) => write!(f, "{words} ({})", self.0),
            None => write!(f, "reason {}", self.0),
        }
    }
}

impl fmt::Debug for RejectReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RejectReason({self})")
    }
}

/// ConnectReject.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rej {
    /// The sender's ID; 0 when it has none.
    pub local_id: CommId,
    /// The receiver's ID.
    pub remote_id: CommId,
    /// What is rejected.
    pub message: Answered,
    /// Bytes of additional information, 7 bits: see [`Rej::ari`].
    pub ari_len: u8,
    /// Why.
    pub reason: RejectReason,
    /// Additional reject information; what is in it depends on the reason.
    pub ari_area: Area<72>,
    /// The application's.
    pub private_data: Area<148>,
}

impl Rej {
    /// The additional reject information: no more than there is room for, whatever the length says.
    pub fn ari(&self) -> &[u8] {
        &self.ari_area.bytes()[..usize::from(self.ari_len).min(Area::<72>::LEN)]
    }

    pub(super) fn from_body(body: &Body) -> Self {
        let (local_id, remote_id) = ids(body);
        Rej {
            local_id,
            remote_id,
            message: Answered::from_bits(body[8] >> 6),
            ari_len: body[9] >> 1,
            reason: RejectReason(u16_at(body, 10)),
            ari_area: Area(array_at(body, 12)),
            private_data: Area(array_at(body, 84)),
        }
    }

    pub(super) fn write(&self, body: &mut Body) {
        put_ids(body, self.local_id, self.remote_id);
        body[8] = self.message.bits() << 6;
        body[9] = self.ari_len << 1;
        put(body, 10, &self.reason.0.to_be_bytes());
        put(body, 12, self.ari_area.bytes());
        put(body, 84, self.private_data.bytes());
    }
}
