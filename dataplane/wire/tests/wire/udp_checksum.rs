//! UDP checksums: none is right, a right one is right, a wrong one is not; in one piece or several.

use crate::support::{addressing_v4, addressing_v6, frame_with, vector};
use proptest::prelude::*;
use wire::*;

/// Computed apart from the crate, over the pseudo header and the datagram.
fn right_checksum(bytes: &[u8], frame: &Frame) -> u16 {
    let udp = &bytes[frame.bth_offset() - 8..frame.end()];
    let addresses = if frame.network == Network::V4 {
        &bytes[frame.l3_offset() + 12..][..8]
    } else {
        &bytes[frame.l3_offset() + 8..][..32]
    };
    let mut input = [addresses, &[0, 17], &(udp.len() as u16).to_be_bytes(), udp].concat();
    if input.len() % 2 == 1 {
        input.push(0);
    }
    let mut sum: u64 = input.chunks(2).map(|word| u64::from(word[0]) << 8 | u64::from(word[1])).sum();
    while sum > 0xFFFF {
        sum = (sum & 0xFFFF) + (sum >> 16);
    }
    if sum == 0xFFFF { 0xFFFF } else { !(sum as u16) }
}

#[test]
fn a_foreign_checksum_is_right() {
    let foreign = vector("uc_send_only_scapy_test");
    let frame = foreign.parse();
    assert_eq!(frame.udp_checksum, 0xACA2);
    assert_eq!(frame.verify_udp_checksum([&foreign.frame[..]]), Ok(()));
}

#[test]
fn no_checksum_needs_no_payload() {
    let frame = vector("rc_send_only_ipv4").parse();
    assert_eq!(frame.verify_udp_checksum([]), Ok(()));
}

proptest! {
    #[test]
    fn checksums_are_verified(
        payload in prop::collection::vec(any::<u8>(), 0..200),
        v6: bool,
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..4),
        flip in any::<prop::sample::Index>(),
    ) {
        let addressing = if v6 { addressing_v6() } else { addressing_v4() };
        let mut bytes = frame_with(&addressing, Opcode(0x04).info().expect("SEND Only"), &payload);
        let at = Frame::parse(&bytes, bytes.len()).expect("a frame").bth_offset() - 2;
        let checksum = right_checksum(&bytes, &Frame::parse(&bytes, bytes.len()).expect("a frame"));
        bytes[at..at + 2].copy_from_slice(&checksum.to_be_bytes());
        let frame = Frame::parse(&bytes, bytes.len()).expect("a frame");
        let mut cuts: Vec<_> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
        cuts.extend([0, bytes.len()]);
        cuts.sort_unstable();
        prop_assert_eq!(frame.verify_udp_checksum(cuts.windows(2).map(|pair| &bytes[pair[0]..pair[1]])), Ok(()));
        prop_assert_eq!(frame.verify_udp_checksum([&bytes[..at]]), Err(FrameError::Truncated));

        let bit = flip.index((bytes.len() - at - 2) * 8);
        bytes[at + 2 + bit / 8] ^= 1 << (bit % 8);
        prop_assert_eq!(frame.verify_udp_checksum([&bytes[..]]), Err(FrameError::UdpChecksum));
    }
}
