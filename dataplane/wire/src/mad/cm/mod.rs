//! Messages of connection management (rocev2 facts, CM 2 to 8). Offsets are from the end of the MAD header.

mod connect;
mod disconnect;
mod lap;
mod reject;
mod req;
mod sidr;

pub use connect::{Mra, Rep, Rtu};
pub use disconnect::{Drep, Dreq};
pub use lap::{AlternatePath, Apr, AprStatus, Lap};
pub use reject::{Answered, Rej, RejectReason};
pub use req::{PrimaryPath, Req, Transport};
pub use sidr::{SidrRep, SidrReq, SidrStatus};

use super::header::{MAD_LEN, MadError, MadHeader, class, method};
use std::fmt;

/// Bytes of a message, behind the MAD header.
const BODY_LEN: usize = MAD_LEN - MadHeader::LEN;

/// A message, behind the MAD header.
type Body = [u8; BODY_LEN];

/// The versions that are spoken here.
const BASE_VERSION: u8 = 1;
const CLASS_VERSION: u8 = 2;

/// A communication ID: names one end of a connection at its owner. 0 stands for none.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct CommId(pub u32);

impl fmt::Display for CommId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#010x}", self.0)
    }
}

impl fmt::Debug for CommId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CommId({:#010x})", self.0)
    }
}

/// What a message's two first fields say, but for REQ and SIDR: the sender's ID and the receiver's.
fn ids(body: &Body) -> (CommId, CommId) {
    use super::fields::u32_at;
    (CommId(u32_at(body, 0)), CommId(u32_at(body, 4)))
}

fn put_ids(body: &mut Body, local: CommId, remote: CommId) {
    use super::fields::put;
    put(body, 0, &local.0.to_be_bytes());
    put(body, 4, &remote.0.to_be_bytes());
}

/// Every message and its attribute ID.
macro_rules! messages {
    ($($(#[$doc:meta])* $name:ident = $id:literal,)*) => {
        /// Which message.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr(u16)]
        pub enum MessageKind {
            $($(#[$doc])* $name = $id,)*
        }

        impl MessageKind {
            /// Every message, in the order of the attribute IDs.
            pub const ALL: &'static [MessageKind] = &[$(MessageKind::$name),*];

            /// The message with this attribute ID.
            pub fn from_attribute(attribute: u16) -> Option<MessageKind> {
                match attribute {
                    $($id => Some(MessageKind::$name),)*
                    _ => None,
                }
            }

            /// Its attribute ID.
            pub const fn attribute(self) -> u16 {
                self as u16
            }
        }

        /// A message.
        #[derive(Clone, Debug, PartialEq, Eq)]
        #[allow(clippy::large_enum_variant, reason = "each is one MAD or less, and short-lived")]
        pub enum CmMessage {
            $($(#[$doc])* $name($name),)*
        }

        impl CmMessage {
            /// Which one it is.
            pub fn kind(&self) -> MessageKind {
                match self {
                    $(CmMessage::$name(_) => MessageKind::$name,)*
                }
            }

            fn parse(kind: MessageKind, body: &Body) -> CmMessage {
                match kind {
                    $(MessageKind::$name => CmMessage::$name($name::from_body(body)),)*
                }
            }

            fn emit(&self, body: &mut Body) {
                match self {
                    $(CmMessage::$name(message) => message.write(body),)*
                }
            }
        }

        $(impl From<$name> for CmMessage {
            fn from(message: $name) -> CmMessage {
                CmMessage::$name(message)
            }
        })*
    };
}

messages! {
    /// ConnectRequest: asks for a connection.
    Req = 0x0010,
    /// Message receipt acknowledgement: the answer will take a while.
    Mra = 0x0011,
    /// ConnectReject: no.
    Rej = 0x0012,
    /// ConnectReply: yes.
    Rep = 0x0013,
    /// ReadyToUse: the reply has arrived.
    Rtu = 0x0014,
    /// DisconnectRequest.
    Dreq = 0x0015,
    /// DisconnectReply.
    Drep = 0x0016,
    /// Asks for the QP of a datagram service.
    SidrReq = 0x0017,
    /// The QP of a datagram service, or why not.
    SidrRep = 0x0018,
    /// Asks to load an alternate path.
    Lap = 0x0019,
    /// Answers that.
    Apr = 0x001A,
}

/// A MAD of connection management.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CmMad {
    /// Transaction: answers repeat it.
    pub transaction_id: u64,
    /// Vendor options of Linux in REQ, REP and SIDR_REP; any is taken, 0 is sent.
    pub attribute_modifier: u32,
    /// What it says.
    pub message: CmMessage,
}

impl CmMad {
    /// A MAD with this message.
    pub fn new(transaction_id: u64, message: impl Into<CmMessage>) -> CmMad {
        CmMad { transaction_id, attribute_modifier: 0, message: message.into() }
    }

    /// Reads one. Status and class-specific field are not looked at.
    pub fn parse(bytes: &[u8]) -> Result<CmMad, MadError> {
        let bytes: &[u8; MAD_LEN] = bytes.try_into().map_err(|_| MadError::Length(bytes.len()))?;
        let Some((header, body)) = bytes.split_first_chunk() else { return Err(MadError::Length(MAD_LEN)) };
        let (header, body) = (MadHeader::from_bytes(header), super::fields::array_at(body, 0));
        let check = |ok: bool, error| if ok { Ok(()) } else { Err(error) };
        check(header.base_version == BASE_VERSION, MadError::BaseVersion(header.base_version))?;
        check(header.class == class::CONNECTION, MadError::Class(header.class))?;
        check(header.class_version == CLASS_VERSION, MadError::ClassVersion(header.class_version))?;
        check(header.method == method::SEND, MadError::Method(header.method))?;
        let kind = MessageKind::from_attribute(header.attribute_id)
            .ok_or(MadError::Attribute(header.attribute_id))?;
        Ok(CmMad {
            transaction_id: header.transaction_id,
            attribute_modifier: header.attribute_modifier,
            message: CmMessage::parse(kind, &body),
        })
    }

    /// Its bytes.
    pub fn to_bytes(&self) -> [u8; MAD_LEN] {
        let header = MadHeader {
            base_version: BASE_VERSION,
            class: class::CONNECTION,
            class_version: CLASS_VERSION,
            method: method::SEND,
            status: 0,
            class_specific: 0,
            transaction_id: self.transaction_id,
            attribute_id: self.message.kind().attribute(),
            attribute_modifier: self.attribute_modifier,
        };
        let mut body = [0; BODY_LEN];
        self.message.emit(&mut body);
        let mut bytes = [0; MAD_LEN];
        bytes[..MadHeader::LEN].copy_from_slice(&header.to_bytes());
        bytes[MadHeader::LEN..].copy_from_slice(&body);
        bytes
    }
}
