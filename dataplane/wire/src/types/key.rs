//! Partition, queue and memory keys (rocev2 facts, wire 5 and 6, transport 18 and 20).

use std::fmt;

/// A 32-bit key: bytes and print.
macro_rules! key32 {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
        pub struct $name(u32);

        impl $name {
            /// The key with this value.
            pub const fn new(value: u32) -> Self {
                Self(value)
            }

            /// The value.
            pub const fn value(self) -> u32 {
                self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{:#010x}", self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!(stringify!($name), "({:#010x})"), self.0)
            }
        }
    };
}

key32! {
    /// A remote memory key, as RETH, AtomicETH and IETH carry it.
    RKey
}
key32! {
    /// A local memory key. Never on the wire.
    LKey
}
key32! {
    /// A queue key: admits a datagram to a UD QP.
    QKey
}

impl QKey {
    /// The Q_Key of QP 1, always.
    pub const GSI: QKey = QKey(0x8001_0000);

    /// The top bit: a sender with this bit in its work request sends its QP's own key instead.
    pub const fn is_privileged(self) -> bool {
        self.0 & 0x8000_0000 != 0
    }
}

/// A partition key: 15 bits of partition, top bit set for a full member.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct PKey(pub u16);

impl PKey {
    /// The default partition, full member: the one entry of a RoCE P_Key table.
    pub const DEFAULT: PKey = PKey(0xFFFF);

    /// Whether packets of `other` may be taken by a member with this key: same partition, and at least one of both is a
    /// full member.
    pub const fn matches(self, other: PKey) -> bool {
        (self.0 ^ other.0) & 0x7FFF == 0 && (self.0 | other.0) & 0x8000 != 0
    }
}

impl Default for PKey {
    fn default() -> Self {
        PKey::DEFAULT
    }
}

impl fmt::Display for PKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#06x}", self.0)
    }
}

impl fmt::Debug for PKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PKey({:#06x})", self.0)
    }
}
