//! Queue pair 1: what is asked of it is answered, what is junk is counted by name, and neither is in the way of others.

use crate::stranger::{Around, Stranger};
use crate::support::{SOON, counted, until};
use std::collections::BTreeMap;
use std::time::Instant;
use wire::mad::{
    ClassPortInfo, MadHeader, PERF_DATA_OFFSET, PortCounters, PortCountersExtended, class, method,
    perf_attribute, status,
};
use wire::{PKey, QKey, Qpn};

fn mad(header: MadHeader, data: u8) -> [u8; 256] {
    let mut mad = [0; 256];
    mad[..24].copy_from_slice(&header.to_bytes());
    mad[PERF_DATA_OFFSET + 1] = data;
    mad
}

fn question(attribute: u16) -> MadHeader {
    MadHeader {
        base_version: 1,
        class: class::PERFORMANCE,
        class_version: 1,
        method: method::GET,
        transaction_id: 0xABCD,
        attribute_id: attribute,
        ..MadHeader::default()
    }
}

fn ask(peer: &mut Stranger, header: MadHeader, port: u8) -> (MadHeader, Vec<u8>) {
    let frame = peer.frame(&mad(header, port), &Around::default());
    assert!(peer.port.send(&frame));
    let end = Instant::now() + SOON;
    loop {
        if let Some(answer) = peer.hear().pop() {
            return (MadHeader::parse(&answer).unwrap(), answer[PERF_DATA_OFFSET..].to_vec());
        }
        assert!(Instant::now() < end, "no answer");
        std::thread::yield_now();
    }
}

#[test]
fn port_counters_are_told() {
    let mut peer = Stranger::new();
    let (header, data) = ask(&mut peer, question(perf_attribute::CLASS_PORT_INFO), 0);
    assert_eq!((header.method, header.status, header.transaction_id), (method::GET_RESP, status::OK, 0xABCD));
    let info = ClassPortInfo::from_bytes(data.first_chunk().unwrap());
    assert_eq!((info.base_version, info.class_version), (1, 1));

    let (_, data) = ask(&mut peer, question(perf_attribute::PORT_COUNTERS), 1);
    let counters = PortCounters::from_bytes(data.first_chunk().unwrap());
    let roce = peer.endpoint.stats().ports[0].roce.clone();
    assert!(counters.receive_packets >= 2 && u64::from(counters.receive_packets) <= roce["rx_frames"]);
    assert!(counters.transmit_packets >= 1 && u64::from(counters.transmit_packets) <= roce["tx_frames"]);
    // More than 300 bytes a MAD: counted in words of four.
    assert!(counters.receive_data >= 150 && u64::from(counters.receive_data) <= roce["rx_bytes"] / 4);

    let (header, data) = ask(&mut peer, question(perf_attribute::PORT_COUNTERS_EXTENDED), 0xFF);
    let wide = PortCountersExtended::from_bytes(data.first_chunk().unwrap());
    assert_eq!((header.status, wide.port_select), (status::OK, 0xFF));
    assert!(wide.receive_packets >= u64::from(counters.receive_packets));
}

#[test]
fn questions_that_cannot_be_answered_get_their_status() {
    let mut peer = Stranger::new();
    let port_counters = question(perf_attribute::PORT_COUNTERS);
    for (header, port, told) in [
        (port_counters, 2, status::INVALID_VALUE),
        (question(0x7777), 1, status::UNSUPPORTED_ATTRIBUTE),
        (MadHeader { method: method::SET, ..port_counters }, 1, status::UNSUPPORTED_METHOD),
        (MadHeader { class_version: 2, ..port_counters }, 1, status::BAD_VERSION),
    ] {
        assert_eq!(ask(&mut peer, header, port).0.status, told, "{header:?}");
    }
}

#[test]
fn junk_is_counted_by_its_name_and_draws_nothing() {
    let mut peer = Stranger::new();
    let good = Around::default();
    let cm = MadHeader {
        class: class::CONNECTION,
        class_version: 2,
        method: method::SEND,
        attribute_id: 0x10,
        ..question(0)
    };
    let junk = [
        ("drop_mad_qkey", cm, Around { qkey: QKey::new(0x1111_1111), ..good }),
        ("drop_mad_pkey", cm, Around { pkey: PKey(0x1234), ..good }),
        ("drop_mad_source_qp", cm, Around { src_qpn: Qpn::new(5), ..good }),
        ("drop_mad_version", MadHeader { base_version: 2, ..cm }, good),
        ("drop_mad_version", MadHeader { class_version: 1, ..cm }, good),
        ("drop_mad_class", MadHeader { class: 0x03, ..cm }, good),
        ("drop_mad_method", MadHeader { method: method::GET, ..cm }, good),
        ("drop_mad_method", MadHeader { method: method::GET_RESP, ..question(0x12) }, good),
        ("drop_mad_attribute", MadHeader { attribute_id: 0x1F, ..cm }, good),
    ];
    let mut expected = BTreeMap::new();
    for (name, header, around) in &junk {
        let frame = peer.frame(&mad(*header, 0), around);
        assert!(peer.port.send(&frame));
        *expected.entry(*name).or_insert(0) += 1;
    }
    until("every datagram", || counted(&peer.endpoint, "mad_received") == junk.len() as u64);
    for (name, count) in expected {
        assert_eq!(counted(&peer.endpoint, name), count, "{name}");
    }
    assert_eq!(peer.hear(), Vec::<Vec<u8>>::new());
    // Frames that are no MAD do not come so far.
    let short = peer.frame(&[1; 255], &good);
    assert!(peer.port.send(&short));
    until("the short one", || peer.endpoint.stats().ports[0].roce["drop_mad_length"] == 1);
}
