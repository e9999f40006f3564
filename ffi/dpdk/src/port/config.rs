//! What a caller wants of a port, what the driver offers, and what comes of it.
//!
//! The rule: never fail because a driver offers less; take what there is and report it.

use std::fmt;

use dpdk_sys as sys;

/// Ethernet overhead around an MTU: addresses and type (14) and one VLAN tag (4). Frames in buffers have no FCS.
pub(super) const FRAME_OVERHEAD: u16 = 18;
/// The smallest MTU worth trying: IPv4's own minimum.
const SMALLEST_MTU: u16 = 68;

/// What a caller wants of a port. Everything is a wish, except that there is at least one queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PortConfig {
    /// Queues, each an RX and a TX queue. A worker owns one pair, and some drivers insist on equal numbers.
    pub queues: u16,
    /// Packets an RX queue holds.
    pub rx_descriptors: u16,
    /// Packets a TX queue holds.
    pub tx_descriptors: u16,
    /// Largest IP packet in bytes.
    pub mtu: u16,
    /// Receive frames longer than a buffer, as chains.
    pub scatter: bool,
    /// Have the NIC check IPv4 and UDP checksums.
    pub rx_checksum: bool,
    /// Have the NIC remove VLAN tags.
    pub vlan_strip: bool,
    /// Have the NIC spread flows over queues, by addresses and UDP ports, and deliver the hash.
    pub rss: bool,
    /// Send packets of several segments.
    pub tx_multi_segs: bool,
    /// Receive frames for other addresses too.
    pub promiscuous: bool,
    /// Receive all multicast frames.
    pub allmulticast: bool,
}

impl Default for PortConfig {
    /// One queue, MTU 1500, everything but VLAN stripping and promiscuous mode.
    fn default() -> Self {
        PortConfig {
            queues: 1,
            rx_descriptors: 1024,
            tx_descriptors: 1024,
            mtu: 1500,
            scatter: true,
            rx_checksum: true,
            vlan_strip: false,
            rss: true,
            tx_multi_segs: true,
            promiscuous: false,
            allmulticast: true,
        }
    }
}

/// What a port was opened with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Negotiated {
    /// The driver, like `net_ring`.
    pub driver: String,
    /// Queues asked for.
    pub queues_asked: u16,
    /// Queues there are.
    pub queues: u16,
    /// Packets an RX queue holds.
    pub rx_descriptors: u16,
    /// Packets a TX queue holds.
    pub tx_descriptors: u16,
    /// MTU asked for.
    pub mtu_asked: u16,
    /// The largest IP packet that passes in both directions, as far as the driver tells.
    pub mtu: u16,
    /// The longest frame the device can be made to receive. Drivers differ in what they count, and some name a
    /// constant that has nothing to do with the MTU.
    pub max_rx_pktlen: u32,
    /// Frames longer than a buffer arrive as chains.
    pub scatter: bool,
    /// The NIC checks checksums.
    pub rx_checksum: bool,
    /// The NIC removes VLAN tags.
    pub vlan_strip: bool,
    /// Flows are spread over the queues.
    pub rss: bool,
    /// Received packets carry the flow's hash.
    pub rss_hash: bool,
    /// Packets of several segments can be sent.
    pub tx_multi_segs: bool,
    /// Packets may be of several segments which point to bytes outside of pools ([`Mbuf::lend`](crate::Mbuf::lend)).
    pub tx_lends: bool,
    /// Frames for other addresses are received.
    pub promiscuous: bool,
    /// All multicast frames are received.
    pub allmulticast: bool,
}

impl fmt::Display for Negotiated {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: MTU {}", self.driver, self.mtu)?;
        if self.mtu != self.mtu_asked {
            write!(f, " (asked {})", self.mtu_asked)?;
        }
        write!(f, ", {} queue{}", self.queues, if self.queues == 1 { "" } else { "s" })?;
        if self.queues != self.queues_asked {
            write!(f, " (asked {})", self.queues_asked)?;
        }
        write!(f, " of {}/{} descriptors", self.rx_descriptors, self.tx_descriptors)?;
        let features = [
            (self.scatter, "scatter"),
            (self.rx_checksum, "RX checksum"),
            (self.vlan_strip, "VLAN strip"),
            (self.rss, "RSS"),
            (self.rss_hash, "RSS hash"),
            (self.tx_multi_segs, "multi-segment TX"),
            (self.promiscuous, "promiscuous"),
            (self.allmulticast, "all multicast"),
        ];
        for (_, name) in features.iter().filter(|(on, _)| *on) {
            write!(f, ", {name}")?;
        }
        Ok(())
    }
}

/// The part of `rte_eth_dev_info` that decides.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Offer {
    pub max_mtu: u16,
    pub max_rx_pktlen: u32,
    pub max_queues: u16,
    pub rx_offloads: u64,
    pub tx_offloads: u64,
    pub rss_flows: u64,
}

impl Offer {
    pub fn of(info: &sys::rte_eth_dev_info) -> Offer {
        Offer {
            max_mtu: info.max_mtu,
            max_rx_pktlen: info.max_rx_pktlen,
            max_queues: info.max_rx_queues.min(info.max_tx_queues),
            rx_offloads: info.rx_offload_capa,
            tx_offloads: info.tx_offload_capa,
            rss_flows: info.flow_type_rss_offloads,
        }
    }
}

/// What bounds the MTU besides the driver's word.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct MtuLimits {
    /// Bytes in a buffer of the smallest pool.
    pub data_room: u16,
    /// The longest frame, where the driver has a limit that it does not tell.
    pub longest_frame: Option<u16>,
    /// The MTU that holds whatever the driver tells.
    pub actual: Option<u16>,
    /// Frames longer than a buffer arrive as chains in any case.
    pub always_chains: bool,
}

/// What to configure a port with. MTUs are tried in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Plan {
    pub queues: u16,
    pub rx_offloads: u64,
    pub tx_offloads: u64,
    pub rss_flows: u64,
    pub mtus: Vec<u16>,
    /// The MTU that holds whatever the driver takes.
    pub actual_mtu: Option<u16>,
}

impl Plan {
    pub fn make(config: &PortConfig, offer: &Offer, limits: &MtuLimits) -> Plan {
        let queues = config.queues.min(offer.max_queues).max(1);
        let wish = |wanted: bool, flags: u64| if wanted { flags } else { 0 };
        let spread = config.rss && queues > 1;
        let rx_wishes = wish(config.scatter, sys::SHIM_RX_OFFLOAD_SCATTER)
            | wish(config.rx_checksum, sys::SHIM_RX_OFFLOAD_IPV4_CKSUM | sys::SHIM_RX_OFFLOAD_UDP_CKSUM)
            | wish(config.vlan_strip, sys::SHIM_RX_OFFLOAD_VLAN_STRIP)
            | wish(spread, sys::SHIM_RX_OFFLOAD_RSS_HASH);
        let rss_flows = wish(spread, sys::SHIM_RSS_IP_UDP) & offer.rss_flows;
        let mut rx_offloads = rx_wishes & offer.rx_offloads;
        if rss_flows == 0 {
            // A hash without spreading: ethdev refuses the one without the other.
            rx_offloads &= !sys::SHIM_RX_OFFLOAD_RSS_HASH;
        }
        let tx_offloads = wish(config.tx_multi_segs, sys::SHIM_TX_OFFLOAD_MULTI_SEGS) & offer.tx_offloads;
        let scatter = limits.always_chains || rx_offloads & sys::SHIM_RX_OFFLOAD_SCATTER != 0;
        let mtu = limits.apply(config.mtu, scatter);
        Plan {
            queues,
            rx_offloads,
            tx_offloads,
            rss_flows,
            mtus: mtus(mtu, offer),
            actual_mtu: limits.actual.map(|actual| actual.min(mtu)),
        }
    }
}

impl MtuLimits {
    /// The largest MTU up to `asked` whose frames fit.
    fn apply(&self, asked: u16, scatter: bool) -> u16 {
        let one_buffer = (!scatter).then_some(self.data_room);
        [one_buffer, self.longest_frame]
            .into_iter()
            .flatten()
            .map(|frame| frame.saturating_sub(FRAME_OVERHEAD))
            .fold(asked, u16::min)
            .max(SMALLEST_MTU)
    }
}

/// The MTUs to try, largest first: the wish, then what the driver's longest frame leaves under each way to count
/// overhead, then Ethernet's usual.
fn mtus(wanted: u16, offer: &Offer) -> Vec<u16> {
    let limit = if offer.max_mtu == 0 { wanted } else { wanted.min(offer.max_mtu) };
    let by_frame = [14, 18, 22, 26].map(|overhead| offer.max_rx_pktlen.saturating_sub(overhead));
    let mut mtus: Vec<u16> = by_frame
        .into_iter()
        .filter_map(|mtu| u16::try_from(mtu).ok())
        .chain([limit, 1500])
        .filter(|&mtu| mtu <= limit && mtu >= SMALLEST_MTU)
        .collect();
    mtus.sort_unstable_by(|a, b| b.cmp(a));
    mtus.dedup();
    mtus
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOTHING: Offer = Offer {
        max_mtu: u16::MAX,
        max_rx_pktlen: 1514,
        max_queues: 1,
        rx_offloads: 0,
        tx_offloads: 0,
        rss_flows: 0,
    };
    const EVERYTHING: Offer = Offer {
        max_mtu: 9702,
        max_rx_pktlen: 9728,
        max_queues: 64,
        rx_offloads: u64::MAX,
        tx_offloads: u64::MAX,
        rss_flows: u64::MAX,
    };

    fn buffers(data_room: u16) -> MtuLimits {
        MtuLimits { data_room, ..MtuLimits::default() }
    }

    #[test]
    fn a_driver_that_offers_nothing_is_taken_as_it_is() {
        let wish = PortConfig { queues: 4, mtu: 9000, ..PortConfig::default() };
        let plan = Plan::make(&wish, &NOTHING, &buffers(2048));
        assert_eq!((plan.queues, plan.rx_offloads, plan.tx_offloads, plan.rss_flows), (1, 0, 0, 0));
        assert_eq!(plan.mtus, [2030, 1500, 1496, 1492, 1488]);
    }

    #[test]
    fn a_driver_that_offers_everything_gives_what_was_wished_and_no_more() {
        let wish = PortConfig { queues: 4, mtu: 9000, ..PortConfig::default() };
        let plan = Plan::make(&wish, &EVERYTHING, &buffers(2048));
        assert_eq!(plan.queues, 4);
        assert_eq!(plan.rx_offloads & sys::SHIM_RX_OFFLOAD_VLAN_STRIP, 0);
        assert_ne!(plan.rx_offloads & sys::SHIM_RX_OFFLOAD_RSS_HASH, 0);
        assert_eq!(plan.rss_flows, sys::SHIM_RSS_IP_UDP);
        assert_eq!(plan.tx_offloads, sys::SHIM_TX_OFFLOAD_MULTI_SEGS);
        assert_eq!(plan.mtus[0], 9000);
    }

    #[test]
    fn one_queue_needs_no_spreading() {
        let plan = Plan::make(&PortConfig::default(), &EVERYTHING, &buffers(2048));
        assert_eq!((plan.rss_flows, plan.rx_offloads & sys::SHIM_RX_OFFLOAD_RSS_HASH), (0, 0));
    }

    #[test]
    fn without_scatter_a_frame_fits_one_buffer() {
        let wish = PortConfig { mtu: 9000, scatter: false, ..PortConfig::default() };
        assert_eq!(Plan::make(&wish, &EVERYTHING, &buffers(4096)).mtus[0], 4078);
        assert_eq!(Plan::make(&wish, &EVERYTHING, &buffers(10_000)).mtus[0], 9000);
    }

    #[test]
    fn what_really_passes_bounds_the_mtu() {
        let wish = PortConfig { mtu: 9000, ..PortConfig::default() };
        let limits = MtuLimits {
            data_room: 18_304,
            longest_frame: Some(1982),
            actual: Some(4200),
            always_chains: false,
        };
        assert_eq!(Plan::make(&wish, &NOTHING, &limits).actual_mtu, Some(1964));
        let limits = MtuLimits { longest_frame: Some(16_318), ..limits };
        assert_eq!(Plan::make(&wish, &NOTHING, &limits).actual_mtu, Some(4200));
        let limits = MtuLimits { actual: None, ..limits };
        assert_eq!(Plan::make(&wish, &NOTHING, &limits).actual_mtu, None);
        let limits =
            MtuLimits { data_room: 2048, actual: Some(u16::MAX), always_chains: true, longest_frame: None };
        assert_eq!(Plan::make(&wish, &NOTHING, &limits).actual_mtu, Some(9000));
    }
}
