//! The 24-bit numbers: packet sequence, message sequence and queue pair numbers (rocev2 facts, wire 5, transport 1 and 2).

use std::fmt;

const MASK: u32 = 0x00FF_FFFF;

/// A value that does not fit 24 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct OutOfRange(pub u32);

impl fmt::Display for OutOfRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#x} does not fit 24 bits", self.0)
    }
}

impl std::error::Error for OutOfRange {}

/// What all 24-bit numbers have in common: range, bytes and print.
macro_rules! number24 {
    ($name:ident) => {
        impl $name {
            /// The number in the low 24 bits of `value`; higher bits are dropped. Use [`TryFrom`] to refuse them.
            pub const fn new(value: u32) -> Self {
                Self(value & MASK)
            }

            /// The number, below 2^24.
            pub const fn value(self) -> u32 {
                self.0
            }

            /// The number as the wire has it: three bytes, big endian.
            pub const fn to_bytes(self) -> [u8; 3] {
                let [_, high, middle, low] = self.0.to_be_bytes();
                [high, middle, low]
            }

            /// The number from its three bytes, big endian.
            pub const fn from_bytes([high, middle, low]: [u8; 3]) -> Self {
                Self(u32::from_be_bytes([0, high, middle, low]))
            }
        }

        impl TryFrom<u32> for $name {
            type Error = OutOfRange;

            fn try_from(value: u32) -> Result<Self, OutOfRange> {
                if value > MASK { Err(OutOfRange(value)) } else { Ok(Self(value)) }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{:#08x}", self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!(stringify!($name), "({:#08x})"), self.0)
            }
        }
    };
}

/// Arithmetic modulo 2^24. There is no order: of two numbers half the space apart each is before the other.
macro_rules! modular {
    ($name:ident) => {
        impl $name {
            /// The number after this one.
            pub const fn next(self) -> Self {
                self.add(1)
            }

            /// The number before this one.
            pub const fn prev(self) -> Self {
                Self::new(self.0.wrapping_sub(1))
            }

            /// The number `count` further on, modulo 2^24.
            pub const fn add(self, count: u32) -> Self {
                Self::new(self.0.wrapping_add(count))
            }

            /// Signed way from `other` to this number, −2^23 … 2^23 − 1: the 24-bit difference, sign-extended.
            pub const fn distance_from(self, other: Self) -> i32 {
                // Shifting the 24-bit difference up to the sign bit and back extends its sign.
                (self.0.wrapping_sub(other.0) << 8) as i32 >> 8
            }

            /// This number lies in the half of the space before `other`.
            pub const fn is_before(self, other: Self) -> bool {
                self.distance_from(other) < 0
            }
        }
    };
}

/// A packet sequence number.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Psn(u32);
number24!(Psn);
modular!(Psn);

/// A message sequence number: messages that the responder has completed.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Msn(u32);
number24!(Msn);
modular!(Msn);

/// A queue pair number. It names, it does not count: there is no arithmetic.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Qpn(u32);
number24!(Qpn);

/// An XRC SRQ number: what a peer names a shared receive queue by.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Srqn(u32);
number24!(Srqn);

impl Qpn {
    /// Subnet management: never valid on RoCE.
    pub const SMI: Qpn = Qpn(0);
    /// General services: connection management arrives here.
    pub const GSI: Qpn = Qpn(1);
    /// Destination of every multicast packet.
    pub const MULTICAST: Qpn = Qpn(MASK);
}
