//! UDP.

/// Destination port of RoCEv2.
pub const ROCE_PORT: u16 = 4791;

/// A UDP header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UdpHeader {
    /// Source port: flow entropy, any value.
    pub sport: u16,
    /// Destination port.
    pub dport: u16,
    /// Bytes of this header and what follows.
    pub len: u16,
    /// Checksum; 0 is "none", and what RoCEv2 sends on IPv4 and IPv6 alike.
    pub checksum: u16,
}

impl UdpHeader {
    /// Bytes on the wire.
    pub const LEN: usize = 8;

    /// From its bytes.
    #[inline]
    pub fn from_bytes(bytes: &[u8; Self::LEN]) -> Self {
        let word = |at: usize| u16::from_be_bytes([bytes[at], bytes[at + 1]]);
        UdpHeader { sport: word(0), dport: word(2), len: word(4), checksum: word(6) }
    }

    /// Its bytes.
    pub fn to_bytes(&self) -> [u8; Self::LEN] {
        let ([s0, s1], [d0, d1]) = (self.sport.to_be_bytes(), self.dport.to_be_bytes());
        let ([l0, l1], [c0, c1]) = (self.len.to_be_bytes(), self.checksum.to_be_bytes());
        [s0, s1, d0, d1, l0, l1, c0, c1]
    }
}
