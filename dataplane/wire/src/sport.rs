//! UDP source ports: flow entropy that spreads QPs over paths and stays put for each (rocev2 facts, wire 4).
//! Receivers must not care.

use crate::types::Qpn;

/// A flow label has 20 bits.
const FLOW_LABEL: u32 = 0x000F_FFFF;

/// Where the conventional range begins.
const BASE: u16 = 0xC000;

/// The source port of a connected QP as Linux chooses it: from the flow label, or from both QPNs when that is 0. Both ends
/// arrive at the same port.
pub fn udp_sport(flow_label: u32, local: Qpn, remote: Qpn) -> u16 {
    match flow_label & FLOW_LABEL {
        0 => udp_sport_of_flow_label(flow_label_of_qpns(local, remote)),
        flow_label => udp_sport_of_flow_label(flow_label),
    }
}

/// The source port for a flow label: its upper bits folded into 14.
pub fn udp_sport_of_flow_label(flow_label: u32) -> u16 {
    let flow_label = flow_label & FLOW_LABEL;
    BASE | ((flow_label & 0x3FFF) ^ (flow_label >> 14)) as u16
}

/// A flow label for a pair of QPs, the same from both sides.
pub fn flow_label_of_qpns(local: Qpn, remote: Qpn) -> u32 {
    let product = u64::from(local.value()) * u64::from(remote.value());
    let folded = product ^ product >> 20;
    ((folded ^ folded >> 40) as u32) & FLOW_LABEL
}

/// A flow label for a connection made by connection management, from the ports of the two programs.
pub fn flow_label_of_ports(source: u16, destination: u16) -> u32 {
    (u32::from(source) * 31 + u32::from(destination)) & FLOW_LABEL
}

/// The source port of an unconnected QP, as Linux's software RoCE chooses it: a multiplicative hash of its number.
pub fn udp_sport_of_qpn(qpn: Qpn) -> u16 {
    BASE + (qpn.value().wrapping_mul(0x61C8_8647) >> 18) as u16
}
