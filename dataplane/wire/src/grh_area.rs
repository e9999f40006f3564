//! The 40 bytes in front of the payload in a UD receive buffer (rocev2 facts, wire 11).

use crate::frame::{Frame, Network};
use crate::net::{Ipv4Header, Ipv6Header, protocol};
use crate::types::Gid;

/// Bytes of the area. A completion's byte count includes them.
pub const GRH_AREA_LEN: usize = 40;

/// What a UD receiver writes before the payload: the IPv6 header or GRH as received, or twenty zeros and the IPv4 header
/// as received. `head` is what the frame was parsed from.
pub fn grh_area(frame: &Frame, head: &[u8]) -> [u8; GRH_AREA_LEN] {
    let mut area = [0; GRH_AREA_LEN];
    let begin = match frame.network {
        Network::V4 => 20,
        Network::V6 | Network::V1 => 0,
    };
    for (to, from) in area[begin..].iter_mut().zip(frame.network_header(head)) {
        *to = *from;
    }
    area
}

/// What the area says of the packet that it came with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GrhArea {
    /// What carried the BTH.
    pub network: Network,
    /// Who sent it.
    pub src: Gid,
    /// Whom it was for: a GID of ours, or a group.
    pub dst: Gid,
    /// DSCP in the upper 6 bits, ECN in the lower 2.
    pub traffic_class: u8,
    /// Flow label; 0 for IPv4.
    pub flow_label: u32,
}

impl GrhArea {
    /// Reads the area as Linux does: twenty undefined bytes and an IPv4 header, or an IPv6 header or GRH. Where the undefined
    /// bytes look like the beginning of the latter, a right header checksum tells that it is IPv4. `None` when it is neither.
    pub fn read(area: &[u8; GRH_AREA_LEN]) -> Option<GrhArea> {
        let v4 = area.last_chunk::<{ Ipv4Header::LEN }>()?;
        let looks_v6 = area[0] >> 4 == 6;
        if looks_v6 && !(v4[0] == 0x45 && Ipv4Header::checksum_ok(v4)) {
            let ip = Ipv6Header::from_bytes(area);
            let v1 = ip.next_header == protocol::BTH;
            return Some(GrhArea {
                network: if v1 { Network::V1 } else { Network::V6 },
                src: ip.src.into(),
                dst: ip.dst.into(),
                traffic_class: ip.traffic_class,
                flow_label: ip.flow_label,
            });
        }
        if v4[0] >> 4 != 4 {
            return None;
        }
        let ip = Ipv4Header::from_bytes(v4);
        let (src, dst) = (ip.src.into(), ip.dst.into());
        Some(GrhArea { network: Network::V4, src, dst, traffic_class: ip.tos, flow_label: 0 })
    }
}
