//! Path MTUs (rocev2 facts, wire 1).

use std::fmt;

/// A path MTU: payload bytes of a full packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Mtu {
    /// 256 bytes.
    Mtu256 = 1,
    /// 512 bytes.
    Mtu512 = 2,
    /// 1024 bytes.
    Mtu1024 = 3,
    /// 2048 bytes.
    Mtu2048 = 4,
    /// 4096 bytes.
    Mtu4096 = 5,
}

/// What Linux takes off an interface's MTU before it looks for a path MTU: GRH 40, UDP 8, BTH 12, XRCETH 4,
/// AtomicETH 28, iCRC 4. More than any packet has, but a peer that reckons so must find us agreeing.
const IP_MTU_OVERHEAD: u32 = 96;

impl Mtu {
    /// Every MTU, smallest first.
    pub const ALL: [Mtu; 5] = [Mtu::Mtu256, Mtu::Mtu512, Mtu::Mtu1024, Mtu::Mtu2048, Mtu::Mtu4096];

    /// Bytes of payload.
    pub const fn bytes(self) -> u32 {
        1 << self.shift()
    }

    /// The code of verbs and of connection management, 1..=5.
    pub const fn code(self) -> u8 {
        self as u8
    }

    /// The MTU with this code.
    pub const fn from_code(code: u8) -> Option<Mtu> {
        match code {
            1 => Some(Mtu::Mtu256),
            2 => Some(Mtu::Mtu512),
            3 => Some(Mtu::Mtu1024),
            4 => Some(Mtu::Mtu2048),
            5 => Some(Mtu::Mtu4096),
            _ => None,
        }
    }

    /// The MTU of exactly so many bytes.
    pub fn from_bytes(bytes: u32) -> Option<Mtu> {
        Mtu::ALL.into_iter().find(|mtu| mtu.bytes() == bytes)
    }

    /// The largest path MTU that an interface with this IP MTU carries, by Linux's rule (96 bytes of overhead): 1500
    /// gives 1024, 4192 is the smallest that gives 4096. `None` below 352.
    pub fn from_ip_mtu(ip_mtu: u32) -> Option<Mtu> {
        let room = ip_mtu.saturating_sub(IP_MTU_OVERHEAD);
        Mtu::ALL.into_iter().rev().find(|mtu| mtu.bytes() <= room)
    }

    pub(crate) const fn shift(self) -> u32 {
        self as u32 + 7
    }
}

/// Packets that a message of `len` bytes takes, and so PSNs: at least one.
pub const fn packets(len: u32, mtu: Mtu) -> u32 {
    if len == 0 { 1 } else { ((len - 1) >> mtu.shift()) + 1 }
}

impl fmt::Display for Mtu {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.bytes(), f)
    }
}
