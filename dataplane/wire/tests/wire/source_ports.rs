//! UDP source ports: the table of the facts, wire 4.

use proptest::prelude::*;
use wire::*;

#[test]
fn connected_ports_are_those_of_linux() {
    for (local, remote, flow_label, port) in [
        (0x123, 0x456, 0x4EDC2, 0xEDD1),
        (0x11, 0x12, 0x00132, 0xC132),
        (0xFF_FFFE, 0xAB_CDEF, 0x4BA53, 0xFA41),
    ] {
        let (local, remote) = (Qpn::new(local), Qpn::new(remote));
        assert_eq!(flow_label_of_qpns(local, remote), flow_label);
        assert_eq!(udp_sport(0, local, remote), port);
    }
}

#[test]
fn a_flow_label_decides_alone() {
    for (flow_label, port) in [(0x12345, 0xE341), (0xFFFFF, 0xFFC0), (0x04000, 0xC001)] {
        assert_eq!(udp_sport_of_flow_label(flow_label), port);
        assert_eq!(udp_sport(flow_label, Qpn::new(1), Qpn::new(2)), port);
    }
}

#[test]
fn connection_management_ports_give_a_flow_label() {
    assert_eq!(flow_label_of_ports(40001, 7471), 0x3090E);
    assert_eq!(udp_sport_of_flow_label(0x3090E), 0xC902);
}

#[test]
fn unconnected_ports_are_hashed() {
    assert_eq!([1, 17, 18].map(|qpn| udp_sport_of_qpn(Qpn::new(qpn))), [0xD872, 0xDF94, 0xF806]);
}

proptest! {
    #[test]
    fn both_ends_agree_within_the_range(a: u32, b: u32, flow_label: u32) {
        let (a, b) = (Qpn::new(a), Qpn::new(b));
        prop_assert_eq!(udp_sport(flow_label, a, b), udp_sport(flow_label, b, a));
        prop_assert!(udp_sport(flow_label, a, b) >= 0xC000);
        prop_assert!(udp_sport_of_qpn(a) >= 0xC000);
        prop_assert!(flow_label_of_qpns(a, b) < 1 << 20);
    }
}
