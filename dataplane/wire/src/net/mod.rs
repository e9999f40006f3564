//! The layers below the BTH (rocev2 facts, wire 2, 3, 4 and 14): Ethernet, IPv4, IPv6 (and the GRH, which looks alike), UDP.

mod checksum;
mod ethernet;
mod ip;
mod udp;

pub use checksum::OnesComplement;
pub use ethernet::{EthernetHeader, Vlan, ethertype};
pub use ip::{Ipv4Header, Ipv6Header, protocol};
pub use udp::{ROCE_PORT, UdpHeader};
