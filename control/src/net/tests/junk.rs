//! Whatever arrives: no panic, no answer that was not earned, one counter each.

use proptest::prelude::*;

use super::vectors::*;
use super::*;

#[rustfmt::skip] // one kind a line
const SERVED: [Frame; 12] = [
    ARP_REQUEST, ARP_PROBE, ARP_ANSWER,
    NS, NS_BARE, NS_DAD, NA_ANSWER,
    PING4, PING6, PING6_ALL_NODES,
    TOO_BIG4, TOO_BIG6,
];

/// Feeds `bytes`; returns the frames it draws after checking that it was counted.
fn feed(interface: &mut Interface, bytes: &[u8]) -> Vec<Vec<u8>> {
    let before = interface.counters().total();
    interface.on_frame(0, bytes);
    assert!(interface.counters().total() > before, "not counted: {bytes:02x?}");
    sent(interface)
}

#[test]
fn a_frame_cut_short_anywhere_draws_nothing() {
    for frame in SERVED {
        let bytes = frame.bytes();
        for length in 0..bytes.len() {
            let mut interface = interface();
            assert!(feed(&mut interface, &bytes[..length]).is_empty(), "{length} of {bytes:02x?}");
            assert_eq!(interface.next_timeout(), None, "nothing learned");
        }
    }
}

#[test]
fn padding_behind_a_frame_changes_nothing() {
    for frame in SERVED {
        let mut padded = frame.bytes();
        let expected = feed(&mut interface(), &padded);
        padded.resize(padded.len() + 46, 0xaa);
        assert_eq!(feed(&mut interface(), &padded), expected);
    }
}

#[test]
fn every_flipped_bit_behind_a_checksum_is_caught() {
    for frame in [PING4, PING6, NS, TOO_BIG4, TOO_BIG6] {
        let bytes = frame.bytes();
        let ipv6 = bytes[12] == 0x86;
        for bit in 14 * 8..bytes.len() * 8 {
            // In IPv6, version to flow label and hop limit are under no checksum; next header and length are.
            if ipv6 && (bit < 18 * 8 || bit / 8 == 21) {
                continue;
            }
            let mut flipped = bytes.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            let mut interface = interface();
            assert!(feed(&mut interface, &flipped).is_empty(), "bit {bit} of {bytes:02x?}");
            assert!(interface.too_big().is_empty(), "bit {bit} of {bytes:02x?}");
        }
    }
}

proptest! {
    #[test]
    fn junk_draws_nothing(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        prop_assert!(feed(&mut interface(), &bytes).is_empty());
    }

    /// Junk behind headers that lead deep into each parser.
    #[test]
    fn junk_behind_a_good_beginning_never_panics(
        frame in proptest::sample::select(SERVED.to_vec()),
        keep in 0..70usize,
        tail in proptest::collection::vec(any::<u8>(), 0..120),
    ) {
        let mut bytes = frame.bytes();
        bytes.truncate(keep);
        bytes.extend(tail);
        prop_assert!(feed(&mut interface(), &bytes).len() <= 1);
    }

    /// The checksum made right, so that the options of neighbour discovery are reached.
    #[test]
    fn any_neighbour_options_never_panic(options in proptest::collection::vec(any::<u8>(), 0..100)) {
        for frame in [NS_BARE, NA_ANSWER_BARE] {
            let mut bytes = frame.bytes();
            bytes.extend(&options);
            let length = u16::try_from(bytes.len() - 54).unwrap();
            bytes[18..20].copy_from_slice(&length.to_be_bytes());
            bytes[56..58].fill(0);
            let sum = internet_checksum(&bytes[22..], u32::from(length) + 58);
            bytes[56..58].copy_from_slice(&sum.to_be_bytes());
            let mut interface = interface();
            interface.on_frame(0, &bytes);
            prop_assert_eq!(interface.counters().get(Counter::BadChecksum), 0);
        }
    }
}

/// RFC 1071 over the addresses and the message, plus the rest of the pseudo header given in `sum`.
fn internet_checksum(bytes: &[u8], mut sum: u32) -> u16 {
    for pair in bytes.chunks(2) {
        sum += u32::from(u16::from_be_bytes([pair[0], *pair.get(1).unwrap_or(&0)]));
    }
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}
