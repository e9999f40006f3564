//! One port: its device and its place in the network.

use crate::net::Prefix;
use impair::Plan;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::path::PathBuf;
use std::time::Duration;
use wire::{Mac, RoceVersion};

/// IP MTU that carries a path MTU of 4096 with room for every header (4192 is the least).
pub const DEFAULT_MTU: u16 = 4200;

/// With what a machine needs to notice, less than a second.
pub const DEFAULT_NEIGHBOUR_TIMEOUT: Duration = Duration::from_millis(900);

/// The device behind a port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DeviceKind {
    /// One end of two ports joined in memory. Both ends name the same pair; the endpoint needs exactly two of a name.
    Ring {
        /// The pair's name.
        pair: String,
    },
    /// A kernel interface that we make.
    Tap {
        /// Its name.
        interface: String,
    },
    /// An existing kernel interface through a packet socket.
    AfPacket {
        /// Its name.
        interface: String,
    },
    /// One end of a shared-memory link between two processes.
    Memif {
        /// The socket that both ends meet at.
        socket: PathBuf,
        /// Which end.
        role: MemifRole,
        /// Number of the link on its socket.
        id: u32,
    },
    /// An existing kernel interface through libpcap: slow, needs nothing.
    Pcap {
        /// Its name.
        interface: String,
    },
    /// A NIC.
    Pci {
        /// Address like `0000:3b:00.0`, with driver arguments after a comma.
        address: String,
    },
    /// Any DPDK virtual device, as after EAL's `--vdev`.
    Vdev {
        /// Its name, which begins with its driver's.
        name: String,
        /// Its arguments.
        args: String,
    },
}

/// Which end of a memif link this is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemifRole {
    /// Listens on the socket.
    Server,
    /// Connects to it.
    Client,
}

/// `[[port.vlans]]`: a VLAN on a port, with addresses, GIDs, neighbours and groups of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VlanSettings {
    /// 802.1Q VLAN, 1 to 4094.
    pub id: u16,
    /// Its addresses with their on-link prefix, in GID order. The link-local one is added by itself.
    pub addresses: Vec<Prefix>,
    /// Where IPv4 beyond the link goes.
    pub gateway_v4: Option<Ipv4Addr>,
    /// Where IPv6 beyond the link goes.
    pub gateway_v6: Option<Ipv6Addr>,
}

/// `[[port]]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PortSettings {
    /// Our name for it, in statistics and messages.
    pub name: String,
    /// The device.
    pub device: DeviceKind,
    /// Its Ethernet address; by default the device's own, or a random one where it has none.
    pub mac: Option<Mac>,
    /// Its addresses with their on-link prefix, in GID order. The link-local one is added by itself.
    pub addresses: Vec<Prefix>,
    /// What it speaks: its GID table has every GID once for each type, v1 first. RoCE v2 alone by default.
    pub gid_types: Vec<RoceVersion>,
    /// 802.1Q VLAN of its own link: of everything that it sends and takes for `addresses`.
    pub vlan: Option<u16>,
    /// Further VLANs. Their GIDs follow those of the port itself.
    pub vlans: Vec<VlanSettings>,
    /// Largest IP packet to ask the driver for. What it gives decides the path MTU.
    pub mtu: u16,
    /// Where IPv4 beyond the link goes.
    pub gateway_v4: Option<Ipv4Addr>,
    /// Where IPv6 beyond the link goes.
    pub gateway_v6: Option<Ipv6Addr>,
    /// A neighbour that does not answer for so long is reported as dead: 100 ms to 60 s, 900 ms by default.
    pub neighbour_timeout: Duration,
    /// Packets that each receive queue holds.
    pub rx_descriptors: u16,
    /// Packets that each transmit queue holds.
    pub tx_descriptors: u16,
    /// Long payloads leave without being copied where the driver lets them: `net_ring`, `net_tap`, `net_af_packet`,
    /// `net_memif`.
    pub zero_copy: bool,
    /// What happens to its frames on purpose, as if the link were bad. `None`: nothing.
    pub impair: Option<Plan>,
}

impl PortSettings {
    /// A port with addresses and defaults for the rest.
    pub fn new(name: impl Into<String>, device: DeviceKind, addresses: Vec<Prefix>) -> Self {
        PortSettings {
            name: name.into(),
            device,
            mac: None,
            addresses,
            gid_types: vec![RoceVersion::V2],
            vlan: None,
            vlans: Vec::new(),
            mtu: DEFAULT_MTU,
            gateway_v4: None,
            gateway_v6: None,
            neighbour_timeout: DEFAULT_NEIGHBOUR_TIMEOUT,
            rx_descriptors: 1024,
            tx_descriptors: 1024,
            zero_copy: true,
            impair: None,
        }
    }
}
