//! The 40 bytes in front of the payload in a UD receive buffer (rocev2 facts, wire 11).

use crate::frame::{Frame, Network};

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
