//! Frames cut at every byte, and frames of anything: an error, never a panic, never a frame that reaches past its end.

use crate::support::{addressings, ext_for, frame_with, valid_vectors};
use proptest::prelude::*;
use wire::*;

#[test]
fn a_frame_cut_anywhere_is_truncated() {
    for vector in valid_vectors() {
        for len in 0..vector.frame.len() {
            let cut = &vector.frame[..len];
            assert_eq!(Frame::parse(cut, len), Err(FrameError::Truncated), "{} at {len}", vector.name);
        }
    }
}

/// The caller promised a head of the whole frame or 128 bytes; if it breaks the promise nothing else may break.
#[test]
fn a_short_head_is_truncated() {
    for vector in valid_vectors() {
        let frame = vector.parse();
        for len in 0..vector.frame.len() {
            let parsed = Frame::parse(&vector.frame[..len], vector.frame.len());
            let enough = len >= frame.payload_offset();
            assert_eq!(
                parsed,
                if enough { Ok(frame) } else { Err(FrameError::Truncated) },
                "{} at {len}",
                vector.name
            );
        }
    }
}

/// Looks at all that a frame offers.
fn inspect(head: &[u8], bytes: &[u8]) {
    let Ok(frame) = Frame::parse(head, bytes.len()) else { return };
    assert!(frame.end() <= bytes.len());
    let _ = frame.verify_icrc(head, [bytes]);
    let _ = frame.verify_udp_checksum([bytes]);
    let _ = grh_area(&frame, head);
    let _ = (
        frame.ext::<Reth>(head),
        frame.ext::<Aeth>(head),
        frame.ext::<AtomicEth>(head),
        frame.ext::<Deth>(head),
    );
}

/// Every opcode at every length that touches a header, with every pad count: taken exactly when headers, pad and iCRC fit.
#[test]
fn every_opcode_at_every_length() {
    for addressing in addressings() {
        let template = HeaderTemplate::new(&addressing).expect("GIDs of one family");
        for opcode in 0..=255 {
            for transport_len in 0..80 {
                for pad_count in 0..4 {
                    let mut bytes = vec![0; template.len() + transport_len];
                    template.emit(&mut bytes, 0, transport_len);
                    let bth = Bth { pad_count, ..Bth::new(Opcode(opcode), Qpn::new(5), Psn::new(0)) };
                    let room = transport_len.min(Bth::LEN);
                    bytes[template.len()..][..room].copy_from_slice(&bth.to_bytes()[..room]);
                    let expected = match Opcode(opcode).info() {
                        _ if transport_len < 16 => Err(FrameError::TooShort),
                        None => Err(FrameError::UnknownOpcode),
                        Some(info) => (transport_len - 16)
                            .checked_sub(info.ext_len() + usize::from(pad_count))
                            .ok_or(FrameError::NegativePayload),
                    };
                    let parsed = Frame::parse(&bytes, bytes.len()).map(|frame| frame.payload_len());
                    assert_eq!(parsed, expected, "{:?} {transport_len} {pad_count}", Opcode(opcode));
                    inspect(&bytes, &bytes);
                }
            }
        }
    }
}

proptest! {
    #[test]
    fn anything_at_all(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        inspect(&bytes, &bytes);
    }

    /// Right frames with some bytes overwritten get further than noise.
    #[test]
    fn right_frames_with_wrong_bytes(
        which in 0..6usize,
        opcode in any::<prop::sample::Index>(),
        payload in prop::collection::vec(any::<u8>(), 0..100),
        wrong in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
        head in any::<prop::sample::Index>(),
    ) {
        let infos: Vec<_> = OpcodeInfo::all().collect();
        let mut bytes = frame_with(&addressings()[which], infos[opcode.index(infos.len())], &payload);
        let len = bytes.len();
        for (at, byte) in wrong {
            bytes[at.index(len)] = byte;
        }
        inspect(&bytes[..head.index(len + 1)], &bytes);
        inspect(&bytes, &bytes);
    }

    /// Whatever is built is read back.
    #[test]
    fn built_frames_are_read_back(
        which in 0..6usize,
        opcode in any::<prop::sample::Index>(),
        payload in prop::collection::vec(any::<u8>(), 0..300),
        psn in 0..1u32 << 24,
        ip_id in any::<u16>(),
        ack_req in any::<bool>(),
    ) {
        let infos: Vec<_> = OpcodeInfo::all().collect();
        let info = infos[opcode.index(infos.len())];
        let addressing = addressings()[which];
        let template = HeaderTemplate::new(&addressing).expect("GIDs of one family");
        let bth = Bth { ack_req, ..Bth::new(info.opcode, Qpn::new(0x123), Psn::new(psn)) };
        let mut bytes = Vec::new();
        build_frame(&template, &bth, &ext_for(info), ip_id, &payload, &mut bytes);

        let frame = Frame::parse(&bytes, bytes.len()).expect("a frame");
        prop_assert_eq!(frame.verify_icrc(&bytes, [&bytes[..]]), Ok(()));
        prop_assert_eq!(frame.bth(), Bth { pad_count: Bth::pad_for(payload.len()), ..bth });
        prop_assert_eq!(&bytes[frame.payload_offset()..][..frame.payload_len()], &payload[..]);
        prop_assert!(bytes[frame.payload_offset() + payload.len()..frame.icrc_offset()].iter().all(|&pad| pad == 0));
        prop_assert_eq!((frame.smac, frame.dmac, frame.vlan), (addressing.smac, addressing.dmac, addressing.vlan));
        prop_assert_eq!((frame.src, frame.dst), (addressing.src, addressing.dst));
        prop_assert_eq!(frame.end(), bytes.len());
    }
}
