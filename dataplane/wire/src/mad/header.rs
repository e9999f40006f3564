//! The header of every MAD (rocev2 facts, CM 2), and what can be wrong with one.

use std::fmt;

/// Bytes of a MAD.
pub const MAD_LEN: usize = 256;

/// Management classes.
pub mod class {
    /// Performance management: counters of ports. Class version 1.
    pub const PERFORMANCE: u8 = 0x04;
    /// Connection management. Class version 2.
    pub const CONNECTION: u8 = 0x07;
}

/// Methods.
pub mod method {
    /// Asks for an attribute.
    pub const GET: u8 = 0x01;
    /// Changes an attribute.
    pub const SET: u8 = 0x02;
    /// Every message of connection management, answers included.
    pub const SEND: u8 = 0x03;
    /// Answers [`GET`] and [`SET`].
    pub const GET_RESP: u8 = 0x81;
}

/// Values of the status field in an answer (unverified: names and numbers are Linux's).
pub mod status {
    /// Done.
    pub const OK: u16 = 0;
    /// The class version is not spoken here.
    pub const BAD_VERSION: u16 = 0x0004;
    /// The class knows no such method.
    pub const UNSUPPORTED_METHOD: u16 = 0x0008;
    /// The class knows the method, but not for that attribute.
    pub const UNSUPPORTED_ATTRIBUTE: u16 = 0x000C;
    /// A value in the attribute or its modifier is out of range.
    pub const INVALID_VALUE: u16 = 0x001C;
}

/// The first 24 bytes of a MAD.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct MadHeader {
    /// Version of the MAD format: 1.
    pub base_version: u8,
    /// Management class: see [`class`].
    pub class: u8,
    /// Version of the class: 2 for connection management, 1 for performance management.
    pub class_version: u8,
    /// What to do: see [`method`].
    pub method: u8,
    /// How it went: see [`status`]; 0 in requests.
    pub status: u16,
    /// Meaning depends on the class; 0.
    pub class_specific: u16,
    /// Opaque: an answer repeats its request's.
    pub transaction_id: u64,
    /// Which attribute, or which message.
    pub attribute_id: u16,
    /// More on the attribute; Linux has vendor option bits here in REQ, REP and SIDR_REP.
    pub attribute_modifier: u32,
}

impl MadHeader {
    /// Bytes on the wire.
    pub const LEN: usize = 24;

    /// From its bytes.
    pub fn from_bytes(bytes: &[u8; Self::LEN]) -> Self {
        let [base_version, class, class_version, method, s0, s1, c0, c1, rest @ ..] = *bytes;
        let [t0, t1, t2, t3, t4, t5, t6, t7, a0, a1, _, _, m0, m1, m2, m3] = rest;
        MadHeader {
            base_version,
            class,
            class_version,
            method,
            status: u16::from_be_bytes([s0, s1]),
            class_specific: u16::from_be_bytes([c0, c1]),
            transaction_id: u64::from_be_bytes([t0, t1, t2, t3, t4, t5, t6, t7]),
            attribute_id: u16::from_be_bytes([a0, a1]),
            attribute_modifier: u32::from_be_bytes([m0, m1, m2, m3]),
        }
    }

    /// Its bytes.
    pub fn to_bytes(&self) -> [u8; Self::LEN] {
        let mut bytes = [0; Self::LEN];
        bytes[..4].copy_from_slice(&[self.base_version, self.class, self.class_version, self.method]);
        bytes[4..6].copy_from_slice(&self.status.to_be_bytes());
        bytes[6..8].copy_from_slice(&self.class_specific.to_be_bytes());
        bytes[8..16].copy_from_slice(&self.transaction_id.to_be_bytes());
        bytes[16..18].copy_from_slice(&self.attribute_id.to_be_bytes());
        bytes[20..].copy_from_slice(&self.attribute_modifier.to_be_bytes());
        bytes
    }

    /// Reads it from the beginning of `bytes`; `None` when they are too few.
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        bytes.first_chunk().map(Self::from_bytes)
    }
}

/// Why bytes are no message of connection management.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MadError {
    /// Not 256 bytes; how many.
    Length(usize),
    /// Base version other than 1.
    BaseVersion(u8),
    /// Another class.
    Class(u8),
    /// Class version other than 2.
    ClassVersion(u8),
    /// Method other than Send.
    Method(u8),
    /// No message has this attribute ID.
    Attribute(u16),
}

impl fmt::Display for MadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            MadError::Length(len) => write!(f, "a MAD of {len} bytes, not {MAD_LEN}"),
            MadError::BaseVersion(version) => write!(f, "MAD base version {version}, not 1"),
            MadError::Class(class) => write!(f, "management class {class:#04x}, not connection management"),
            MadError::ClassVersion(version) => write!(f, "connection management of version {version}, not 2"),
            MadError::Method(method) => write!(f, "method {method:#04x}, not Send"),
            MadError::Attribute(attribute) => {
                write!(f, "attribute {attribute:#06x} is no message of connection management")
            }
        }
    }
}

impl std::error::Error for MadError {}
