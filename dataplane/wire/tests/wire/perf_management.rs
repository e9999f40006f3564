//! Where the counters of performance management lie. The layout is that of public headers, not of the facts.

use wire::mad::*;

/// Every byte of the attribute its own offset.
fn counted<const N: usize>() -> [u8; N] {
    std::array::from_fn(|at| at as u8)
}

#[test]
fn port_counters_lie_where_headers_have_them() {
    let counters = PortCounters::from_bytes(&counted());
    assert_eq!((counters.port_select, counters.counter_select), (1, 0x0203));
    assert_eq!(counters.symbol_errors, 0x0405);
    assert_eq!((counters.link_error_recovery, counters.link_downed), (6, 7));
    assert_eq!((counters.receive_errors, counters.transmit_discards), (0x0809, 0x0E0F));
    assert_eq!((counters.transmit_constraint_errors, counters.receive_constraint_errors), (16, 17));
    assert_eq!((counters.local_link_integrity_errors, counters.excessive_buffer_overruns), (1, 3));
    assert_eq!(counters.vl15_dropped, 0x1617);
    assert_eq!((counters.transmit_data, counters.receive_data), (0x1819_1A1B, 0x1C1D_1E1F));
    assert_eq!((counters.transmit_packets, counters.receive_packets), (0x2021_2223, 0x2425_2627));
    assert_eq!(counters.transmit_wait, 0x2829_2A2B);
    assert_eq!(PortCounters::from_bytes(&counters.to_bytes()), counters);
}

#[test]
fn extended_counters_lie_where_headers_have_them() {
    let counters = PortCountersExtended::from_bytes(&counted());
    assert_eq!((counters.port_select, counters.counter_select), (1, 0x0203));
    assert_eq!(counters.transmit_data, 0x0809_0A0B_0C0D_0E0F);
    assert_eq!(counters.multicast_receive_packets, 0x4041_4243_4445_4647);
}

#[test]
fn class_port_info_says_what_an_agent_can() {
    let info = ClassPortInfo {
        base_version: 1,
        class_version: 1,
        capability_mask: ClassPortInfo::EXTENDED_WIDTH | ClassPortInfo::ALL_PORT_SELECT,
        capability_mask2: 5,
        response_time: 18,
        redirect_gid: wire::Gid::UNSPECIFIED,
    };
    let bytes = info.to_bytes();
    assert_eq!(bytes[..8], [1, 1, 0x03, 0, 0, 0, 0, 5 << 5 | 18]);
    assert_eq!(ClassPortInfo::from_bytes(&bytes), info);
}
