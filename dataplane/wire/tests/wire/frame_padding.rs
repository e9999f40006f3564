//! Ethernet pads short frames to 60 bytes: what is behind the IP packet does not count.

use crate::support::{addressings, frame_with, vector};
use wire::{Frame, Opcode};

#[test]
fn padding_behind_the_packet_is_ignored() {
    for addressing in addressings() {
        let bytes = frame_with(&addressing, Opcode(0x04).info().expect("SEND Only"), &[]);
        let plain = Frame::parse(&bytes, bytes.len()).expect("a frame");
        for padding in 1..=20 {
            let padded = [&bytes[..], &vec![0xA5; padding]].concat();
            let frame = Frame::parse(&padded, padded.len()).expect("a frame");
            assert_eq!(frame, plain);
            assert_eq!(frame.verify_icrc(&padded, [&padded[..]]), Ok(()));
        }
    }
}

/// The shortest packet is 58 bytes and leaves the wire with 60.
#[test]
fn the_shortest_frame() {
    let mut bytes = vector("rc_send_only_zero_len_ipv4").frame;
    assert_eq!(bytes.len(), 58);
    bytes.resize(60, 0);
    let frame = Frame::parse(&bytes, bytes.len()).expect("a frame");
    assert_eq!((frame.payload_len(), frame.icrc_offset(), frame.end()), (0, 54, 58));
}
