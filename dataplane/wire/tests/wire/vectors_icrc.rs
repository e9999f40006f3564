//! The iCRC of every worked vector: its value, its bytes on the wire, and the very bytes it is computed over.

use crate::support::{number, valid_vectors};
use wire::*;

#[test]
fn vectors_have_the_listed_icrc() {
    for vector in valid_vectors() {
        let (bytes, frame) = (&vector.frame, vector.parse());
        assert_eq!(
            u64::from(compute_icrc(bytes).expect("a frame")),
            number(&vector.value["icrc_value"]),
            "{}",
            vector.name
        );
        assert_eq!(frame.verify_icrc(bytes, [&bytes[..]]), Ok(()), "{}", vector.name);

        let mut icrc = frame.icrc_of_headers(bytes);
        icrc.update(&bytes[frame.payload_offset()..frame.icrc_offset()]);
        assert_eq!(hex::encode(icrc.to_wire()), vector.text("icrc_wire_hex"), "{}", vector.name);
    }
}

#[test]
fn vectors_have_the_listed_input() {
    for vector in valid_vectors() {
        let (bytes, frame) = (&vector.frame, vector.parse());
        let masked = MaskedHeaders::new(frame.network, &bytes[frame.l3_offset()..frame.payload_offset()]);
        let input =
            [&[0xFF; 8], masked.as_bytes(), &bytes[frame.payload_offset()..frame.icrc_offset()]].concat();
        assert_eq!(hex::encode(input), vector.text("icrc_pseudo_hex"), "{}", vector.name);
    }
}

/// The two listings of the wire facts, in full.
#[test]
fn router_changes_leave_the_icrc_alone() {
    let icrc = |name: &str| compute_icrc(&crate::support::vector(name).frame);
    assert_eq!(icrc("rc_send_only_ipv4"), icrc("rc_send_only_ipv4_ce_ttl63"));
}
