//! One flipped bit: in a covered byte the frame is never taken, in a masked one the iCRC does not notice.

use crate::support::valid_vectors;
use wire::*;

/// Bytes of a frame that the iCRC leaves out, from the table of the wire facts; half bytes as masks.
fn masked_bits(frame: &Frame, at: usize) -> u8 {
    let Some(at) = at.checked_sub(frame.l3_offset()) else { return 0xFF };
    let (network, bth) = match frame.network {
        Network::V4 => (matches!(at, 1 | 8 | 10 | 11).then_some(0xFF), 28),
        Network::V6 => (if at == 0 { Some(0x0F) } else { matches!(at, 1..=3 | 7).then_some(0xFF) }, 48),
        Network::V1 => (if at == 0 { Some(0x0F) } else { matches!(at, 1..=3 | 7).then_some(0xFF) }, 40),
    };
    let udp_checksum = frame.network != Network::V1 && matches!(bth - at.min(bth), 1 | 2);
    match network {
        Some(mask) => mask,
        None if udp_checksum || at == bth + 4 => 0xFF,
        None => 0,
    }
}

fn icrc(frame: &Frame, bytes: &[u8]) -> Icrc {
    let covered = &bytes[frame.l3_offset()..frame.icrc_offset()];
    let mut icrc = Icrc::before(frame.network, covered);
    icrc.update(covered);
    icrc
}

#[test]
fn covered_bits_change_the_icrc_and_masked_bits_do_not() {
    for vector in valid_vectors() {
        let frame = vector.parse();
        let right = icrc(&frame, &vector.frame);
        for bit in 0..frame.icrc_offset() * 8 {
            let mut bytes = vector.frame.clone();
            bytes[bit / 8] ^= 1 << (bit % 8);
            let masked = masked_bits(&frame, bit / 8) & 1 << (bit % 8) != 0;
            assert_eq!(icrc(&frame, &bytes) == right, masked, "{}: bit {bit}", vector.name);
        }
    }
}

#[test]
fn no_frame_with_a_flipped_covered_bit_is_taken() {
    for vector in valid_vectors() {
        let frame = vector.parse();
        for bit in 0..frame.end() * 8 {
            if masked_bits(&frame, bit / 8) & 1 << (bit % 8) != 0 {
                continue;
            }
            let mut bytes = vector.frame.clone();
            bytes[bit / 8] ^= 1 << (bit % 8);
            let verdict =
                Frame::parse(&bytes, bytes.len()).and_then(|frame| frame.verify_icrc(&bytes, [&bytes[..]]));
            assert!(verdict.is_err(), "{}: bit {bit}", vector.name);
        }
    }
}
