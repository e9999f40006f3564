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

        let covered = &bytes[frame.l3_offset()..frame.icrc_offset()];
        let mut icrc = Icrc::before(frame.network, covered);
        icrc.update(covered);
        assert_eq!(hex::encode(icrc.to_wire()), vector.text("icrc_wire_hex"), "{}", vector.name);
    }
}

#[test]
fn vectors_have_the_listed_input() {
    for vector in valid_vectors() {
        let (bytes, frame) = (&vector.frame, vector.parse());
        let mut covered = bytes[frame.l3_offset()..frame.icrc_offset()].to_vec();
        mask_headers(frame.network, &mut covered);
        let input = [&[0xFF; 8], &covered[..]].concat();
        assert_eq!(hex::encode(input), vector.text("icrc_pseudo_hex"), "{}", vector.name);
    }
}

/// The two listings of the wire facts, in full.
#[test]
fn router_changes_leave_the_icrc_alone() {
    let icrc = |name: &str| compute_icrc(&crate::support::vector(name).frame);
    assert_eq!(icrc("rc_send_only_ipv4"), icrc("rc_send_only_ipv4_ce_ttl63"));
}
