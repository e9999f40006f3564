//! The 40 bytes in front of a UD payload (rocev2 facts, wire 11).

use crate::support::{addressing_v4, addressing_v6, frame_with, valid_vectors};
use wire::{Addressing, Frame, GrhArea, Network, Opcode, RoceVersion, Service, grh_area};

#[test]
fn vectors_have_the_listed_area() {
    let mut datagrams = 0;
    for vector in valid_vectors() {
        let frame = vector.parse();
        assert_eq!(
            frame.info.service == Service::Ud,
            !vector.text("ud_grh_area_hex").is_empty(),
            "{}",
            vector.name
        );
        if frame.info.service == Service::Ud {
            assert_eq!(
                hex::encode(grh_area(&frame, &vector.frame)),
                vector.text("ud_grh_area_hex"),
                "{}",
                vector.name
            );
            let read = GrhArea::read(&grh_area(&frame, &vector.frame)).expect("one of the three");
            assert_eq!((read.network, read.src, read.dst), (frame.network, frame.src, frame.dst));
            assert_eq!((read.traffic_class, read.flow_label), (frame.traffic_class, frame.flow_label));
            datagrams += 1;
        }
    }
    assert_eq!(datagrams, 14);
}

#[test]
fn v1_gives_its_grh() {
    let addressing = Addressing { version: RoceVersion::V1, ..addressing_v6() };
    let bytes = frame_with(&addressing, Opcode(0x64).info().expect("UD SEND Only"), b"v1");
    let frame = Frame::parse(&bytes, bytes.len()).expect("a frame");
    assert_eq!(grh_area(&frame, &bytes), bytes[14..54]);
    assert_eq!(GrhArea::read(&grh_area(&frame, &bytes)).map(|area| area.network), Some(Network::V1));
}

/// The first twenty bytes of an IPv4 area are undefined: they may look like an IPv6 header.
#[test]
fn an_ipv4_header_is_told_by_its_checksum() {
    let bytes = frame_with(&addressing_v4(), Opcode(0x64).info().expect("UD SEND Only"), b"v4");
    let frame = Frame::parse(&bytes, bytes.len()).expect("a frame");
    let mut area = grh_area(&frame, &bytes);
    area[0] = 0x60;
    assert_eq!(GrhArea::read(&area).map(|area| (area.network, area.src)), Some((Network::V4, frame.src)));
    area[30] ^= 1;
    assert_eq!(GrhArea::read(&area).map(|area| area.network), Some(Network::V6), "the checksum is wrong");
    area[0] = 0;
    area[20] = 0x55;
    assert_eq!(GrhArea::read(&area), None);
}
