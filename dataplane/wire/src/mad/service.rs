//! Service IDs: what a request asks for (rocev2 facts, CM 9).

use std::fmt;

/// What a listener listens for: 64 bits. Those of rdma_cm are made of a port space and a port.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct ServiceId(pub u64);

/// A port space of rdma_cm.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u16)]
pub enum PortSpace {
    /// RDMA_PS_IPOIB: datagrams of IP over InfiniBand.
    Ipoib = 0x0002,
    /// RDMA_PS_TCP: connections.
    Tcp = 0x0106,
    /// RDMA_PS_UDP: datagrams.
    Udp = 0x0111,
    /// RDMA_PS_IB: either, with InfiniBand addresses.
    Ib = 0x013F,
}

impl PortSpace {
    /// Every port space.
    pub const ALL: [PortSpace; 4] = [PortSpace::Ipoib, PortSpace::Tcp, PortSpace::Udp, PortSpace::Ib];

    /// Its number in rdma_cm.
    pub const fn number(self) -> u16 {
        self as u16
    }
}

impl ServiceId {
    /// The ID of a port in a port space.
    pub const fn new(space: PortSpace, port: u16) -> ServiceId {
        ServiceId((space.number() as u64) << 16 | port as u64)
    }

    /// The port space; `None` for IDs that are not rdma_cm's.
    pub fn port_space(self) -> Option<PortSpace> {
        PortSpace::ALL.into_iter().find(|space| u64::from(space.number()) == self.0 >> 16)
    }

    /// The port, when there is a port space.
    pub fn port(self) -> Option<u16> {
        self.port_space().map(|_| self.0 as u16)
    }
}

impl fmt::Display for ServiceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#018x}", self.0)
    }
}

impl fmt::Debug for ServiceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ServiceId({:#x})", self.0)
    }
}
