//! The file's shape as serde reads it: every key that exists, each value with its place in the text.

use serde::Deserialize;
use toml::Spanned;

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct File {
    pub eal: Eal,
    pub port: Vec<Spanned<Port>>,
    pub workers: Workers,
    pub qos: Qos,
    pub congestion: Congestion,
    pub control: Control,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Eal {
    pub memory: Memory,
    pub memory_mb: Option<Spanned<u32>>,
    pub file_prefix: Option<Spanned<String>>,
    pub log: Log,
    pub extra_args: Vec<String>,
}

#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Memory {
    #[default]
    Auto,
    Hugepages,
    NoHuge,
}

#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Log {
    #[default]
    Quiet,
    Error,
    Warning,
    Info,
    Debug,
}

#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub(super) enum Driver {
    Ring,
    Tap,
    AfPacket,
    Memif,
    Pcap,
    Pci,
    Vdev,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Port {
    pub name: Option<Spanned<String>>,
    pub driver: Driver,
    // What each driver wants to know; `load.rs` says which driver has which.
    pub pair: Option<Spanned<String>>,
    pub interface: Option<Spanned<String>>,
    pub socket: Option<Spanned<String>>,
    pub role: Option<Spanned<Role>>,
    pub id: Option<Spanned<u32>>,
    pub address: Option<Spanned<String>>,
    pub device: Option<Spanned<String>>,
    pub args: Option<Spanned<String>>,
    // Its place in the network.
    pub mac: Option<Spanned<String>>,
    #[serde(default)]
    pub addresses: Vec<Spanned<String>>,
    pub gid_types: Option<Spanned<Vec<GidType>>>,
    pub vlan: Option<Spanned<u16>>,
    #[serde(default)]
    pub vlans: Vec<Vlan>,
    pub mtu: Option<Spanned<u16>>,
    pub gateway: Option<Spanned<std::net::Ipv4Addr>>,
    pub gateway6: Option<Spanned<std::net::Ipv6Addr>>,
    pub neighbour_timeout_ms: Option<Spanned<u64>>,
    pub rx_descriptors: Option<Spanned<u16>>,
    pub tx_descriptors: Option<Spanned<u16>>,
    pub zero_copy: Option<Spanned<bool>>,
    pub impair: Option<Spanned<String>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Vlan {
    pub id: Spanned<u16>,
    #[serde(default)]
    pub addresses: Vec<Spanned<String>>,
    pub gateway: Option<Spanned<std::net::Ipv4Addr>>,
    pub gateway6: Option<Spanned<std::net::Ipv6Addr>>,
}

#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
pub(super) enum GidType {
    #[serde(rename = "v1", alias = "roce_v1")]
    V1,
    #[serde(rename = "v2", alias = "roce_v2")]
    V2,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Role {
    Server,
    Client,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Workers {
    pub drive: Drive,
    pub cores: Vec<Spanned<usize>>,
    pub poll: Option<Spanned<Poll>>,
}

#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Drive {
    #[default]
    Threads,
    Caller,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Poll {
    Busy,
    Adaptive,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Qos {
    pub dscp: Option<Spanned<u8>>,
    pub ecn: bool,
    pub hop_limit: Option<Spanned<u8>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Congestion {
    pub algorithm: Algorithm,
}

#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Algorithm {
    #[default]
    None,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Control {
    pub socket: Option<Spanned<String>>,
    pub listen: Option<Spanned<String>>,
}
