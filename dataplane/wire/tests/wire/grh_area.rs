//! The 40 bytes in front of a UD payload (rocev2 facts, wire 11).

use crate::support::{addressing_v6, frame_with, valid_vectors};
use wire::{Addressing, Frame, Opcode, RoceVersion, Service, grh_area};

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
}
